package email_test

import (
	"net/netip"
	"strings"
	"testing"

	"hookglass/internal/email"
)

func found(provider, relay, kind, eventType string) email.Detection {
	return email.Detection{Provider: provider, Relay: relay, Kind: kind, EventType: eventType}
}

// Headers of real mails, as far as they tell something.
func TestDetect(t *testing.T) {
	for _, c := range []struct {
		name     string
		header   string // lines, | between them
		mailFrom string
		want     email.Detection
	}{
		{"a plain mail", "From: a@example.com|Subject: Hi", "a@example.com", found("unknown", "", "message", "message")},
		{"From alone names no one", "From: notifications@github.com", "a@example.com", found("unknown", "", "message", "message")},
		{"GitHub", "From: n@github.com|Message-ID: <o/r/1@github.com>|X-GitHub-Reason: mention|X-GitHub-Sender: ada|List-ID: o/r <r.o.github.com>|Precedence: list", "", found("github", "", "notification", "mention")},
		{"GitHub by SendGrid", "X-GitHub-Recipient: ada|X-SG-EID: =?us-ascii?Q?abc?=", "", found("github", "sendgrid", "notification", "notification")},
		{"GitHub by its signature", "DKIM-Signature: v=1; a=rsa-sha256; d=github.com; s=pf2023", "noreply@example.com", found("github", "", "notification", "notification")},
		{"Gitea speaks as GitHub and GitLab", "X-GitHub-Reason: assign|X-GitLab-NotificationReason: assign", "", found("gitea", "", "notification", "assign")},
		{"GitLab", "X-GitLab-Project: p|X-GitLab-NotificationReason: own_activity|Auto-Submitted: auto-generated", "", found("gitlab", "", "notification", "own_activity")},
		{"Jira", "X-JIRA-FingerPrint: abc|Precedence: bulk", "", found("jira", "", "notification", "notification")},
		{"Zendesk", "X-Mailer: Zendesk Mailer|Message-ID: <x_sprut@zendesk.com>", "", found("zendesk", "", "notification", "notification")},
		{"Stripe", "X-Stripe-EID: em_1|Feedback-ID: ::1.us-east-1.x:AmazonSES", "", found("stripe", "ses", "notification", "notification")},
		{"Stripe's domain at the end of another", "Message-ID: <1@evilstripe.com>", "x@notstripe.com", found("unknown", "", "message", "message")},
		{"Discourse", "X-Discourse-Post-Id: 1|X-Discourse-Topic-Id: 2", "", found("discourse", "", "notification", "notification")},
		{"Freshdesk by a name that begins so", "X-Freshdesk-Ticket: 1", "", found("freshdesk", "", "notification", "notification")},
		{"Mailman", "X-Mailman-Version: 2.1|List-Id: <l.example.com>|Precedence: list", "", found("mailman", "", "list", "list")},
		{"a list by Gmail", "X-Mailing-List: linux-kernel@vger.kernel.org|Message-ID: <x@mail.gmail.com>|Precedence: bulk", "", found("vger", "gmail", "list", "list")},
		{"Google Groups", "X-Google-Group-Id: 1|Precedence: list", "", found("google_groups", "", "list", "list")},
		{"SES", "X-SES-Outgoing: 2026.11.20-54.240.1.1|Message-ID: <1@us-east-1.amazonses.com>", "", found("ses", "", "message", "message")},
		{"WorkMail sends by SES", "X-Wm-Sent-Timestamp: 1|X-SES-Outgoing: x|Message-ID: <1@email.amazonses.com>", "", found("ses", "amazon_workmail", "message", "message")},
		{"SendGrid", "X-SG-EID: abc|Received: by geopod-ismtpd-1 (SG)", "bounces+1-a-b=c@em.example.com", found("sendgrid", "", "message", "message")},
		{"SendGrid by its host", "Received: from o1.ptr.sendgrid.net (o1.ptr.sendgrid.net [192.0.2.1])", "", found("sendgrid", "", "message", "message")},
		{"Mailgun", "X-Mailgun-Sid: x", "", found("mailgun", "", "message", "message")},
		{"Postmark", "X-PM-Message-Id: 1|X-PM-Tag: welcome", "", found("postmark", "", "message", "message")},
		{"Proton shares a header with Postmark", "X-Pm-Message-ID: 0123|Feedback-ID: 1:user:proton", "", found("proton", "", "message", "message")},
		{"Mailchimp", "X-MC-User: 1|List-Unsubscribe: <https://x>", "", found("mailchimp", "", "newsletter", "newsletter")},
		{"PowerMTA shares a header with SparkPost", "X-MSFBL: YWJj", "", found("unknown", "", "message", "message")},
		{"Gmail", "X-Google-DKIM-Signature: v=1|X-Gm-Message-State: x", "", found("gmail", "", "message", "message")},
		{"what Google's receiving side adds is no sign", "X-Google-Smtp-Source: x|X-Received: by 2002:a", "", found("unknown", "", "message", "message")},
		{"Outlook", "X-MS-Exchange-CrossTenant-Id: x|Thread-Topic: t", "", found("outlook", "", "message", "message")},
		{"git send-email", "X-Mailer: git-send-email 2.50", "", found("git_send_email", "", "message", "message")},

		{"an auto-reply", "Auto-Submitted: auto-replied (vacation)|Return-Path: <>", "", found("unknown", "", "auto_reply", "auto_reply")},
		{"an auto-reply by its subject", "Subject: Automatic reply: Hello", "a@example.com", found("unknown", "", "auto_reply", "auto_reply")},
		{"suppressing auto-replies is not one", "X-Auto-Response-Suppress: All", "a@example.com", found("unknown", "", "message", "message")},
		{"Auto-Submitted: no", "Auto-Submitted: no", "a@example.com", found("unknown", "", "message", "message")},
		{"a machine's mail", "Auto-Submitted: auto-generated", "a@example.com", found("unknown", "", "notification", "notification")},
		{"a list of no known software", "List-Id: <l.example.com>|List-Unsubscribe: <https://x>", "", found("unknown", "", "list", "list")},
		{"a newsletter of no known sender", "List-Unsubscribe: <https://x>", "", found("unknown", "", "newsletter", "newsletter")},
		{"a bounce of old", "From: MAILER-DAEMON@example.com|Return-Path: <>|Subject: failure notice", "", found("unknown", "", "bounce", "bounce")},
		{"a bounce by Exim", "From: Mail Delivery System <Mailer-Daemon@x>|X-Failed-Recipients: a@example.com|Auto-Submitted: auto-replied", "", found("unknown", "", "bounce", "bounce")},
		{"SES by the return path of a file", "Return-Path: <0101@eu-west-1.amazonses.com>", "", found("ses", "", "message", "message")},
		{"a postmaster's mail as a file", "From: postmaster@example.com", "", found("unknown", "", "message", "message")},
		{"a postmaster who writes himself", "From: postmaster@example.com", "postmaster@example.com", found("unknown", "", "message", "message")},
	} {
		raw := []byte(strings.ReplaceAll(c.header, "|", "\r\n") + "\r\n\r\n")
		if got := email.Detect(email.Parse(raw), email.Envelope{MailFrom: c.mailFrom}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := email.Detect(email.Parse(wire("X-MSFBL: abc=|eyJyIjoi", "")), email.Envelope{}); got.Provider != "sparkpost" {
		t.Errorf("SparkPost: %+v", got)
	}
	if got := email.Detect(email.Parse(wire("From: postmaster@example.com", "")), email.Envelope{RemoteIP: netip.MustParseAddr("192.0.2.1")}); got.Kind != "bounce" {
		t.Errorf("a bounce by its null sender: %+v", got)
	}
}

// RFC 3464, 5965, 8098, 6047.
func TestKindsOfReports(t *testing.T) {
	status := func(actions ...string) string {
		s := "Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.com\r\n"
		for _, a := range actions {
			s += "\r\nFinal-Recipient: rfc822; a@example.com\r\nAction: " + a + "\r\n"
		}
		return s
	}
	report := func(kind string, parts ...string) string {
		return strings.Replace(multi("report", append([]string{plain}, parts...)...), "boundary=b", "boundary=b; report-type="+kind, 1)
	}
	for _, c := range []struct{ name, raw, want string }{
		{"failed", report("delivery-status", status("failed")), "bounce"},
		{"delayed", report("delivery-status", status("Delayed")), "delivery_delayed"},
		{"delivered", report("delivery-status", status("delivered")), "delivery_report"},
		{"delayed, in all letters", report("delivery-status", strings.Replace(status("delayed"), "message/", "message/global-", 1)), "delivery_delayed"},
		{"the worst counts", report("delivery-status", status("delivered", "delayed", "failed")), "bounce"},
		{"no action", report("delivery-status", status()), "bounce"},
		{"a complaint", report("feedback-report", "Content-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse"), "complaint"},
		{"a receipt", report("disposition-notification", "Content-Type: message/disposition-notification\r\n\r\nDisposition: x"), "read_receipt"},
		{"an invitation", multi("alternative", plain, "Content-Type: text/calendar; method=request\r\n\r\nBEGIN:VCALENDAR"), "calendar"},
		{"a calendar that is published", multi("mixed", plain, "Content-Type: text/calendar; method=PUBLISH\r\n\r\nBEGIN:VCALENDAR"), "message"},
	} {
		m := email.Parse([]byte(c.raw))
		if got := email.Detect(m, email.Envelope{MailFrom: "x@example.com"}); got.Kind != c.want {
			t.Errorf("%s: %+v, want %s", c.name, got, c.want)
		}
		if m.Text != "text" {
			t.Errorf("%s: text %q", c.name, m.Text)
		}
	}
}
