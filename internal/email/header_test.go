package email_test

import (
	"strings"
	"testing"

	"hookglass/internal/email"
)

// RFC 2047 as it is written and as it is broken.
func TestSubjects(t *testing.T) {
	for _, c := range [][2]string{
		{"plain", "plain"},
		{"", ""},
		{"=?UTF-8?Q?caf=C3=A9?=", "café"},
		{"=?utf-8?b?Y2Fmw6k=?=", "café"},
		{"=?ISO-8859-1?Q?caf=E9?= au lait", "café au lait"},
		{"=?iso-8859-1*fr?Q?caf=E9?=", "café"}, // RFC 2231, section 5
		{"=?utf-8?q?a?= =?utf-8?q?b?=", "ab"},  // the space between words is none
		{"=?utf-8?q?a?=\r\n =?utf-8?q?b?=", "ab"},
		{"=?utf-8?q?a?= b =?utf-8?q?c?=", "a b c"},
		{"=?utf-8?q?a_b?=", "a b"},
		{"=?utf-8?Q?a b?=", "a b"},                                     // which the RFC forbids
		{"=?utf-8?b?Y2Fmww==?= =?utf-8?b?qQ==?=", "café"},              // a character split between words
		{"=?utf-8?q?caf=C3?= =?utf-8?q?=A9?=", "café"},                 // likewise
		{"=?utf-8?b?Y2Fmw6k?=", "café"},                                // padding missing
		{"=?utf-8?x?abc?=", "=?utf-8?x?abc?="},                         // an unknown encoding
		{"=?utf-8?q?abc", "=?utf-8?q?abc"},                             // no end
		{"=?", "=?"},                                                   //
		{"=??q?abc?=", "=??q?abc?="},                                   //
		{"=?x-klingon?q?nuqneH?=", "nuqneH"},                           // an unknown charset
		{"=?gb2312?B?xOO6ww==?=", "你好"},                                //
		{"=?eucgb2312_cn?b?xOO6ww==?= =?big5_tw?b?pKSk5Q==?=", "你好中文"}, // Python, of gb2312 and big5
		{"=?shift_jis?b?k/qWew==?=", "日本"},                             //
		{"=?utf-8?q?=00=0D=0ABcc:_x?=", "Bcc: x"},                      // reliability: no field is smuggled in
		{"=?utf-8?q?a=00=0D=0ABcc:_x?=", "a   Bcc: x"},                 //
		{"=?utf-8?q?=1B[31mred=E2=80=A8?=", "[31mred"},                 // no escape sequence, no line separator
		{"caf\xe9", "café"},                                            // raw latin 1
		{"café", "café"},                                               // raw UTF-8
		{"日本\xe6", "日本\uFFFD"},                                         // raw UTF-8, cut
		{"a\tb", "a b"},                                                //
		{"\"=?utf-8?q?in_quotes?=\"", "\"in quotes\""},                 //
		{"=?utf-8?q?=3D=3Futf-8=3Fq=3Fx=3F=3D?=", "=?utf-8?q?x?="},     // decoded once
		{"(=?utf-8?q?a?=)", "(a)"},                                     //
		{strings.Repeat("x", 5000), strings.Repeat("x", 5000)},         //
		{"=?utf-8?q?" + strings.Repeat("=C3=A9", 500) + "?=", strings.Repeat("é", 500)},
	} {
		m := email.Parse([]byte("Subject: " + c[0] + "\r\n\r\n"))
		if m.Subject != c[1] {
			t.Errorf("%q is %q, want %q", c[0], m.Subject, c[1])
		}
		holds(t, []byte("Subject: "+c[0]+"\r\n\r\n"), m)
	}
}

