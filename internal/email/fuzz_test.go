package email_test

import (
	"bytes"
	"mime"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-message/charset"

	"hookglass/internal/email"
)

func FuzzParse(f *testing.F) {
	for _, s := range shapes {
		f.Add([]byte(s.raw))
	}
	f.Add(bomb(30))
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		m := email.Parse(raw)
		holds(t, raw, m)
		email.Detect(m, email.Envelope{})
		m.HeaderObject()
		for i := range m.Attachments {
			content, file, err := email.Attachment(raw, i)
			if err != nil || int64(len(content)) != file.Size || file != m.Attachments[i] {
				t.Errorf("attachment %d: %+v %v", i, file, err)
			}
		}
		if !bytes.Equal(raw, before) {
			t.Error("the message was changed")
		}
	})
}

// FuzzAttachment reads any bytes in any encoding: the size that is told is the size that comes.
func FuzzAttachment(f *testing.F) {
	for _, encoding := range []string{"base64", "quoted-printable", "uuencode", "8bit", "x"} {
		f.Add(encoding, "aGVsbG8=\r\n=41=\r\n!!", "a.txt")
	}
	f.Fuzz(func(t *testing.T, encoding, content, name string) {
		raw := []byte("Content-Type: application/octet-stream; name*=" + name + "\r\nContent-Disposition: attachment; filename=" + name +
			"\r\nContent-ID: <" + name + ">\r\nContent-Transfer-Encoding: " + encoding + "\r\n\r\n" + content)
		holds(t, raw, email.Parse(raw))
	})
}

// FuzzHeader decodes any value; where the standard library can decode a value of a well-formed header, both read the
// same.
func FuzzHeader(f *testing.F) {
	for _, s := range []string{"=?utf-8?q?caf=C3=A9?= x", "=?iso-8859-2?b?6Q==?=", "a =?utf-8?q?b?=", "\"a, b\" <c@d>, e@f (g)", "=?utf-8?b?w6k=?= =?utf-8?q?x?="} {
		f.Add(s)
	}
	words := &mime.WordDecoder{CharsetReader: charset.Reader}
	f.Fuzz(func(t *testing.T, value string) {
		raw := []byte("Subject: " + value + "\r\nFrom: " + value + "\r\nTo: " + value + "\r\nDate: " + value + "\r\n\r\n")
		m := email.Parse(raw)
		holds(t, raw, m)
		if !isPlain(value) || strings.Contains(strings.ToLower(value), "=?iso") || strings.Contains(strings.ToLower(value), "ascii") {
			return // windows-1252 is meant where ISO 8859-1 is said
		}
		want, err := words.DecodeHeader(value)
		if err != nil || strings.Contains(want, "=?") || !isPlain(strings.Map(asciiOnly, want)) || strings.Contains(want, "\uFFFD") || !utf8.ValidString(want) || strings.Contains(value, "??") {
			return
		}
		if want = strings.TrimSpace(want); m.Subject != want && strings.TrimSpace(m.Subject) != want {
			t.Errorf("%q is %q, the standard library reads %q", value, m.Subject, want)
		}
	})
}

func asciiOnly(r rune) rune {
	if 0x7f < r && r < 0xa0 || r == '\u2028' || r == '\u2029' {
		return 0
	}
	if r > 0x7e {
		return 'x'
	}
	return r
}

