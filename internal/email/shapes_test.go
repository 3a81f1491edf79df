package email_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"hookglass/internal/email"
)

// shape is a message of real life, or one that real life breaks, and what is read of it.
type shape struct {
	name        string
	raw         string
	from        string // "-": there is none
	text, html  string
	attachments []string // filename type size, inline marked by ~
	faults      []email.Fault
}

const head = "From: a@example.com\r\nTo: b@example.com\r\nSubject: s\r\n"

// multi is a multipart message with the boundary "b".
func multi(subtype string, parts ...string) string {
	var b strings.Builder
	b.WriteString(head + "MIME-Version: 1.0\r\nContent-Type: multipart/" + subtype + "; boundary=b\r\n\r\n")
	for _, p := range parts {
		b.WriteString("--b\r\n" + p + "\r\n")
	}
	b.WriteString("--b--\r\n")
	return b.String()
}

func nested(boundary, subtype string, parts ...string) string {
	return "Content-Type: multipart/" + subtype + "; boundary=" + boundary + "\r\n\r\n--" + boundary + "\r\n" + strings.Join(parts, "\r\n--"+boundary+"\r\n") + "\r\n--" + boundary + "--\r\n"
}

const (
	plain = "Content-Type: text/plain\r\n\r\ntext"
	rich  = "Content-Type: text/html\r\n\r\n<p>html</p>"
	pdf   = "Content-Type: application/pdf; name=x.pdf\r\nContent-Disposition: attachment; filename=x.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8="
	pixel = "Content-Type: image/png\r\nContent-ID: <p@x>\r\nContent-Transfer-Encoding: base64\r\n\r\nAAEC"
)

