package capture_test

import (
	"bytes"
	"compress/gzip"
	"reflect"
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
)

func TestTheDetailFormNamesRelaysEnvelopesAndVariants(t *testing.T) {
	header := func(pairs ...string) (h hookglass.Headers) {
		for i := 0; i < len(pairs); i += 2 {
			h = append(h, hookglass.Header{Name: pairs[i], Value: pairs[i+1]})
		}
		return h
	}
	for _, c := range []struct {
		name, provider        string
		headers               hookglass.Headers
		body                  string
		relay, inner, flavour string
		action                string
	}{
		{name: "nothing of the kind", provider: "github", headers: header("X-GitHub-Event", "push"), body: "{}"},
		{name: "an action", provider: "github", headers: header("X-GitHub-Event", "pull_request"), body: `{"action":"opened"}`, action: "opened"},
		{name: "an action in a form", provider: "github", headers: header("X-GitHub-Event", "issues", "Content-Type", "application/x-www-form-urlencoded"),
			body: "payload=%7B%22action%22%3A%22closed%22%7D", action: "closed"},
		{name: "another's word", provider: "stripe", headers: header("Stripe-Signature", "t=1"), body: `{"action":"opened"}`},
		{name: "a gateway", provider: "shopify", headers: header("X-Shopify-Topic", "orders/create", "X-Hookdeck-EventID", "evt_1"), body: "{}", relay: "hookdeck"},
		{name: "an envelope", provider: "aws_sns", headers: header("X-Amz-Sns-Message-Type", "Notification"), inner: "stripe",
			body: `{"Type":"Notification","Message":"{\"object\":\"event\",\"id\":\"evt_1\",\"type\":\"charge.succeeded\"}"}`},
		{name: "a variant", provider: "gitea", headers: header("X-Forgejo-Event", "push", "X-GitHub-Event", "push"), body: "{}", flavour: "forgejo"},
		{name: "the outer type of a callback", provider: "slack", headers: header("X-Slack-Signature", "v0=00"), flavour: "event_callback",
			body: `{"type":"event_callback","event":{"type":"app_mention"}}`},
	} {
		e := &hookglass.Event{Type: hookglass.EventWebhook, Method: "POST", Provider: c.provider, Payload: &hookglass.Payload{Headers: c.headers, Body: []byte(c.body)}}
		d := capture.Detail(e)
		if d.Relay == nil || *d.Relay != c.relay || d.InnerProvider != c.inner || d.Flavour != c.flavour {
			t.Errorf("%s: relay %v, inner %q, flavour %q", c.name, d.Relay, d.InnerProvider, d.Flavour)
		}
		if d.ProviderAction != c.action {
			t.Errorf("%s: action %q", c.name, d.ProviderAction)
		}
		if list := api.FromEvent(e); !reflect.DeepEqual(d.Event, list) { // the detail form adds, and changes nothing
			t.Errorf("%s: the detail form says %+v, the list form %+v", c.name, d.Event, list)
		}
	}
}

// The parts of a compressed body are those of what it holds, as far as 8 MiB.
func TestAMultipartBodyIsReadThroughItsCompression(t *testing.T) {
	part := func(name, content string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + content + "\r\n"
	}
	small := part("one", "1") + part("two", "22") + "--b--\r\n"
	large := part("one", "1") + part("two", strings.Repeat("2", 8<<20)) + part("three", "3") + "--b--\r\n"
	packed := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		return b.String()
	}
	for name, c := range map[string]struct {
		body, coding string
		want         []string
	}{
		"plain":      {small, "", []string{"one", "two"}},
		"compressed": {packed(small), "gzip", []string{"one", "two"}},
		"too large":  {packed(large), "gzip", []string{"one"}},
		"large":      {large, "", []string{"one", "two", "three"}},
	} {
		e := &hookglass.Event{
			Type: hookglass.EventWebhook, Method: "POST", ContentType: "multipart/form-data; boundary=b",
			Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "Content-Encoding", Value: c.coding}}, Body: []byte(c.body)},
		}
		var got []string
		for _, p := range capture.Detail(e).BodyParts {
			got = append(got, p.Name)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: the parts %q, want %q", name, got, c.want)
		}
		for i, want := range c.want {
			if p, err := capture.Part(e, i); err != nil || p.Name != want {
				t.Errorf("%s: part %d is %q: %v", name, i, p.Name, err)
			}
		}
		if _, err := capture.Part(e, len(c.want)); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("%s: there is one more part: %v", name, err)
		}
	}
}