func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func FuzzExtract(f *testing.F) {
	f.Add("Your code is 123456", "<a href='https://example.com/?a=1'>x</a>", "Code")
	f.Add(unevenFolds, "", "Your verification code: a1b2c3")
	f.Add("123 456 код 验证码 ABC-123 https://x.y/z", "<style>", "İ code 1234")
	f.Fuzz(func(t *testing.T, text, html, subject string) {
		m := email.Parse([]byte(multi("alternative", "Content-Type: text/plain; charset=utf-8\r\n\r\n"+text, "Content-Type: text/html; charset=utf-8\r\n\r\n"+html)))
		m.Subject = email.Parse([]byte("Subject: " + subject + "\r\n\r\n")).Subject
		e := email.Extract(m)
		if e.Links == nil || e.Codes == nil || len(e.Links) > 100 || len(e.Codes) > 10 {
			t.Errorf("%d links, %d codes", len(e.Links), len(e.Codes))
		}
		for _, l := range e.Links {
			if u, err := url.Parse(l); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				t.Errorf("%q is no link: %v", l, err)
			}
		}
		for _, c := range e.Codes {
			if len(c) < 4 || len(c) > 12 || strings.Trim(c, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-") != "" {
				t.Errorf("%q is no code", c)
			}
		}
	})
}

func FuzzAuthenticate(f *testing.F) {
	dns := zone(f, `example.com TXT "v=spf1 include:example.com a mx ptr exists:%{i} -all"`, `s._domainkey.example.com TXT "v=DKIM1; p=AAAA"`, `_dmarc.example.com TXT "v=DMARC1; p=none"`)
	f.Add("a@example.com", "mail.example.com", []byte("DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=s; h=from; bh=AAAA; b=AAAA\r\nFrom: a@example.com\r\n\r\nx"))
	f.Fuzz(func(t *testing.T, mailFrom, helo string, raw []byte) {
		env := from("192.0.2.1", mailFrom)
		env.HELO = helo
		r := email.Authenticate(t.Context(), dns, env, raw)
		for what, result := range map[string]email.Result{"spf": r.SPF.Result, "dkim": r.DKIM.Result, "dmarc": r.DMARC.Result} {
			switch result {
			case email.Pass, email.Fail, email.SoftFail, email.Neutral, email.None, email.TempError, email.PermError:
			default:
				t.Errorf("%s is %q", what, result)
			}
		}
	})
}

func FuzzFromPost(f *testing.F) {
	f.Add("application/json", []byte(`{"FromFull":{"Email":"a@b"},"Headers":[{"Name":"X","Value":"y"}],"Attachments":[{"Name":"x","Content":"AA=="}]}`))
	f.Add("multipart/form-data; boundary=b", []byte("--b\r\nContent-Disposition: form-data; name=\"message-headers\"\r\n\r\n[[\"A\",\"b\"]]\r\n--b--\r\n"))
	f.Add("application/x-www-form-urlencoded", []byte("body-plain=x&recipient=y&subject=z"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		p, err := email.FromPost(contentType, body)
		if err != nil {
			return
		}
		m := email.Parse(p.Raw)
		holds(t, p.Raw, m)
		if p.Composed && len(m.Faults) > 0 {
			t.Errorf("a composed message has %v\n%q", m.Faults, p.Raw)
		}
	})
}

func FuzzMailbox(f *testing.F) {
	f.Add([]byte("Subject: x\r\n\r\nFrom x\r\n>From y"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		box := string(email.AppendMbox(nil, raw, "a@b", time.Unix(0, 0)))
		_, rest, _ := strings.Cut(box, "\n")
		var back strings.Builder
		for l := range strings.Lines(strings.TrimSuffix(rest, "\n")) {
			if quoted := strings.TrimLeft(l, ">"); strings.HasPrefix(quoted, "From ") {
				if quoted == l {
					t.Fatalf("a line begins another message: %q", box)
				}
				l = l[1:]
			}
			back.WriteString(l)
		}
		want := strings.ReplaceAll(string(raw), "\r\n", "\n")
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if back.String() != want {
			t.Errorf("%q comes back as %q", want, back.String())
		}
	})
}

func FuzzZone(f *testing.F) {
	f.Add([]byte("a.example 300 IN TXT \"x\" \"y\"\nb.example MX 10 c"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if z, err := email.ParseZone(text); err == nil {
			_, _ = z.LookupMX(t.Context(), "b.example")
		}
	})
}