var shapes = []shape{
	{name: "plain text without MIME", raw: head + "\r\nHello\r\nthere\r\n", text: "Hello\nthere\n"},
	{name: "LF only", raw: strings.ReplaceAll(head+"\r\nHello\r\n", "\r\n", "\n"), text: "Hello\n"},
	{name: "mixed line ends", raw: "From: a@example.com\nTo: b@example.com\r\nSubject: s\n\r\nHello\r\nthere\n", text: "Hello\nthere\n"},
	{name: "no body", raw: head + "\r\n"},
	{name: "no empty line", raw: head},
	{name: "header alone, cut in a field", raw: strings.TrimSuffix(head, "\r\n")},
	{name: "alternative", raw: multi("alternative", plain, rich), text: "text", html: "<p>html</p>"},
	{name: "alternative in the other order", raw: multi("alternative", rich, plain), text: "text", html: "<p>html</p>"},
	{name: "alternative with an invitation", raw: multi("alternative", plain, "Content-Type: text/calendar; method=REQUEST\r\n\r\nBEGIN:VCALENDAR"),
		text: "text", attachments: []string{"attachment-1.ics text/calendar 15"}},
	{name: "mixed with text, attachment and a list's footer", raw: multi("mixed", plain, pdf, "Content-Type: text/plain\r\n\r\n-- footer"),
		text: "text\n-- footer", attachments: []string{"x.pdf application/pdf 5"}},
	{name: "mixed with alternative and attachment", raw: multi("mixed", nested("i", "alternative", plain, rich), pdf), text: "text", html: "<p>html</p>",
		attachments: []string{"x.pdf application/pdf 5"}},
	{name: "related image", raw: multi("related", rich, pixel), html: "<p>html</p>", attachments: []string{"~attachment-1.png image/png 3"}},
	{name: "related whose root is named", raw: strings.Replace(multi("related", pixel, "Content-ID: <root>\r\n"+rich), "boundary=b", "boundary=b; start=\"<root>\"", 1),
		html: "<p>html</p>", attachments: []string{"~attachment-1.png image/png 3"}},
	{name: "alternative of text and related", raw: multi("alternative", plain, nested("i", "related", rich, pixel)), text: "text", html: "<p>html</p>",
		attachments: []string{"~attachment-1.png image/png 3"}},
	{name: "signed", raw: multi("signed", plain, "Content-Type: application/pgp-signature\r\n\r\nsig"), text: "text", attachments: []string{"attachment-1.asc application/pgp-signature 3"}},
	{name: "a message in a message", raw: multi("mixed", plain, "Content-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\ninner text"), text: "text",
		attachments: []string{"attachment-1.eml message/rfc822 28"}},
	{name: "digest", raw: multi("digest", "\r\nSubject: one\r\n\r\n1", "\r\nSubject: two\r\n\r\n2"),
		attachments: []string{"attachment-1.eml message/rfc822 17", "attachment-2.eml message/rfc822 17"}},
	{name: "an attachment alone", raw: head + "Content-Type: application/pdf; name=\"a b.pdf\"\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n",
		attachments: []string{"a b.pdf application/pdf 5"}},
	{name: "text as an attachment", raw: multi("mixed", plain, "Content-Type: text/plain\r\nContent-Disposition: attachment; filename=notes.txt\r\n\r\nnotes"),
		text: "text", attachments: []string{"notes.txt text/plain 5"}},
	{name: "HTML as an attachment", raw: multi("mixed", plain, "Content-Type: text/html; name=evil.html\r\n\r\n<script>"), text: "text",
		attachments: []string{"evil.html text/html 8"}},
	{name: "inline text with a name", raw: multi("mixed", plain, "Content-Type: text/x-patch\r\nContent-Disposition: inline; filename=0001.patch\r\n\r\ndiff"),
		text: "text", attachments: []string{"~0001.patch text/x-patch 4"}},
	{name: "quoted-printable", raw: head + "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: Quoted-Printable\r\n\r\ncaf=C3=A9 =\r\nau=20lait   \r\n=3D\r\n",
		text: "café au lait\n=\n"},
	{name: "broken quoted-printable", raw: head + "Content-Transfer-Encoding: quoted-printable\r\n\r\n100% = all =ZZ =4\r\n", text: "100% = all =ZZ =4\n",
		faults: []email.Fault{email.BadEncoding}},
	{name: "quoted-printable in lower case, cut", raw: head + "Content-Transfer-Encoding: quoted-printable\r\n\r\n=c3=a9=", text: "é"},
	{name: "base64 without padding", raw: head + "Content-Transfer-Encoding: base64\r\n\r\naGVsbG8\r\n", text: "hello"},
	{name: "base64 with foreign bytes", raw: head + "Content-Transfer-Encoding: BASE64\r\n\r\naGVs\r\n*bG8=\r\n", text: "hello", faults: []email.Fault{email.BadEncoding}},
	{name: "base64 with a footer behind its padding", raw: head + "Content-Transfer-Encoding: base64\r\n\r\naGVs\r\nbG8=\r\n-- \r\nScanned. All clean.\r\n", text: "hello", faults: []email.Fault{email.BadEncoding}},
	{name: "base64 piece by piece with a footer", raw: head + "Content-Transfer-Encoding: base64\r\n\r\naGU=\r\nbGxvIQ==\r\nScanned.\r\n", text: "hello!", faults: []email.Fault{email.BadEncoding}},
	{name: "base64 with a footer of words behind its padding", raw: head + "Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\nMailing list of the team\r\n", text: "hello", faults: []email.Fault{email.BadEncoding}},
	{name: "base64 with a signature behind its padding", raw: head + "Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n-- \r\nTeam\r\n", text: "hello", faults: []email.Fault{email.BadEncoding}},
	{name: "base64 encoded piece by piece, in lines with blanks at their ends", raw: head + "Content-Transfer-Encoding: base64\r\n\r\naGU= \r\n bGxv \r\nIQ==\r\n", text: "hello!"},
	{name: "base64 encoded piece by piece", raw: head + "Content-Transfer-Encoding: base64\r\n\r\naGU=\r\nbGxv\r\n", text: "hello"},
	{name: "unknown transfer encoding", raw: head + "Content-Transfer-Encoding: x-rot13\r\n\r\nhello\r\n", text: "hello\n", faults: []email.Fault{email.UnknownEncoding}},
	{name: "transfer encoding with a comment", raw: head + "Content-Transfer-Encoding: base64 (really)\r\n\r\naGVsbG8=\r\n", text: "hello"},
	{name: "transfer encoding on a multipart", raw: strings.Replace(multi("mixed", plain), "MIME-Version", "Content-Transfer-Encoding: quoted-printable\r\nMIME-Version", 1), text: "text"},
	{name: "uuencode", raw: head + "Content-Transfer-Encoding: x-uuencode\r\n\r\nbegin 644 f\r\n%:&5L;&\\\r\n`\r\nend\r\n", text: "hello"},
	{name: "latin 1", raw: head + "Content-Type: text/plain; charset=ISO-8859-1\r\n\r\ncaf\xe9 \x80\r\n", text: "café €\n"},
	{name: "undeclared latin 1", raw: head + "\r\ncaf\xe9\r\n", text: "café\n"},
	{name: "undeclared UTF-8", raw: head + "\r\ncafé\r\n", text: "café\n"},
	{name: "UTF-8 declared as ASCII", raw: head + "Content-Type: text/plain; charset=us-ascii\r\n\r\ncafé\r\n", text: "café\n"},
	{name: "UTF-8 cut in a character", raw: head + "Content-Type: text/plain; charset=utf-8\r\n\r\ncafé caf\xc3\r\n", text: "café caf\uFFFD\n"},
	{name: "Shift JIS", raw: head + "Content-Type: text/plain; charset=cp932\r\n\r\n\x93\xfa\x96\x7b\r\n", text: "日本\n"},
	{name: "ISO-2022-JP", raw: head + "Content-Type: text/plain; charset=iso-2022-jp\r\n\r\n\x1b$BF|K\\\x1b(B\r\n", text: "日本\n"},
	{name: "GB2312 that is GBK", raw: head + "Content-Type: text/plain; charset=gb2312\r\n\r\n\xc4\xe3\xba\xc3\x80\r\n", text: "你好€\n"},
	{name: "KOI8-R", raw: head + "Content-Type: text/plain; charset=\"koi8-r\"\r\n\r\n\xcb\xcf\xc4\r\n", text: "код\n"},
	{name: "UTF-16 with a byte order mark", raw: head + "Content-Type: text/plain; charset=utf-16\r\nContent-Transfer-Encoding: base64\r\n\r\n//5oAGkA\r\n", text: "hi"},
	{name: "UTF-7", raw: head + "Content-Type: text/plain; charset=utf-7\r\n\r\nHi +AOk- a+-b 1 +- 2\r\n", text: "Hi é a+b 1 + 2\n"},
	{name: "unknown charset", raw: head + "Content-Type: text/plain; charset=x-klingon\r\n\r\nnuqneH\r\n", text: "nuqneH\n", faults: []email.Fault{email.UnknownCharset}},
	{name: "a charset that browsers do not read", raw: head + "Content-Type: text/plain; charset=iso-2022-kr\r\n\r\nabc\r\n", text: "abc\n", faults: []email.Fault{email.UnknownCharset}},
	{name: "other names of charsets", raw: multi("mixed", "Content-Type: text/plain; charset=euc-cn\r\n\r\n\xd6\xd0", "Content-Type: text/plain; charset=cp950\r\n\r\n\xa4\xa4",
		"Content-Type: text/plain; charset=latin9\r\n\r\n\xa4", "Content-Type: text/plain; charset=iso-2022-jp-2\r\n\r\n\x1b$BF|\x1b(B",
		"Content-Type: text/plain; charset=iso-8859-9\r\n\r\n\x93\xfd\x94"), text: "中\n中\n€\n日\n“ı”"},
	{name: "names of charsets that Python writes", raw: multi("mixed", "Content-Type: text/plain; charset=utf_8\r\n\r\ncafé", "Content-Type: text/plain; charset=iso8859_15\r\n\r\n\xa4",
		"Content-Type: text/plain; charset=windows_1251\r\n\r\n\xea\xee\xe4", "Content-Type: text/plain; charset=euc_jp\r\n\r\n\xc6\xfc",
		"Content-Type: text/plain; charset=hz\r\n\r\n~{VP~}", "Content-Type: text/plain; charset=tis620\r\n\r\n\xa1"), text: "café\n€\nкод\n日\n中\nก"},
	{name: "HTML that declares its charset itself", raw: head + "Content-Type: text/html\r\n\r\n<meta charset=koi8-r>\xcb\xcf\xc4\r\n", html: "<meta charset=koi8-r>код\n"},
	{name: "text of another kind alone", raw: head + "Content-Type: text/markdown; charset=iso-8859-1\r\n\r\n# caf\xe9\r\n", text: "# café\n"},
	{name: "text of another kind beside an attachment", raw: multi("mixed", "Content-Type: text/enriched\r\n\r\n<bold>hi</bold>", "Content-Type: text/x-log\r\n\r\nlog", pdf),
		text: "<bold>hi</bold>", attachments: []string{"attachment-1.bin text/x-log 3", "x.pdf application/pdf 5"}},
	{name: "text of another kind beside HTML", raw: multi("alternative", "Content-Type: text/markdown\r\n\r\n# hi", "Content-Type: text/html\r\n\r\n<h1>hi"),
		html: "<h1>hi", attachments: []string{"attachment-1.bin text/markdown 4"}},
	{name: "text of another kind with a name", raw: head + "Content-Type: text/csv; name=a.csv\r\n\r\na,b\r\n", attachments: []string{"a.csv text/csv 5"}},
	{name: "text of another kind that is attached", raw: head + "Content-Type: text/markdown\r\nContent-Disposition: attachment\r\n\r\n# hi", attachments: []string{"attachment-1.bin text/markdown 4"}},
	{name: "an invitation alone", raw: head + "Content-Type: text/calendar; method=REQUEST\r\n\r\nBEGIN:VCALENDAR", attachments: []string{"attachment-1.ics text/calendar 15"}},
	{name: "NUL and bare CR in the text", raw: head + "\r\na\x00b\rc\r\n", text: "a\uFFFDb\rc\n"},
	{name: "no header", raw: "just some text\r\nwithout a header\r\n", text: "just some text\nwithout a header\n", faults: []email.Fault{email.NoHeader}, from: "-"},
	{name: "nothing", raw: "", faults: []email.Fault{email.NoHeader}, from: "-"},
	{name: "an empty line first", raw: "\r\nSubject: no\r\n", text: "Subject: no\n", faults: []email.Fault{email.NoHeader}, from: "-"},
	{name: "a line of an mbox first", raw: "From a@example.com Fri Nov 20 18:37:33 2026\r\n" + head + "\r\nHello", text: "Hello"},
	{name: "a lost empty line", raw: head + "Hello there, this is text\r\nmore\r\n", text: "Hello there, this is text\nmore\n", faults: []email.Fault{email.MalformedHeader}},
	{name: "space before the colon", raw: "From : a@example.com\r\nTo: b@example.com\r\nSubject\t: s\r\n\r\nx", text: "x"},
	{name: "a fold of white space alone", raw: head + "X-A: 1\r\n \t\r\nX-B: 2\r\n\r\nx", text: "x"},
	{name: "boundary missing from the header", raw: strings.Replace(strings.ReplaceAll(multi("mixed", plain, pdf), "--b", "--=_boundary"), "; boundary=b", "", 1), text: "text",
		attachments: []string{"x.pdf application/pdf 5"}},
	{name: "boundary that does not occur", raw: strings.Replace(multi("mixed", plain), "boundary=b", "boundary=other", 1),
		text: "--b\nContent-Type: text/plain\n\ntext\n--b--\n", faults: []email.Fault{email.MissingBoundary}},
	{name: "multipart without a part", raw: multi("mixed"), text: "--b--\n", faults: []email.Fault{email.MissingBoundary}},
	{name: "close delimiter missing", raw: strings.TrimSuffix(multi("mixed", plain, pdf), "\r\n--b--\r\n"), text: "text", attachments: []string{"x.pdf application/pdf 5"},
		faults: []email.Fault{email.Unterminated}},
	{name: "an inner multipart that does not end", raw: multi("mixed", "Content-Type: multipart/alternative; boundary=i\r\n\r\n--i\r\n"+plain+"\r\n--i\r\n"+rich, pdf),
		text: "text", html: "<p>html</p>", attachments: []string{"x.pdf application/pdf 5"}, faults: []email.Fault{email.Unterminated}},
	{name: "a boundary that begins like another", raw: multi("mixed", strings.ReplaceAll(nested("bb", "alternative", plain, rich), "b=", "b="), pdf), text: "text", html: "<p>html</p>",
		attachments: []string{"x.pdf application/pdf 5"}},
	{name: "space behind a delimiter", raw: strings.ReplaceAll(multi("mixed", plain, pdf), "--b\r\n", "--b \t\r\n"), text: "text", attachments: []string{"x.pdf application/pdf 5"}},
	{name: "text behind the end", raw: multi("mixed", plain) + "epilogue\r\n--b\r\n" + pdf, text: "text"},
	{name: "a part without a header", raw: multi("mixed", "\r\ntext"), text: "text"},
	{name: "a part that is its header alone", raw: multi("mixed", plain, "Content-Type: application/zip"), text: "text", attachments: []string{"attachment-1.zip application/zip 0"}},
	{name: "a body with a name", raw: head + "Content-Type: text/html; name=body.html\r\n\r\n<p>html</p>", html: "<p>html</p>"},
	{name: "alternatives with names", raw: multi("mixed", nested("i", "alternative", "Content-Type: text/plain; name=a.txt\r\n\r\ntext", "Content-Type: text/html; name=a.html\r\n\r\n<p>html</p>"), pdf),
		text: "text", html: "<p>html</p>", attachments: []string{"x.pdf application/pdf 5"}},
	{name: "a third alternative with a name", raw: multi("alternative", plain, rich, "Content-Type: text/html; name=b.html\r\n\r\nx"), text: "text", html: "<p>html</p>",
		attachments: []string{"b.html text/html 1"}},
	{name: "a third alternative with a name and an image", raw: multi("alternative", plain, rich, nested("i", "related", "Content-Type: text/html; name=b.html\r\n\r\nx", pixel)), text: "text",
		html: "<p>html</p>", attachments: []string{"b.html text/html 1", "~attachment-2.png image/png 3"}},
	{name: "a third alternative with a name, deeper", raw: multi("alternative", plain, rich, nested("i", "mixed", nested("j", "related", "Content-Type: text/html; name=b.html\r\n\r\nx"))), text: "text",
		html: "<p>html</p>", attachments: []string{"b.html text/html 1"}},
	{name: "a second text with a name in alternatives of alternatives", raw: multi("alternative", plain, nested("i", "alternative", "Content-Type: text/plain; name=b.txt\r\n\r\nx")), text: "text",
		attachments: []string{"b.txt text/plain 1"}},
	{name: "an alternative with a name and an image", raw: multi("alternative", plain, nested("i", "related", "Content-Type: text/html; name=b.html\r\n\r\nx", pixel)), text: "text", html: "x",
		attachments: []string{"~attachment-1.png image/png 3"}},
	{name: "UTF-8 under a short name of ASCII", raw: head + "Content-Type: text/plain; charset=IBM367\r\n\r\ncafé\r\n", text: "café\n"},
	{name: "a body that is an attachment", raw: head + "Content-Type: text/plain; name=a.txt\r\nContent-Disposition: attachment\r\n\r\ntext", attachments: []string{"a.txt text/plain 4"}},
	{name: "a lost semicolon", raw: head + "Content-Type: text/html charset=windows-1251\r\n\r\n\xcf\xf0\xe8", html: "При"},
	{name: "a comma for a semicolon", raw: head + "Content-Type: text/plain, charset=\"windows-1251\"\r\n\r\n\xcf\xf0\xe8", text: "При"},
	{name: "UTF-8 under a long name of ASCII", raw: head + "Content-Type: text/plain; charset=ANSI_X3.4-1968\r\n\r\ncafé\r\n", text: "café\n"},
	{name: "a name of words in pieces", raw: multi("mixed", plain, "Content-Type: application/pdf\r\nContent-Disposition: attachment; filename*0=\"=?utf-8?B?5pel\"; filename*1=\"5pys?=.pdf\"\r\n\r\nx"),
		text: "text", attachments: []string{"日本.pdf application/pdf 1"}},
	{name: "a comment behind a charset", raw: head + "Content-Type: text/plain; charset=koi8-r (Plain text)\r\n\r\n\xcb\xcf\xc4", text: "код"}, // RFC 2045, section 5.1
	{name: "comments everywhere", raw: head + "Content-Type: text(a)/(b;c)html (d) ;(e \\) f) charset (g) = (h) \"koi8-r\" (i)\r\nContent-Transfer-Encoding: (j) base64 (k)\r\n\r\ny8/E", html: "код"},
	{name: "a comment behind a boundary", raw: strings.Replace(multi("mixed", plain, pdf), "boundary=b", "boundary=b (mine)", 1), text: "text", attachments: []string{"x.pdf application/pdf 5"}},
	{name: "parentheses in a boundary without quotes", raw: strings.ReplaceAll(strings.Replace(multi("mixed", plain, pdf), "boundary=b", "boundary=(b)", 1), "--b", "--(b)"), text: "text",
		attachments: []string{"x.pdf application/pdf 5"}},
	{name: "parentheses in a name without quotes", raw: multi("mixed", plain, "Content-Type: application/pdf\r\nContent-Disposition: attachment (c); filename=my report (1).pdf\r\n\r\nx"),
		text: "text", attachments: []string{"my report (1).pdf application/pdf 1"}},
	{name: "a comment that does not end", raw: head + "Content-Type: text/html (oops; charset=koi8-r\r\n\r\n\xcb\xcf\xc4", html: "код"},
	{name: "a comment that does not end, and one behind it that does", raw: head + "Content-Type: text/html (a (b); charset=koi8-r; x=y (c)\r\n\r\n\xcb\xcf\xc4", html: "код"},
	{name: "content type without a subtype", raw: head + "Content-Type: text\r\n\r\nx", text: "x"},
	{name: "content type of one word", raw: head + "Content-Type: plain\r\n\r\nx", text: "x"}, // RFC 2045, section 5.2
	{name: "a file with a content type of one word", raw: multi("mixed", plain, "Content-Type: pdf; name=x.pdf\r\n\r\n%PDF-"), text: "text", attachments: []string{"x.pdf application/octet-stream 5"}},
	{name: "a lost content type", raw: head + "Content-Type: charset=koi8-r; format=flowed\r\n\r\n\xcb\xcf\xc4", text: "код"},
	{name: "a lost disposition", raw: multi("mixed", plain, "Content-Type: application/pdf\r\nContent-Disposition: filename=\"a=b.pdf\"\r\n\r\n%PDF-"), text: "text", attachments: []string{"a=b.pdf application/pdf 5"}},
	{name: "content type that is none", raw: head + "Content-Type: ;;;\r\n\r\nx", text: "x"},
	{name: "an archive is an attachment and stays closed", raw: multi("mixed", "Content-Type: application/zip; name=bomb.zip\r\nContent-Transfer-Encoding: base64\r\n\r\nUEsFBgAAAAAAAAAAAAAAAAAAAAAAAA=="),
		attachments: []string{"bomb.zip application/zip 22"}},
}

