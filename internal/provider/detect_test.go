package provider_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/provider"
)

// fields reads headers written one a line.
func fields(text string) hookglass.Headers {
	var h hookglass.Headers
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			h = append(h, hookglass.Header{Name: name, Value: strings.TrimSpace(value)})
		}
	}
	return h
}

const (
	hex64    = "d4a41c5061bc28d52b84a02b6e1b19ab6e65a92bac6abd34021b9ce72f9ddb3e"
	base64ed = "R1fH6iGOCUbvVBKbV1VZdLPuwcEptH8qjrgm7SfwOgE="
	form     = "Content-Type: application/x-www-form-urlencoded\n"
)

// Reference: the precedence of providers.md section 1, row by row, and the mixtures that senders and spoofers make.
func TestDetect(t *testing.T) {
	for _, c := range []struct {
		name, headers, body, hint string
		want                      provider.Detection
	}{
		{name: "1 gitea before github", headers: "X-GitHub-Event: push\nX-GitHub-Delivery: d\nX-Gitea-Event: push\nX-Gogs-Event: push\nX-Gitea-Delivery: d",
			want: provider.Detection{Provider: "gitea", EventType: "push", DeliveryID: "d", Flavour: "gitea"}},
		{name: "1 forgejo", headers: "X-Forgejo-Event: push\nX-Gitea-Event: push\nX-Gogs-Event: push\nX-GitHub-Event: push",
			want: provider.Detection{Provider: "gitea", EventType: "push", Flavour: "forgejo"}},
		{name: "1 gogs", headers: "X-Gogs-Event: push", want: provider.Detection{Provider: "gitea", EventType: "push", Flavour: "gogs"}},
		{name: "2 github", headers: "x-github-event: pull_request\nX-GITHUB-DELIVERY: d-1", body: `{"action":"opened"}`,
			want: provider.Detection{Provider: "github", EventType: "pull_request", DeliveryID: "d-1"}},
		{name: "3 gitlab before standard webhooks", headers: "webhook-id: m\nwebhook-signature: v1,x\nX-Gitlab-Event: Push Hook\nIdempotency-Key: k",
			want: provider.Detection{Provider: "gitlab", EventType: "Push Hook", DeliveryID: "k"}},
		{name: "4 sendgrid before twilio", headers: "X-Twilio-Signature: x\nX-Twilio-Email-Event-Webhook-Signature: x", body: `[{"event":"open","sg_event_id":"e1"}]`,
			want: provider.Detection{Provider: "sendgrid", EventType: "open", EventID: "e1"}},
		{name: "5 twilio by token", headers: "I-Twilio-Idempotency-Token: t\n" + form, body: "CallStatus=ringing",
			want: provider.Detection{Provider: "twilio", EventType: "call.ringing", DeliveryID: "t"}},
		{name: "6 sns with ses inside", headers: "x-amz-sns-message-type: Notification\nx-amz-sns-message-id: m1",
			body: `{"Type":"Notification","MessageId":"m1","Message":"{\"notificationType\":\"Bounce\",\"mail\":{}}"}`,
			want: provider.Detection{Provider: "aws_sns", EventType: "Notification", EventID: "m1", DeliveryID: "m1", Inner: "aws_ses"}},
		{name: "6 sns with a known provider inside", headers: "x-amz-sns-message-type: Notification", body: `{"Message":"{\"object\":\"event\",\"id\":\"evt_1\",\"type\":\"x\"}"}`,
			want: provider.Detection{Provider: "aws_sns", EventType: "Notification", Inner: "stripe"}},
		{name: "7 clerk", headers: "svix-id: m\nsvix-signature: v1,x\nsvix-timestamp: 1", body: `{"object":"event","type":"user.created","data":{"id":"user_1"}}`,
			want: provider.Detection{Provider: "clerk", EventType: "user.created", EventID: "m", DeliveryID: "m"}},
		{name: "7 resend", headers: "svix-id: m\nsvix-signature: v1,x", body: `{"type":"email.bounced"}`,
			want: provider.Detection{Provider: "resend", EventType: "email.bounced", EventID: "m", DeliveryID: "m"}},
		{name: "7 clerk, billing", headers: "svix-id: m\nsvix-signature: v1,x", body: `{"object":"event","type":"paymentAttempt.created","data":{}}`,
			want: provider.Detection{Provider: "clerk", EventType: "paymentAttempt.created", EventID: "m", DeliveryID: "m"}},
		{name: "7 clerk, by the instance", headers: "svix-id: m\nsvix-signature: v1,x", body: `{"object":"event","type":"enterpriseConnection.created","instance_id":"ins_1","data":{}}`,
			want: provider.Detection{Provider: "clerk", EventType: "enterpriseConnection.created", EventID: "m", DeliveryID: "m"}},
		{name: "7 svix, another's subscription", headers: "svix-id: m\nsvix-signature: v1,x", body: `{"object":"event","type":"subscription.created","data":{}}`,
			want: provider.Detection{Provider: "svix", EventID: "m", DeliveryID: "m"}},
		{name: "7 resend, a contact", headers: "svix-id: m\nsvix-signature: v1,x", body: `{"type":"contact.created","created_at":"2026-02-16T12:00:00Z","data":{"id":"c","email":"a@b.test","unsubscribed":false}}`,
			want: provider.Detection{Provider: "resend", EventType: "contact.created", EventID: "m", DeliveryID: "m"}},
		{name: "7 resend, a domain", headers: "svix-id: m\nsvix-signature: v1,x", body: `{"type":"domain.updated","created_at":"2026-02-16T12:00:00Z","data":{"id":"d","region":"us-east-1","records":[]}}`,
			want: provider.Detection{Provider: "resend", EventType: "domain.updated", EventID: "m", DeliveryID: "m"}},
		{name: "7 svix, another's contact", headers: "svix-id: m\nsvix-signature: v1,x", body: `{"type":"contact.created","created_at":"2026-02-16T12:00:00Z","data":{"email":"a@b.test"}}`,
			want: provider.Detection{Provider: "svix", EventID: "m", DeliveryID: "m"}},
		{name: "7 svix", headers: "svix-id: m\nsvix-signature: v1,x", body: `{"type":"invoice.paid"}`, want: provider.Detection{Provider: "svix", EventID: "m", DeliveryID: "m"}},
		{name: "8 bigcommerce", headers: "webhook-id: m\nwebhook-signature: v1,x", body: `{"producer":"stores/abc","scope":"store/order/created","hash":"h"}`,
			want: provider.Detection{Provider: "bigcommerce", EventType: "store/order/created", EventID: "h", DeliveryID: "m"}},
		{name: "8 openai", headers: "webhook-id: m\nwebhook-signature: v1,x", body: `{"object":"event","id":"evt_1","type":"response.completed"}`,
			want: provider.Detection{Provider: "openai", EventType: "response.completed", EventID: "evt_1", DeliveryID: "m"}},
		{name: "8 replicate", headers: "webhook-id: m\nwebhook-signature: v1,x", body: `{"id":"p","status":"succeeded","version":"v","urls":{"get":"u"}}`,
			want: provider.Detection{Provider: "replicate", DeliveryID: "m"}},
		{name: "8 standard webhooks", headers: "webhook-id: m\nwebhook-signature: v1,x", body: `{"type":"user.created"}`,
			want: provider.Detection{Provider: "standard_webhooks", EventType: "user.created", EventID: "m", DeliveryID: "m"}},
		{name: "9 bitbucket", headers: "X-Hub-Signature: sha256=x\nX-Event-Key: repo:push\nX-Hook-UUID: u\nX-Request-UUID: r\nX-Request-Id: proxy",
			want: provider.Detection{Provider: "bitbucket", EventType: "repo:push", DeliveryID: "r"}},
		{name: "9 bitbucket data center", headers: "X-Hub-Signature: sha256=x\nX-Event-Key: repo:refs_changed\nX-Request-Id: r",
			want: provider.Detection{Provider: "bitbucket_server", EventType: "repo:refs_changed", DeliveryID: "r"}},
		{name: "9 bitbucket with little", headers: "X-Hub-Signature: sha256=x\nX-Event-Key: repo:push", want: provider.Detection{Provider: "bitbucket", EventType: "repo:push"}},
		{name: "9 jira", headers: "X-Hub-Signature: sha256=x\nX-Atlassian-Webhook-Identifier: w", body: `{"webhookEvent":"jira:issue_created"}`,
			want: provider.Detection{Provider: "jira", EventType: "jira:issue_created", DeliveryID: "w"}},
		{name: "9 intercom", headers: "X-Hub-Signature: sha1=x", body: `{"type":"notification_event","topic":"user.created","id":"notif_1"}`,
			want: provider.Detection{Provider: "intercom", EventType: "user.created", EventID: "notif_1"}},
		{name: "9 meta", headers: "X-Hub-Signature-256: sha256=x", body: `{"object":"page","entry":[{}]}`, want: provider.Detection{Provider: "meta"}},
		{name: "9 whatsapp", headers: "X-Hub-Signature-256: sha256=x", body: `{"object":"whatsapp_business_account","entry":[]}`, want: provider.Detection{Provider: "whatsapp"}},
		{name: "9 whatsapp without a signature", headers: "User-Agent: facebookexternalua", body: `{"object":"whatsapp_business_account","entry":[]}`, want: provider.Detection{Provider: "whatsapp"}},
		{name: "9 meta without a signature", headers: "User-Agent: facebookexternalua", body: `{"object":"page","entry":[]}`, want: provider.Detection{Provider: "meta"}},
		{name: "9 otherwise unknown", headers: "X-Hub-Signature-256: sha256=x", body: `{"repository":{"full_name":"a/b"},"sender":{"login":"x"}}`, want: provider.Detection{Provider: "unknown"}},
		{name: "9 the endpoint breaks the tie", headers: "X-Hub-Signature-256: sha256=x", body: `Hello, World!`, hint: "github", want: provider.Detection{Provider: "github"}},
		{name: "10 lemonsqueezy", headers: "X-Signature: x\nX-Event-Name: order_created", body: `{"meta":{"event_name":"order_created"}}`, want: provider.Detection{Provider: "lemonsqueezy", EventType: "order_created"}},
		{name: "10 clickup", headers: "X-Signature: x", body: `{"event":"taskCreated","webhook_id":"w"}`, want: provider.Detection{Provider: "clickup"}},
		{name: "10 segment", headers: "X-Signature: x", body: `{"type":"track","messageId":"m"}`, want: provider.Detection{Provider: "segment"}},
		{name: "10 otherwise unknown", headers: "X-Signature: x", body: `{"type":"track"}`, want: provider.Detection{Provider: "unknown"}},
		{name: "11 gocardless", headers: "Webhook-Signature: " + hex64, body: `{"events":[]}`, want: provider.Detection{Provider: "gocardless"}},
		{name: "11 base64 is another's", headers: "Webhook-Signature: " + base64ed, want: provider.Detection{Provider: "unknown"}},
		{name: "11 a list is another's", headers: "Webhook-Signature: time=1,sig1=" + hex64, want: provider.Detection{Provider: "unknown"}},
		{name: "12 fastspring", headers: "X-FS-Signature: " + base64ed, want: provider.Detection{Provider: "fastspring"}},
		{name: "12 formstack is not known", headers: "X-FS-Signature: sha256=" + hex64, want: provider.Detection{Provider: "unknown"}},
		{name: "13 event grid before cloudevents", headers: "aeg-event-type: Notification\nce-id: 1\nce-type: t", body: `[{"eventType":"Microsoft.Storage.BlobCreated","id":"i"}]`,
			want: provider.Detection{Provider: "azure_event_grid", EventType: "Microsoft.Storage.BlobCreated", EventID: "i"}},
		{name: "13 twilio events", headers: "Content-Type: application/cloudevents-batch+json", body: `[{"specversion":"1.0","type":"com.twilio.messaging.message.sent","id":"EZ1"}]`,
			want: provider.Detection{Provider: "twilio", EventType: "com.twilio.messaging.message.sent", EventID: "EZ1"}},
		{name: "13 quickbooks cloudevents", headers: "intuit-signature: x\nce-id: 1\nce-type: t", body: `[{"type":"qbo.customer.created.v1","id":"1"}]`,
			want: provider.Detection{Provider: "quickbooks", EventType: "qbo.customer.created.v1"}},
		{name: "13 twilio event, structured", headers: "Content-Type: application/cloudevents+json", body: `{"specversion":"1.0","type":"com.twilio.x","id":"EZ1","source":"s"}`,
			want: provider.Detection{Provider: "twilio", EventType: "com.twilio.x", EventID: "EZ1"}},
		{name: "13 twilio event, binary", headers: "ce-id: EZ1\nce-type: com.twilio.x\nce-source: s\nce-specversion: 1.0", want: provider.Detection{Provider: "twilio"}},
		{name: "14 cloudevents binary", headers: "ce-id: 1\nce-type: com.example.x\nce-source: /s\nce-specversion: 1.0",
			want: provider.Detection{Provider: "cloudevents", EventType: "com.example.x", EventID: "1"}},
		{name: "14 cloudevents structured", headers: "Content-Type: application/cloudevents+json; charset=utf-8", body: `{"type":"t","id":"i"}`,
			want: provider.Detection{Provider: "cloudevents", EventType: "t", EventID: "i"}},
		{name: "15 generic names are never enough", headers: "Idempotency-Key: k\nX-Request-Id: r\nX-Webhook-Id: w", body: `{"id":"x"}`, want: provider.Detection{Provider: "unknown"}},
		{name: "15 nothing", want: provider.Detection{Provider: "unknown"}},

		{name: "a stripe endpoint that gets github", headers: "X-GitHub-Event: push", body: `{"object":"event","id":"evt_1","type":"charge.succeeded"}`, hint: "stripe",
			want: provider.Detection{Provider: "github", EventType: "push"}},
		{name: "stripe by its header", headers: "Stripe-Signature: t=1,v1=x", body: `not json`, want: provider.Detection{Provider: "stripe"}},
		{name: "stripe by three fields", body: ` {"id":"evt_1", "object":"event", "data":{"type":"x","id":"y"}, "type":"charge.succeeded"}`, want: provider.Detection{Provider: "stripe", EventType: "charge.succeeded", EventID: "evt_1"}},
		{name: "two fields of stripe are a guess", body: `{"id":"evt_1","type":"charge.succeeded"}`, want: provider.Detection{Provider: "unknown"}},
		{name: "a hint decides nothing alone", body: `{"id":"evt_1","type":"charge.succeeded"}`, hint: "stripe", want: provider.Detection{Provider: "unknown"}},
		{name: "two providers' headers: the table's order", headers: "X-Slack-Signature: v0=x\nStripe-Signature: t=1", body: `{}`, want: provider.Detection{Provider: "stripe"}},
		{name: "two providers' headers, the other way around", headers: "Stripe-Signature: t=1\nX-Slack-Signature: v0=x", body: `{}`, want: provider.Detection{Provider: "stripe"}},
		{name: "two providers' headers: the endpoint breaks the tie", headers: "Stripe-Signature: t=1\nX-Slack-Signature: v0=x", body: `{}`, hint: "slack", want: provider.Detection{Provider: "slack"}},
		{name: "a header beats a user agent", headers: "User-Agent: GitHub-Hookshot/1\nX-Shopify-Topic: orders/create", want: provider.Detection{Provider: "shopify", EventType: "orders/create"}},
		{name: "a user agent beats a body", headers: "User-Agent: GitHub-Hookshot/1", body: `{"object":"event","id":"evt_1","type":"x"}`, want: provider.Detection{Provider: "github"}},
		{name: "generic_hmac is never detected", headers: "X-Signature: " + hex64, hint: "generic_hmac", want: provider.Detection{Provider: "unknown"}},

		{name: "relays never win", headers: "x-hookdeck-eventid: e\nx-hookdeck-signature: s\nCF-Ray: r\nX-GitHub-Event: ping", want: provider.Detection{Provider: "github", EventType: "ping", Relay: "cloudflare"}},
		{name: "a relay alone", headers: "X-Hookdeck-Original-IP: e", want: provider.Detection{Provider: "unknown", Relay: "hookdeck"}},

		{name: "slack command", headers: form, body: "command=%2Fdeploy&team_id=T1&response_url=https%3A%2F%2Fhooks.slack.com%2Fx", want: provider.Detection{Provider: "slack", EventType: "slash_command"}},
		{name: "twilio form without headers", headers: form, body: "AccountSid=AC1&MessageSid=SM1&MessageStatus=sent", want: provider.Detection{Provider: "twilio", EventType: "message.sent"}},
		{name: "twilio sms by status", headers: "X-Twilio-Signature: x\n" + form, body: "SmsStatus=received", want: provider.Detection{Provider: "twilio", EventType: "message.received"}},
		{name: "twilio sms by id", headers: "X-Twilio-Signature: x\n" + form, body: "MessageSid=SM1", want: provider.Detection{Provider: "twilio", EventType: "message.received"}},
		{name: "twilio recording", headers: "X-Twilio-Signature: x\n" + form, body: "RecordingStatus=completed&CallSid=CA1", want: provider.Detection{Provider: "twilio", EventType: "recording.completed"}},
		{name: "twilio event type wins", headers: "X-Twilio-Signature: x\n" + form, body: "EventType=onMessageAdded&MessageSid=IM1", want: provider.Detection{Provider: "twilio", EventType: "onMessageAdded"}},
		{name: "sentry joins two sources", headers: "Sentry-Hook-Resource: issue\nRequest-ID: r", body: `{"action":"created"}`, want: provider.Detection{Provider: "sentry", EventType: "issue.created", DeliveryID: "r"}},
		{name: "telegram", headers: "X-Telegram-Bot-Api-Secret-Token: s", body: `{"update_id":7,"callback_query":{}}`, want: provider.Detection{Provider: "telegram", EventType: "callback_query", EventID: "7"}},
		{name: "mandrill", headers: "X-Mandrill-Signature: s\n" + form, body: `mandrill_events=%5B%7B%22event%22%3A%22open%22%2C%22_id%22%3A%22i%22%7D%5D`, want: provider.Detection{Provider: "mandrill", EventType: "open", EventID: "i"}},
		{name: "the type of an event is bounded", headers: "X-GitHub-Event: " + strings.Repeat("a", 600), want: provider.Detection{Provider: "github", EventType: strings.Repeat("a", 512)}},
		{name: "whose bound is within a character", headers: "Stripe-Signature: t=1", body: `{"type":"` + strings.Repeat("a", 511) + `é"}`, want: provider.Detection{Provider: "stripe", EventType: strings.Repeat("a", 511)}},
		{name: "which is for eyes", headers: "Stripe-Signature: t=1", body: `{"type":"a\u0001b","id":"\u007f\u00e9"}`, want: provider.Detection{Provider: "stripe", EventType: "a\uFFFDb", EventID: "\uFFFDé"}},
		{name: "which is no list and no object", headers: "Stripe-Signature: t=1", body: `{"type":null,"id":{"a":1}}`, want: provider.Detection{Provider: "stripe"}},
		{name: "members with marks of JSON in them", headers: "Stripe-Signature: t=1", body: "\r\n{\t\"a, b} ]\"\r\n:\t\"c, d} ] \\\" e\" , \"type\" : \"x\"}", want: provider.Detection{Provider: "stripe", EventType: "x"}},
		{name: "members behind many", headers: "Stripe-Signature: t=1", body: `{` + strings.Repeat(`"a":1,`, 40) + `"type":"x"}`, want: provider.Detection{Provider: "stripe", EventType: "x"}},
		{name: "a header of a long name", headers: "X-" + strings.Repeat("Long-", 20) + ": 1\nStripe-Signature: t=1", want: provider.Detection{Provider: "stripe"}},
		{name: "not compressed, whatever it says", headers: "Stripe-Signature: t=1\nContent-Encoding: gzip", body: `{"type":"x"}`, want: provider.Detection{Provider: "stripe", EventType: "x"}},
		{name: "behind a byte order mark", headers: "Stripe-Signature: t=1", body: "\xef\xbb\xbf {\"id\":\"evt_1\",\"type\":\"x\"}",
			want: provider.Detection{Provider: "stripe", EventType: "x", EventID: "evt_1"}},
		{name: "an escaped member name", headers: "Stripe-Signature: t=1", body: `{"\u0074ype":"a\u0062"}`, want: provider.Detection{Provider: "stripe", EventType: "ab"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &provider.Request{Method: "POST", Headers: fields(c.headers), Body: []byte(c.body), Hint: c.hint}
			if got := provider.Detect(r); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// What the senders' own libraries and documents call the type of an event.
func TestDetectNamesTheTypeAsTheSenderDoes(t *testing.T) {
	for _, c := range []struct{ headers, body, want string }{
		{"BOX-SIGNATURE-PRIMARY: x", `{"type":"webhook_event","id":"e","trigger":"FILE.UPLOADED"}`, "FILE.UPLOADED"},
		{"x-line-signature: x", `{"destination":"U1","events":[{"type":"message","webhookEventId":"e"}]}`, "message"},
		{"x-nylas-signature: x", `{"specversion":"1.0","type":"message.created","source":"/google/emails/realtime","id":"e","data":{}}`, "message.created"},
		{"x-paystack-signature: x", `{"event":"charge.success","data":{}}`, "charge.success"},
		{"X-Razorpay-Signature: x", `{"entity":"event","event":"payment.captured","payload":{}}`, "payment.captured"},
		{"Typeform-Signature: x", `{"event_id":"e","event_type":"form_response","form_response":{}}`, "form_response"},
		{"X-Trello-Webhook: x", `{"model":{"id":"b"},"action":{"id":"a","type":"updateCard"}}`, "updateCard"},
		{"x-webflow-signature: x", `{"triggerType":"form_submission","payload":{}}`, "form_submission"},
		{"WorkOS-Signature: x", `{"id":"event_1","event":"dsync.user.created","data":{}}`, "dsync.user.created"},
	} {
		d := provider.Detect(&provider.Request{Method: "POST", Headers: fields(c.headers), Body: []byte(c.body), ReceivedAt: received})
		if d.EventType != c.want {
			t.Errorf("%s: %+v, want %s", c.headers, d, c.want)
		}
	}
}

// Fields of the body that the reference names together decide where no header does: senders whose signature is a matter
// of choice send none by which they could be known.
func TestDetectByTheBodyAlone(t *testing.T) {
	type row struct{ headers, body, provider, eventType string }
	rows := []row{
		{body: `{"action":"opened","repository":{"full_name":"a/b"},"sender":{"login":"x"}}`, provider: "github"},
		{body: `{"zen":"z","hook_id":1,"hook":{"type":"App"}}`, provider: "github"},
		{headers: form, body: `payload=%7B%22repository%22%3A%7B%22full_name%22%3A%22a%2Fb%22%7D%2C%22sender%22%3A%7B%22login%22%3A%22x%22%7D%7D`, provider: "github"},
		{body: `{"repository":{"full_name":"a/b"}}`, provider: "unknown"},
		{headers: "X-Hub-Signature-256: sha256=x", body: `{"object":"page","entry":[]}`, provider: "meta"},
		{headers: "X-Hub-Signature-256: sha256=x", body: `{"object":"page","entry":7}`, provider: "unknown"},
		{headers: form, body: "AccountSid=1&MessageSid=SM1", provider: "unknown"},
		{headers: form, body: "payload=%7B%22text%22%3A%22hello%22%7D", provider: "unknown"},
		{body: `{"actor":{},"repository":{"full_name":"a/b"}}`, provider: "bitbucket"},
		{headers: "X-Hub-Signature: sha256=x", body: `{"actor":{},"repository":{"full_name":"a/b"}}`, provider: "unknown"},
		{body: `{"version":1,"application_id":"1","type":1,"event":{"type":"APPLICATION_AUTHORIZED"}}`, provider: "discord", eventType: "APPLICATION_AUTHORIZED"},
		{body: `{"application_id":"1","type":2,"token":"t","id":"i"}`, provider: "discord"},
		{body: `{"application_id":"1","type":"two","token":"t","id":"i"}`, provider: "unknown"},
		{body: `{"event":{"event_type":"incident.triggered","data":{}}}`, provider: "pagerduty", eventType: "incident.triggered"},
		{body: `{"triggerEvent":"BOOKING_CREATED","payload":{}}`, provider: "cal_com", eventType: "BOOKING_CREATED"},
		{body: `{"event":"invitee.created","created_by":"u","payload":{}}`, provider: "calendly", eventType: "invitee.created"},
		{body: `{"event":"order.created","created_by":"u","payload":{}}`, provider: "unknown"},
		{body: `{"events":[{"action":"changed","resource":{"gid":"1","resource_type":"task"}}]}`, provider: "asana"},
		{body: `{"id":"n","type":"page.created","workspace_id":"w"}`, provider: "notion", eventType: "page.created"},
		{body: `{"event":"envelope-completed","data":{"envelopeId":"e","accountId":"a"}}`, provider: "docusign", eventType: "envelope-completed"},
		{body: `{"sys":{"type":"Entry","id":"e"}}`, provider: "contentful"},
	}
	for _, kind := range strings.Fields("message edited_message channel_post edited_channel_post business_connection business_message edited_business_message" +
		" deleted_business_messages message_reaction message_reaction_count inline_query chosen_inline_result callback_query shipping_query pre_checkout_query" +
		" purchased_paid_media poll poll_answer my_chat_member chat_member chat_join_request chat_boost removed_chat_boost") {
		rows = append(rows, row{body: `{"update_id":7,"` + kind + `":{}}`, provider: "telegram", eventType: kind})
	}
	for _, r := range rows {
		got := provider.Detect(&provider.Request{Method: "POST", Headers: fields(r.headers), Body: []byte(r.body)})
		if got.Provider != r.provider || got.EventType != r.eventType {
			t.Errorf("%s: %+v", r.body, got)
		}
	}
}

// A request that claims to be from everybody is detected by the order of the table, whatever the order of its headers.
func TestDetectAllAtOnce(t *testing.T) {
	var h hookglass.Headers
	for _, info := range provider.Providers() {
		for _, name := range provider.SignatureHeaders(info.ID) {
			h = append(h, hookglass.Header{Name: strings.TrimSuffix(name, "*"), Value: "x"})
		}
	}
	h = append(h, fields("X-GitHub-Event: push\nX-Gitea-Event: push\nsvix-id: 1\nwebhook-id: 1\nX-Gitlab-Event: Push Hook")...)
	for range h {
		h = append(h[1:], h[0])
		if got := provider.Detect(&provider.Request{Method: "POST", Headers: h, Body: []byte(`{"object":"event","id":"evt_1","type":"t"}`)}); got.Provider != "gitea" {
			t.Fatalf("%+v", got)
		}
	}
}

func TestDetectDecodesContentEncoding(t *testing.T) {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	w.Write([]byte(`{"type":"charge.succeeded","padding":"`))
	w.Write(make([]byte, 4<<20)) // decodes to far more than is looked at
	w.Close()
	r := &provider.Request{Method: "POST", Headers: fields("Stripe-Signature: t=1\nContent-Encoding: gzip"), Body: buf.Bytes()}
	if got := provider.Detect(r); got.EventType != "charge.succeeded" {
		t.Errorf("%+v", got)
	}
}
