package email_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/cputime"
	"hookglass/internal/email"
)

// posted is a form as a service posts it.
type posted struct {
	b bytes.Buffer
	w *multipart.Writer
}

func newPosted(values ...string) *posted {
	p := &posted{}
	p.w = multipart.NewWriter(&p.b)
	for i := 0; i < len(values); i += 2 {
		_ = p.w.WriteField(values[i], values[i+1])
	}
	return p
}

func (p *posted) file(field, disposition, contentType, content string) *posted {
	w, _ := p.w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + field + `"; ` + disposition}, "Content-Type": {contentType}})
	_, _ = w.Write([]byte(content))
	return p
}

func (p *posted) read(t *testing.T) *email.Posted {
	t.Helper()
	_ = p.w.Close()
	got, err := email.FromPost(p.w.FormDataContentType(), p.b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

const sample = "Received: by mx\r\nDKIM-Signature: v=1; d=example.com\r\nFrom: a@example.com\r\nSubject: raw \xe9\r\n\r\nbody \x00\xff\r\n"

func TestRawMessagesAreKeptByteForByte(t *testing.T) {
	j, _ := json.Marshal(map[string]any{"FromFull": map[string]string{"Email": "a@example.com"}, "RawEmail": "Subject: é\r\n\r\nx", "OriginalRecipient": "in@example.org"})
	for _, c := range []struct {
		name, want string
		got        func(t *testing.T) *email.Posted
	}{
		{"bare", sample, func(t *testing.T) *email.Posted {
			p, err := email.FromPost("message/rfc822; charset=utf-8", []byte(sample))
			if err != nil {
				t.Fatal(err)
			}
			return p
		}},
		{"Mailgun MIME", sample, newPosted("recipient", "in@example.org", "sender", "a@example.com", "body-mime", sample).read},
		{"Mailgun MIME as a file", sample, newPosted("recipient", "in@example.org", "sender", "a@example.com").file("body-mime", `filename="m.eml"`, "message/rfc822", sample).read},
		{"SendGrid raw", sample, newPosted("email", sample, "envelope", `{"to":["in@example.org"],"from":"a@example.com"}`).read},
		{"SendGrid raw as a file", sample, newPosted("to", "x").file("email", `filename="m.eml"`, "message/rfc822", sample).read},
		{"Postmark with the raw mail", "Subject: é\r\n\r\nx", func(t *testing.T) *email.Posted {
			p, err := email.FromPost("application/json; charset=utf-8", j)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}},
	} {
		p := c.got(t)
		if string(p.Raw) != c.want || p.Composed {
			t.Errorf("%s: %q %v", c.name, p.Raw, p.Composed)
		}
	}
	form := url.Values{"body-mime": {sample}, "recipient": {"in@example.org, two@example.org"}, "sender": {"a@example.com"}}
	p, err := email.FromPost("application/x-www-form-urlencoded", []byte(form.Encode()))
	if err != nil || string(p.Raw) != sample || p.MailFrom != "a@example.com" || !slices.Equal(p.Recipients, []string{"in@example.org", "two@example.org"}) {
		t.Errorf("%+v %v", p, err)
	}
}

// Only an ampersand separates the fields of a form, and one that is encoded wrongly is taken as it stands: no mail is
// refused for it.
func TestAPostedFormIsReadAsItWasMeant(t *testing.T) {
	p, err := email.FromPost("application/x-www-form-urlencoded", []byte("recipient=in@example.org&from=a@example.com&subject=Ada;+50%&body-plain=a%3Bb;c&subject=more"))
	if err != nil {
		t.Fatal(err)
	}
	if m := email.Parse(p.Raw); m.Subject != "Ada;+50%" || strings.TrimSpace(m.Text) != "a;b;c" {
		t.Errorf("%q %q", m.Subject, m.Text)
	}
}

// same checks what a composed message gives back: the mail that the three services were told of.
func same(t *testing.T, p *email.Posted) {
	t.Helper()
	m := email.Parse(p.Raw)
	if !p.Composed || len(m.Faults) > 0 {
		t.Errorf("composed %v, faults %v\n%s", p.Composed, m.Faults, p.Raw)
	}
	for _, c := range [][3]string{
		{"from", m.From, "Adé <a@example.com>"}, {"to", m.To, "in@example.org"}, {"subject", m.Subject, "Grüße\u00a0and a subject that is long enough to be folded on the wire, twice even, for it goes on"},
		{"text", m.Text, "Hello = wörld\nFrom here\n."}, {"html", m.HTML, "<p>wörld</p><img src=\"cid:logo@x\">"},
		{"message-id", m.MessageID, "<1@example.com>"}, {"received", m.Headers.Get("Received"), "by mx.example.com"},
	} {
		if c[1] != c[2] {
			t.Errorf("%s is %q, want %q", c[0], c[1], c[2])
		}
	}
	if got := listing(m); !slices.Equal(got, []string{"~logo.png image/png 3", "Prüfung.pdf application/pdf 200"}) {
		t.Errorf("attachments %q", got)
	}
	if f, ok := m.InlineByCID("cid:logo@x"); !ok || f.Index != 0 {
		t.Errorf("the image is not found: %+v", m.Attachments)
	}
	if content, err := m.Content(1); err != nil || string(content) != strings.Repeat("pdf\xff\n", 40) {
		t.Errorf("%q %v", content, err)
	}
	for l := range strings.Lines(string(p.Raw)) {
		if len(l) > 200 || !strings.HasSuffix(l, "\r\n") && !strings.HasSuffix(string(p.Raw), l) {
			t.Errorf("line %q", l)
		}
	}
	if m.Headers.Has("DKIM-Signature") || !m.Headers.Has("X-Original-DKIM-Signature") {
		t.Errorf("the signature would be found forged: %v", m.Headers)
	}
	holds(t, p.Raw, m)
}

const (
	subject = "Grüße\u00a0and a subject that is long enough to be folded on the wire, twice even, for it goes on"
	text    = "Hello = wörld\r\nFrom here\r\n."
	markup  = `<p>wörld</p><img src="cid:logo@x">`
)

func TestMailgunParsed(t *testing.T) {
	headers, _ := json.Marshal([][2]string{{"Received", "by mx.example.com"}, {"Dkim-Signature", "v=1"}, {"From", "Adé <a@example.com>"}, {"To", "in@example.org"}, {"Subject", subject},
		{"Message-Id", "<1@example.com>"}, {"Mime-Version", "1.0"}, {"Content-Type", "multipart/mixed; boundary=old"}})
	p := newPosted("recipient", "in@example.org", "sender", "bounce@example.com", "from", "Adé <a@example.com>", "subject", subject, "body-plain", text, "body-html", markup,
		"stripped-text", "Hello", "message-headers", string(headers), "attachment-count", "2", "content-id-map", `{"<logo@x>":"attachment-1"}`).
		file("attachment-1", `filename="logo.png"`, "image/png", "\x00\x01\x02").
		file("attachment-2", `filename="Prüfung.pdf"`, "application/pdf; name=old.pdf", strings.Repeat("pdf\xff\n", 40)).read(t)
	same(t, p)
	if p.MailFrom != "bounce@example.com" {
		t.Errorf("%+v", p)
	}
}

func TestAFileWithSeveralContentIDsHasTheLastOfThem(t *testing.T) {
	for range 20 { // a map's order varies
		p := newPosted("recipient", "in@example.org", "body-plain", text, "content-id-map", `{"<c@x>":"a","<b@x>":"a","<d@x>":"a","<a@x>":"a"}`).
			file("a", `filename="logo.png"`, "image/png", "x").read(t)
		if !bytes.Contains(p.Raw, []byte("Content-ID: <d@x>\r\n")) {
			t.Fatalf("%s", p.Raw)
		}
	}
}

func TestSendGridParsed(t *testing.T) {
	headers := "Received: by mx.example.com\nDKIM-Signature: v=1;\n a=b\nFrom: =?utf-8?q?Ad=C3=A9?= <a@example.com>\nTo: in@example.org\nMessage-ID: <1@example.com>\nContent-Type: multipart/mixed; boundary=\"old\"\n"
	latin := strings.NewReplacer("ö", "\xf6").Replace(text)
	p := newPosted("headers", headers, "from", "Adé <a@example.com>", "to", "in@example.org", "subject", subject, "text", latin, "html", markup, "dkim", "{@example.com : pass}", "SPF", "pass",
		"envelope", `{"to":["in@example.org"],"from":"bounce@example.com"}`, "charsets", `{"to":"UTF-8","subject":"UTF-8","from":"UTF-8","text":"iso-8859-1","html":"UTF-8"}`,
		"attachments", "2", "content-ids", `{"logo@x":"attachment1"}`, "sender_ip", "192.0.2.1").
		file("attachment1", `filename="logo.png"`, "image/png", "\x00\x01\x02").
		file("attachment2", `filename*=UTF-8''Pr%C3%BCfung.pdf`, "application/pdf", strings.Repeat("pdf\xff\n", 40)).read(t)
	same(t, p)
	if p.MailFrom != "bounce@example.com" || !slices.Equal(p.Recipients, []string{"in@example.org"}) {
		t.Errorf("%+v", p)
	}
}

func TestPostmarkParsed(t *testing.T) {
	type object = map[string]any
	body, _ := json.Marshal(object{
		"FromName": "Adé", "MessageStream": "inbound", "From": "a@example.com", "FromFull": object{"Email": "a@example.com", "Name": "Adé", "MailboxHash": ""},
		"To": "in@example.org", "ToFull": []object{{"Email": "in@example.org", "Name": ""}}, "Cc": "", "OriginalRecipient": "in@example.org", "Subject": subject, "MessageID": "uuid", "Date": "Fri, 20 Nov 2026 18:37:33 +0000",
		"TextBody": text, "HtmlBody": markup, "StrippedTextReply": "", "Tag": "",
		"Headers": []object{{"Name": "Return-Path", "Value": "<bounce@example.com>"}, {"Name": "Received", "Value": "by mx.example.com"}, {"Name": "DKIM-Signature", "Value": "v=1"}, {"Name": "Message-ID", "Value": "<1@example.com>"}},
		"Attachments": []object{
			{"Name": "logo.png", "Content": "AAEC", "ContentType": "image/png", "ContentLength": 3, "ContentID": "logo@x"},
			{"Name": "Prüfung.pdf", "Content": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("pdf\xff\n", 40))), "ContentType": "application/pdf", "ContentLength": 200},
		},
	})
	p, err := email.FromPost("application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	same(t, p)
	if m := email.Parse(p.Raw); p.MailFrom != "bounce@example.com" || m.Date != "Fri, 20 Nov 2026 18:37:33 +0000" {
		t.Errorf("%+v", p)
	}
	again, err := email.FromPost("application/json", body)
	if err != nil || !bytes.Equal(again.Raw, p.Raw) {
		t.Error("the same post makes another message")
	}
}

func TestWhoGotACopyIsReadOfPosts(t *testing.T) {
	postmark, err := email.FromPost("application/json", []byte(`{"FromFull":{"Email":"a@example.com"},"CcFull":[{"Email":"b@example.com","Name":"Bob"}],"Cc":"no"}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range []*email.Posted{postmark, newPosted("headers", "", "to", "in@example.org", "from", "a@example.com", "cc", "Bob <b@example.com>", "text", "x", "envelope", `{"to":["in@example.org"]}`).read(t)} {
		if m := email.Parse(p.Raw); m.Cc != "Bob <b@example.com>" || m.From != "a@example.com" {
			t.Errorf("post %d: Cc %q, From %q", i, m.Cc, m.From)
		}
	}
}

func TestFormsOfFiveHundredFieldsAreRead(t *testing.T) {
	if p, err := email.FromPost("application/x-www-form-urlencoded", []byte(strings.Repeat("a=1&", 499)+"email=x")); err != nil || string(p.Raw) != "x" {
		t.Errorf("%+v %v", p, err)
	}
	f := newPosted("email", "x")
	for range 499 {
		_ = f.w.WriteField("a", "1")
	}
	if p := f.read(t); string(p.Raw) != "x" {
		t.Errorf("%+v", p)
	}
}

// A posted value cannot add a field of its own or end the header.
func TestPostedValuesStayInTheirFields(t *testing.T) {
	evil := "x\r\nBcc: eve@example.com\r\n\r\n<script>"
	for _, p := range []*email.Posted{
		newPosted("from", evil, "subject", evil, "body-plain", "text", "recipient", evil, "message-headers", `[["X-A\r\nX-B","1"],["X-C","a\r\nBcc: b"],["","x"]]`).read(t),
		newPosted("headers", "From: a@example.com", "envelope", "{}", "subject", evil, "text", "text").file("attachment1", `filename="a`+"\u2028"+`b"`, "text/plain\tx", "x").read(t),
	} {
		m := email.Parse(p.Raw)
		if m.Headers.Has("Bcc") || m.Headers.Has("X-B") || m.Text != "text" || len(m.Faults) > 0 {
			t.Errorf("%v\n%s", m.Faults, p.Raw)
		}
	}
}

// A name with a colon would be another field's, or none's at all.
func TestAPostedNameThatIsNoneIsLeftOut(t *testing.T) {
	for _, name := range []string{":", ":x", "From:a", "a b", "", "Grüße"} {
		p := newPosted("body-plain", "x", "recipient", "in@example.org", "message-headers", `[["`+name+`","v"],["X-Kept","y"]]`).read(t)
		m := email.Parse(p.Raw)
		if m.Headers.Get("X-Kept") != "y" || len(m.Faults) > 0 || strings.Contains(string(p.Raw), ": v\r\n") {
			t.Errorf("%q: faults %v\n%s", name, m.Faults, p.Raw)
		}
	}
}

func TestWhatIsNoMailIsRefused(t *testing.T) {
	for _, c := range []struct {
		contentType, body string
		want              hookglass.Code
	}{
		{"", "x", hookglass.CodeUnsupportedMediaType},
		{"text/plain", "x", hookglass.CodeUnsupportedMediaType},
		{"application/json", "{", hookglass.CodeInvalidJSON},
		{"application/json", `{"From":1,"Headers":[]}`, hookglass.CodeValidationFailed},
		{"application/json", `[]`, hookglass.CodeValidationFailed},
		{"application/json", `{"a":1}`, hookglass.CodeValidationFailed},
		{"application/json", `null`, hookglass.CodeValidationFailed},
		{"application/x-www-form-urlencoded", "a=1", hookglass.CodeValidationFailed},
		{"application/x-www-form-urlencoded", "a=%zz", hookglass.CodeValidationFailed},
		{"application/x-www-form-urlencoded", strings.Repeat("a=1&", 500) + "email=x", hookglass.CodeValidationFailed},
		{"multipart/form-data", "x", hookglass.CodeValidationFailed},
		{"multipart/form-data; boundary=b", "--b\r\n\r\nx", hookglass.CodeValidationFailed},
		{"multipart/form-data; boundary=b", strings.Repeat("--b\r\nContent-Disposition: form-data; name=email\r\n\r\nx\r\n", 501) + "--b--\r\n", hookglass.CodeValidationFailed},
	} {
		if p, err := email.FromPost(c.contentType, []byte(c.body)); !hookglass.Is(err, c.want) {
			t.Errorf("%s %.20q: %+v %v, want %s", c.contentType, c.body, p, err, c.want)
		}
	}
}

func TestMailbox(t *testing.T) {
	at := time.Date(2026, 11, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	var box []byte
	box = email.AppendMbox(box, []byte("Subject: 1\r\n\r\nFrom here\r\n>From there\r\n>>From\r\n From\r\nend"), "a@example.com", at)
	box = email.AppendMbox(box, []byte("Subject: 2\n\nx\n"), "", at)
	box = email.AppendMbox(box, nil, "evil\nFrom x@y", at)
	want := "From a@example.com Mon Nov  2 02:04:05 2026\nSubject: 1\n\n>From here\n>>From there\n>>From\n From\nend\n\n" +
		"From MAILER-DAEMON Mon Nov  2 02:04:05 2026\nSubject: 2\n\nx\n\n" +
		"From evilFromx@y Mon Nov  2 02:04:05 2026\n\n"
	if string(box) != want {
		t.Errorf("%q", box)
	}
}

// A sender may name as many content ids as fit into a form: they are looked through once, not for each file.
func TestContentIDsOfManyFilesAreCheap(t *testing.T) {
	ids := map[string]string{}
	for i := range 50_000 {
		ids[strconv.Itoa(i)] = "no-file"
	}
	text, err := json.Marshal(ids)
	if err != nil {
		t.Fatal(err)
	}
	form := newPosted("message-headers", "[]", "content-id-map", string(text))
	for i := range 400 {
		form.file("attachment-"+strconv.Itoa(i), `filename="a.txt"`, "text/plain", "x")
	}
	cputime.AtMost(t, 2*time.Second, "20 million pairs of a content id and a file", func() { form.read(t) })
}