func TestAddresses(t *testing.T) {
	for _, c := range [][2]string{
		{"a@example.com", "a@example.com"},
		{"<a@example.com>", "a@example.com"},
		{"Ada <a@example.com>", "Ada <a@example.com>"},
		{"\"Ada\" <a@example.com>", "Ada <a@example.com>"},
		{"'Ada' <a@example.com>", "Ada <a@example.com>"},
		{"\"Lovelace, Ada\" <a@example.com>", "\"Lovelace, Ada\" <a@example.com>"},
		{"\"a@example.com\" <a@example.com>", "a@example.com"},
		{"\"Support \\\"24/7\\\"\" <a@example.com>", "\"Support \\\"24/7\\\"\" <a@example.com>"},
		{"a@example.com (Ada)", "Ada <a@example.com>"},
		{"a@example.com (Ada\\", `"Ada\\" <a@example.com>`},
		{"\"Ada\\", "Ada\\"},
		{"a@example.com, b@example.com ,c@example.com", "a@example.com, b@example.com, c@example.com"},
		{"Friends: a@example.com, Bob <b@example.com>;", "a@example.com, Bob <b@example.com>"},
		{"undisclosed-recipients:;", ""},
		{"=?utf-8?q?Ad=C3=A9?= <a@example.com>", "Adé <a@example.com>"},
		{"=?utf-8?q?Lovelace=2C_Ada?= <a@example.com>", "\"Lovelace, Ada\" <a@example.com>"},
		{"\"=?utf-8?q?Ad=C3=A9?=\" <a@example.com>", "Adé <a@example.com>"},
		{"=?utf-8?q?ceo=40example.org_=3Cceo=40example.org=3E?= <evil@example.com>", "\"ceo@example.org <ceo@example.org>\" <evil@example.com>"}, // a name that poses as an address
		{"\"a b\"@example.com", "\"a b\"@example.com"},
		{"<\"a,b\"@example.com>", "\"a,b\"@example.com"},
		{"Ada <a@example.com", "Ada <a@example.com>"},
		{"Ada", "Ada"},
		{"Ada (the \\(first\\) (one)) <a@example.com>", "Ada <a@example.com>"},
		{"a@example.com; b@example.com", "a@example.com, b@example.com"},
		{"用户@例子.世界", "用户@例子.世界"},
		{"Ad\xe9 <a@example.com>", "Adé <a@example.com>"},
		// RFC 5322, appendix A.5 and A.6.
		{"A Group(Some people)\r\n  :Chris Jones <c@(Chris's host.)public.example>,\r\n  joe@example.org,\r\n  John <jdoe@one.test> (my dear friend); (the end of the group)",
			"Chris Jones <c@public.example>, joe@example.org, John <jdoe@one.test>"},
		{"(Empty list)(start)Hidden recipients  :(nobody(that I know))  ;", ""},
		{"People (all of them): a@example.com;", "a@example.com"},
		{"Mary Smith <@node.test:mary@example.net>, , jdoe@test  . example", "Mary Smith <mary@example.net>, jdoe@test.example"},
		{"<@a.test,@b.test:mary@example.net>", "mary@example.net"},
		{"John Doe <jdoe@machine(comment).  example>", "John Doe <jdoe@machine.example>"},
		{"Joe. Public <joe . public @ example . com>", "\"Joe. Public\" <joe.public@example.com>"},
		{"Ada <<a@example.com>>", "Ada <a@example.com>"},
		// As Python's email package folds lists until 3.12, in a word of its own.
		{"Ad <a@example.com>, =?utf-8?q?Ad=C3=A9?= <ade@example.com>\r\n =?utf-8?q?=2C?=\r\n =?utf-8?b?R3LDtsOfZQ==?= <g@example.com>\r\n =?utf-8?q?=2C?= b@example.com",
			"Ad <a@example.com>, Adé <ade@example.com>, Größe <g@example.com>, b@example.com"},
		{"Ad <a@example.com>, b@example.com\r\n =?utf-8?q?=2C?= =?utf-8?q?Ad=C3=A9?= <ade@example.com>, c@example.com =?utf-8?q?=2C?= d@example.com",
			"Ad <a@example.com>, b@example.com, Adé <ade@example.com>, c@example.com, d@example.com"},
		{"Ada =?utf-8?q?=2C?= <a@example.com>, b c@example.com =?utf-8?q?=2C?= <d@example.com>", "\"Ada ,\" <a@example.com>, \"b c@example.com ,\" <d@example.com>"},
		{"=?utf-8?q?=2C?= <a@example.com>, <b@example.com> =?utf-8?q?=2Cx?= b", "\",\" <a@example.com>, b@example.com"},
		{"a@[IPv6:2001:db8::1], \"a . b\"@example.com", "a@[IPv6:2001:db8::1], \"a . b\"@example.com"},
		{",,", ""},
		{"\"", ""},
		{"<>", ""},
	} {
		m := email.Parse([]byte("To: " + c[0] + "\r\n\r\n"))
		if m.To != c[1] {
			t.Errorf("%q is %q, want %q", c[0], m.To, c[1])
		}
	}
}

func TestSeveralFieldsOfOneNameAreRead(t *testing.T) {
	m := email.Parse(wire("to: a@example.com", "TO: b@example.com", "Cc: c@example.com", "Reply-To: d@example.com", "X-A: 1", "x-a: 2", "X-a: 3", "Date: 20 Nov 26 18:37 EST", ""))
	if m.To != "a@example.com, b@example.com" || m.Cc != "c@example.com" || m.ReplyTo != "d@example.com" {
		t.Errorf("to %q, cc %q, reply-to %q", m.To, m.Cc, m.ReplyTo)
	}
	if o := m.HeaderObject(); o["X-A"] != "1, 2, 3" || o["to"] != "a@example.com, b@example.com" || len(o) != 5 {
		t.Errorf("%v", o)
	}
	if h := m.Headers; len(h) != 8 || h[1].Name != "TO" || h[5].Name != "x-a" {
		t.Errorf("%v", h)
	}
	if m := email.Parse(wire("Date: yesterday", "")); m.Date != "yesterday" {
		t.Errorf("%q", m.Date)
	}
}