func TestShapes(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			m := email.Parse([]byte(s.raw))
			if s.from != "-" && (m.From != "a@example.com" || m.To != "b@example.com" || m.Subject != "s") {
				t.Errorf("from %q, to %q, subject %q", m.From, m.To, m.Subject)
			}
			if m.Text != s.text {
				t.Errorf("text is %q, want %q", m.Text, s.text)
			}
			if m.HTML != s.html {
				t.Errorf("html is %q, want %q", m.HTML, s.html)
			}
			if !slices.Equal(m.Faults, s.faults) {
				t.Errorf("faults are %v, want %v", m.Faults, s.faults)
			}
			if got := listing(m); !slices.Equal(got, s.attachments) {
				t.Errorf("attachments are %q, want %q", got, s.attachments)
			}
			holds(t, []byte(s.raw), m)
		})
	}
}

func listing(m *email.Message) (list []string) {
	for _, f := range m.Attachments {
		l := fmt.Sprintf("%s %s %d", f.Filename, f.ContentType, f.Size)
		if f.Inline {
			l = "~" + l
		}
		list = append(list, l)
	}
	return list
}

// holds checks what is promised of every message.
func holds(t testing.TB, raw []byte, m *email.Message) {
	t.Helper()
	clean := func(what, s string, lines bool) {
		if !utf8.ValidString(s) || strings.Contains(s, "\x00") || !lines && strings.ContainsAny(s, "\r\n") {
			t.Errorf("%s is not clean: %q", what, s)
		}
	}
	clean("text", m.Text, true)
	clean("html", m.HTML, true)
	for what, s := range map[string]string{"from": m.From, "to": m.To, "cc": m.Cc, "reply-to": m.ReplyTo, "subject": m.Subject, "date": m.Date, "message-id": m.MessageID} {
		clean(what, s, false)
	}
	for _, h := range m.Headers {
		clean("the name of a field", h.Name, false)
		clean(h.Name, h.Value, false)
		if len(h.Value) > 64<<10 {
			t.Errorf("%s has %d bytes", h.Name, len(h.Value))
		}
	}
	if len(m.Headers) > 1000 || len(m.Attachments) > 200 {
		t.Errorf("%d fields, %d attachments", len(m.Headers), len(m.Attachments))
	}
	for i, f := range m.Attachments {
		clean("a filename", f.Filename, false)
		clean("a content id", f.ContentID, false)
		clean("a content type", f.ContentType, false)
		content, err := m.Content(i)
		if err != nil || int64(len(content)) != f.Size || f.Index != i {
			t.Errorf("attachment %d %+v has %d bytes, %v", i, f, len(content), err)
		}
		if f.Filename == "" || f.Filename == "." || f.Filename == ".." || strings.ContainsAny(f.Filename, `/\`) || len(f.Filename) > 200 {
			t.Errorf("attachment %d is called %q", i, f.Filename)
		}
		if f.ContentID != "" {
			if _, ok := m.InlineByCID(f.ContentID); !ok {
				t.Errorf("attachment %d is not found by %q", i, f.ContentID)
			}
		}
	}
	if _, err := m.Content(len(m.Attachments)); err == nil {
		t.Error("there is one attachment more than listed")
	}
	if _, err := m.Content(-1); err == nil {
		t.Error("there is an attachment before the first")
	}
}
