package email_test

import (
	"strings"
	"testing"

	"hookglass/internal/email"
)

// wire writes a message with the line ends of the wire.
func wire(lines ...string) []byte { return []byte(strings.Join(lines, "\r\n") + "\r\n") }

func TestAMessageOfTwoBodiesAndAnAttachment(t *testing.T) {
	raw := wire(
		"From: =?UTF-8?Q?Ad=C3=A9?= <ada@example.com>",
		"To: \"Babbage, Charles\" <c@example.org>, bob@example.org",
		"Subject: =?utf-8?b?R3LDvMOfZSA=?=",
		" =?utf-8?b?YXVzIEvDtmxu?=",
		"Date: Fri, 20 Nov 2026 18:37:33 +0100 (CET)",
		"Message-ID: <1@example.com>",
		"MIME-Version: 1.0",
		"Content-Type: multipart/mixed; boundary=\"outer\"",
		"",
		"preamble",
		"--outer",
		"Content-Type: multipart/alternative; boundary=inner",
		"",
		"--inner",
		"Content-Type: text/plain; charset=iso-8859-1",
		"Content-Transfer-Encoding: quoted-printable",
		"",
		"caf=E9 =",
		"au lait",
		"--inner",
		"Content-Type: text/html; charset=utf-8",
		"",
		"<p>café</p>",
		"--inner--",
		"--outer",
		"Content-Type: application/pdf; name=\"fallback.pdf\"",
		"Content-Disposition: attachment; filename*=UTF-8''Pr%C3%BCfung%20../x.pdf",
		"Content-Transfer-Encoding: base64",
		"",
		"aGVsbG8=",
		"--outer--",
	)
	m := email.Parse(raw)
	for _, c := range []struct{ what, got, want string }{
		{"from", m.From, "Adé <ada@example.com>"},
		{"to", m.To, `"Babbage, Charles" <c@example.org>, bob@example.org`},
		{"subject", m.Subject, "Grüße aus Köln"},
		{"date", m.Date, "Fri, 20 Nov 2026 18:37:33 +0100 (CET)"},
		{"message id", m.MessageID, "<1@example.com>"},
		{"text", m.Text, "café au lait"},
		{"html", m.HTML, "<p>café</p>"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, want %q", c.what, c.got, c.want)
		}
	}
	if len(m.Faults) > 0 {
		t.Errorf("faults %v", m.Faults)
	}
	content, file, err := email.Attachment(raw, 0)
	want := email.File{Filename: "x.pdf", ContentType: "application/pdf", Size: 5, Disposition: "attachment"}
	if err != nil || string(content) != "hello" || file != want || m.Attachments[0] != want {
		t.Errorf("attachment %q %+v %v", content, file, err)
	}
	if _, _, err := email.Attachment(raw, 1); err == nil {
		t.Error("there is a second attachment")
	}
}