// RFC 2231 and 2047 in names, and names that mean harm.
func TestFilenames(t *testing.T) {
	for _, c := range [][2]string{
		{`filename=a.txt`, "a.txt"},
		{`filename="a b.txt"`, "a b.txt"},
		{`filename=a b.txt; size=3`, "a b.txt"},
		{`filename="a;b.txt"`, "a;b.txt"},
		{`filename="a\"b.txt"`, "a_b.txt"},
		{`filename="open.txt`, "open.txt"},
		{`filename=open.txt; x="\`, "open.txt"},
		{`FILENAME = "a.txt"`, "a.txt"},
		{`filename*=UTF-8''Pr%C3%BCfung.pdf`, "Prüfung.pdf"},
		{`filename*=utf-8'de'Pr%C3%BCfung.pdf; filename=fallback.pdf`, "Prüfung.pdf"},
		{`filename=fallback.pdf; filename*=iso-8859-1''caf%E9.pdf`, "café.pdf"},
		{`filename*0="very "; filename*1="long ";` + "\r\n " + `filename*2="name.txt"`, "very long name.txt"},
		{`filename*1*=%C3%BC.txt; filename*0*=utf-8''a`, "aü.txt"},
		{`filename*0*=utf-8''%C3; filename*1*=%BC.txt`, "ü.txt"},
		{`filename*=utf-8''a%C3%BC.txt; filename*0="a"; filename*1="u.txt"`, "aü.txt"},
		{`filename*0="a"; filename*1="u.txt"; filename*=utf-8''a%C3%BC.txt`, "aü.txt"},
		{`filename*=utf-8''a.txt; filename*=utf-8''b.txt`, "a.txt"},
		{`filename*0=a; filename*0=b; filename*1=c.txt`, "ac.txt"},
		{`filename*=%FF%ZZ.txt`, "ÿ%ZZ.txt"},
		{`filename="=?utf-8?q?Pr=C3=BCfung.pdf?="`, "Prüfung.pdf"},
		{`filename="=?utf-8?b?UHLDvA==?= =?utf-8?b?ZnVuZy5wZGY=?="`, "Prüfung.pdf"},
		{"filename=\"Pr\xfcfung.pdf\"", "Prüfung.pdf"},
		{`filename="../../etc/passwd"`, "passwd"},
		{`filename="C:\Users\x\report.doc"`, "report.doc"},
		{`filename="/"`, "attachment-1.bin"},
		{`filename=".."`, "attachment-1.bin"},
		{`filename="..\.."`, "attachment-1.bin"},
		{`filename=""`, "attachment-1.bin"},
		{`filename="a` + "\x00" + `b.txt"`, "a b.txt"},
		{`filename="invoice` + "\u202e" + `cod.exe"`, "invoicecod.exe"},
		{`filename="a<b>:|?*.txt"`, "a_b_____.txt"},
		{`filename="trailing. . "`, "trailing"},
		{`filename=".profile"`, ".profile"},
		{`filename="` + strings.Repeat("x", 5000) + `.pdf"`, strings.Repeat("x", 196) + ".pdf"},
		{`filename="` + strings.Repeat("é", 300) + `.pdf"`, strings.Repeat("é", 98) + ".pdf"},
		{`filename="x.` + strings.Repeat("e", 300) + `"`, "x." + strings.Repeat("e", 198)},
	} {
		raw := []byte("Content-Type: application/octet-stream\r\nContent-Disposition: attachment; " + c[0] + "\r\n\r\nx")
		m := email.Parse(raw)
		if len(m.Attachments) != 1 || m.Attachments[0].Filename != c[1] {
			t.Errorf("%q: %+v, want %q", c[0], m.Attachments, c[1])
		}
		holds(t, raw, m)
	}
}

func TestInlineByCID(t *testing.T) {
	m := email.Parse([]byte(multi("related", rich,
		"Content-Type: image/png\r\nContent-ID: <a b@x>\r\n\r\n1", "Content-Type: image/png\r\nContent-ID: <Logo@x>\r\n\r\n2", "Content-Type: image/png\r\n\r\n3")))
	for cid, index := range map[string]int{"cid:a%20b@x": 0, "a b@x": 0, "<Logo@x>": 1, "CID:logo@X": 1} {
		if f, ok := m.InlineByCID(cid); !ok || f.Index != index {
			t.Errorf("%q: %+v %v", cid, f, ok)
		}
	}
	for _, cid := range []string{"", "cid:", "<>", "other"} {
		if f, ok := m.InlineByCID(cid); ok {
			t.Errorf("%q: %+v", cid, f)
		}
	}
}
