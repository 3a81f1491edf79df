package alert_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/alert"
	"hookglass/internal/store"
)

func TestSecretsAreReadAsTheLibrariesDo(t *testing.T) {
	key := strings.Repeat("k", 24)
	encoded := base64.StdEncoding.EncodeToString([]byte(key))
	for given, want := range map[string]string{
		"whsec_" + encoded: key, encoded: key, "eight ch": "eight ch", "whsec_": "", "whsec_abc": "", "whsec_" + encoded[:20]: "", "shh": "shh", "": "",
		"whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 65))): "",
	} {
		got, err := alert.SigningKey(given)
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%q is %q, %v; want %q", given, got, err, want)
		}
	}
}

func TestDriftsAreCounted(t *testing.T) {
	drift := store.SchemaDrift{EventType: "invoice.paid", Provider: "stripe", Summary: "/tax is new (integer)"}
	const first = "The schema of invoice.paid (stripe) has changed: /tax is new (integer)."
	for n, want := range map[int]string{
		0: "What arrives is as it was accepted.", 1: first, 2: first + " So has that of 1 other event type.",
		3: first + " So have those of 2 other event types.",
	} {
		if got := alert.DriftSummary(slices.Repeat([]store.SchemaDrift{drift}, n)); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// A body that has the keyword nowhere is not parsed: each alert of an endpoint reads each of its bodies. JSON may spell
// a value in other ways than the keyword.
func TestABodyWithoutTheKeywordIsNotParsed(t *testing.T) {
	body := `{"a":"f\u0061iled","list":[1, 2],"url":"https:\/\/example.com\/x","u":"caf\u00e9"}`
	e := &hookglass.Event{Type: hookglass.EventWebhook, Payload: &hookglass.Payload{Body: []byte(body)}}
	for field, keyword := range map[string]string{"/a": "FAILED", "/list": "[1,2]", "/url": "com/x", "/u": "café"} {
		if alert.Matches(hookglass.AlertConfig{Keyword: keyword, Field: field}, e) == "" {
			t.Errorf("%s is not found in %s", keyword, field)
		}
	}
	e.Body = []byte(`{"a":[` + strings.TrimSuffix(strings.Repeat(`{"state":"completed"},`, 1000), ",") + `]}`)
	allocated := testing.AllocsPerRun(3, func() {
		if alert.Matches(hookglass.AlertConfig{Keyword: "failed", Field: "/a/0/state"}, e) != "" {
			t.Error("it is found where it is not")
		}
	})
	if allocated > 20 {
		t.Errorf("%.0f allocations", allocated)
	}
}

func TestKeywordsAreFoundWhereTheFieldSays(t *testing.T) {
	e := &hookglass.Event{
		Type: hookglass.EventWebhook, Path: "/p/Alpha", RawQuery: "q=beta", EventType: "gamma.made", Subject: "Delta",
		Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "X-Eps", Value: "Epsilon"}}, Body: []byte(`{"a":{"b":["zeta",{"c":"ETA"}],"n":12345678901234567890}}`)},
	}
	for _, c := range []struct{ keyword, field, where string }{
		{"ALPHA", "any", "path"}, {"alpha", "body", ""}, {"BETA", "query", "query"}, {"gamma", "event_type", "event_type"}, {"delta", "any", "subject"},
		{"epsilon", "headers", "headers"}, {"x-eps", "any", "headers"}, {"eta", "/a/b/1/c", "/a/b/1/c"}, {"eta", "/a/b/0", "/a/b/0"}, {"eta", "/a/x", ""},
		{"345678", "/a/n", "/a/n"}, {"eta", "/a/b/01", ""}, {"nothing", "any", ""},
	} {
		if got := alert.Matches(hookglass.AlertConfig{Keyword: c.keyword, Field: c.field}, e); got != c.where {
			t.Errorf("%s in %s is in %q, want %q", c.keyword, c.field, got, c.where)
		}
	}
	form := &hookglass.Event{Type: hookglass.EventWebhook, ContentType: "application/x-www-form-urlencoded", Payload: &hookglass.Payload{Body: []byte("text=a+b&payload=%7B%22c%22%3A%22ETA%22%7D")}}
	for field, keyword := range map[string]string{"/text": "a b", "/payload/c": "eta", "/payload": `"c"`} {
		if got := alert.Matches(hookglass.AlertConfig{Keyword: keyword, Field: field}, form); got != field {
			t.Errorf("%s in %s of a form is in %q", keyword, field, got)
		}
	}
	// What is not UTF-8 is Latin-1, as it is shown and searched.
	latin := &hookglass.Event{Type: hookglass.EventWebhook, Path: "/caf\xe9", RawQuery: "q=\xfc", Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "X-N", Value: "na\xefve"}}}}
	for field, keyword := range map[string]string{"path": "café", "query": "ü", "headers": "x-n: naïve"} {
		for _, in := range []string{field, "any"} {
			if got := alert.Matches(hookglass.AlertConfig{Keyword: keyword, Field: in}, latin); got != field {
				t.Errorf("%s in %s is in %q, want %q", keyword, in, got, field)
			}
		}
	}
	// Across the pieces in which a long body is read.
	e.Body = []byte(strings.Repeat("x", 64<<10-3) + "Needle")
	if alert.Matches(hookglass.AlertConfig{Keyword: "needle", Field: "body"}, e) != "body" {
		t.Error("it is not found at the end of a piece")
	}
	mail := &hookglass.Event{Type: hookglass.EventEmail, Payload: &hookglass.Payload{Body: []byte("Subject: x\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString([]byte("your refund")) + "\r\n")}}
	if alert.Matches(hookglass.AlertConfig{Keyword: "refund", Field: "body"}, mail) != "body" {
		t.Error("it is not found in a mail that is encoded")
	}
	mail.Body = []byte("Subject: x\r\nContent-Type: text/html\r\n\r\n<p>We&#39;re <b>refunding</b>\r\n you</p>")
	if alert.Matches(hookglass.AlertConfig{Keyword: "we're refunding you", Field: "body"}, mail) != "body" {
		t.Error("it is not found in what HTML shows")
	}
}

func TestKeywordsAreFoundInCompressedBodies(t *testing.T) {
	const text = `{"order":{"state":"refunded"}}`
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(text))
	must(t, errors.Join(err, w.Close()))
	for _, c := range []struct{ coding, body string }{{"gzip", packed.String()}, {"gzip", text}, {"utf-8", text}} { // the last two only say so
		e := &hookglass.Event{Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "Content-Encoding", Value: c.coding}}, Body: []byte(c.body)}}
		for field, where := range map[string]string{"body": "body", "any": "body", "/order/state": "/order/state", "/order": "/order", "/state": "", "path": ""} {
			if got := alert.Matches(hookglass.AlertConfig{Keyword: "REFUNDED", Field: field}, e); got != where {
				t.Errorf("%s: in %s it is in %q, want %q", c.coding, field, got, where)
			}
		}
	}
}

func FuzzKeyword(f *testing.F) {
	f.Add([]byte(`{"a":[1,"b"]}`), "B", "/a/1")
	f.Add([]byte(`{"a"`), "a", "body")
	f.Fuzz(func(t *testing.T, body []byte, keyword, field string) {
		if keyword == "" || len(keyword) > 800 {
			return
		}
		e := &hookglass.Event{Payload: &hookglass.Payload{Body: body}}
		got := alert.Matches(hookglass.AlertConfig{Keyword: keyword, Field: field}, e)
		if field == "body" && (got != "") != strings.Contains(fold(string(body)), fold(keyword)) {
			t.Errorf("%q in %q is %q", keyword, body, got)
		}
	})
}

// fold makes the ASCII letters small.
func fold(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 32
		}
	}
	return string(b)
}

// What a stranger sends is shown as text: neither emphasised nor as a link behind other words.
func TestMarkupOfChatsHasNoMeaning(t *testing.T) {
	compose := func(kind hookglass.ChannelKind, text string) (body map[string]any) {
		t.Helper()
		sent, err := alert.Compose(kind, hookglass.ChannelConfig{WebhookURL: "https://example.com/"}, hookglass.Message{Type: "t", Text: text})
		must(t, err)
		must(t, json.Unmarshal(sent, &body))
		return body
	}
	slack := compose(hookglass.ChannelSlack, "*bold* <http://evil.example|click> &amp; <!channel>")
	if slack["text"] != "*bold* &lt;http://evil.example|click&gt; &amp;amp; &lt;!channel&gt;" || slack["mrkdwn"] != false || slack["unfurl_links"] != false || slack["unfurl_media"] != false {
		t.Errorf("Slack gets %v", slack)
	}
	for text, want := range map[string]string{
		"*a* _b_ ~~c~~ `d` ||e||":              `\*a\* \_b\_ \~\~c\~\~ ` + "\\`d\\`" + ` \|\|e\|\|`,
		"# a\n- b\n> c":                        "\\# a\n\\- b\n\\> c",
		"[click](http://evil.example/a_b)":     `\[click\](http://evil.example/a_b)`,
		"<http://evil.example|click>":          `\<http://evil.example\|click\>`,
		"<@1> <#2> <:a:3> <t:4:R> @everyone":   `\<@1\> \<\#2\> \<:a:3\> \<t:4:R\> @everyone`,
		`\*a\*`:                                `\\\*a\\\*`,
		"see https://a.example/x_y?z=1_2*b*.":  `see https://a.example/x_y?z=1_2\*b\*.`,
		"xhttp://a_b_ http://*b* _http://a_b_": `xhttp://a\_b\_ http://\*b\* \_http://a\_b\_`,
		"invoice\u202egpj.exe\x1b[2J\u2066\n!": `invoicegpj.exe\[2J` + "\n!",
		"naïve – ü":                            "naïve – ü",
		strings.Repeat("*", 3000):              strings.Repeat(`\*`, 999) + "…",
		strings.Repeat("é", 3000):              strings.Repeat("é", 1998) + "…",
	} {
		discord := compose(hookglass.ChannelDiscord, text)
		if discord["content"] != want || discord["flags"] != float64(4) {
			t.Errorf("of %.60q Discord gets %.200q, want %.200q", text, discord["content"], want)
		}
	}
}

func FuzzChatText(f *testing.F) {
	f.Add("title", "text\xff", 5)
	f.Fuzz(func(t *testing.T, title, text string, most int) {
		if most < 1 || most > 1<<16 {
			return
		}
		got := alert.ChatText(hookglass.Message{Type: "t", Title: title, Text: text}, most)
		if !utf8.ValidString(got) || got == "" || utf8.RuneCountInString(got) > max(most, 1) {
			t.Errorf("%q and %q are %q", title, text, got)
		}
	})
}

// relay speaks as much SMTP as a sender needs, and gives what it was told.
func relay(t *testing.T) (addr *net.TCPAddr, told <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	out := make(chan string, 4)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			out <- converse(conn)
		}
	}()
	return l.Addr().(*net.TCPAddr), out
}

func converse(conn net.Conn) (told string) {
	defer conn.Close()
	fmt.Fprint(conn, "220 relay\r\n")
	var all strings.Builder
	for in, data, leaves := bufio.NewScanner(conn), false, false; in.Scan(); {
		line := in.Text()
		all.WriteString(line + "\n")
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		switch {
		case data && line != ".":
		case line == "." && data:
			data = false
			fmt.Fprint(conn, "250 taken\r\n")
			if leaves {
				return all.String()
			}
		case verb == "EHLO":
			fmt.Fprint(conn, "250-relay\r\n250 8BITMIME\r\n")
		case verb == "RCPT" && strings.Contains(line, "<gone"):
			fmt.Fprint(conn, "550 nobody of that name\r\n")
		case verb == "RCPT" && strings.Contains(line, "<later"):
			fmt.Fprint(conn, "451 not now\r\n")
		case verb == "RCPT" && strings.Contains(line, "<leave"):
			leaves = true
			fmt.Fprint(conn, "250 ok\r\n")
		case verb == "DATA":
			data = true
			fmt.Fprint(conn, "354 go on\r\n")
		case verb == "QUIT":
			fmt.Fprint(conn, "221 bye\r\n")
			return all.String()
		default:
			fmt.Fprint(conn, "250 ok\r\n")
		}
	}
	return all.String()
}

// A mail that the relay took is sent, though the relay then closes the connection before it is told to: sent again, it
// would come again with each attempt.
func TestAMailThatWasTakenIsSent(t *testing.T) {
	addr, told := relay(t)
	m := alert.NewMailer(alert.Relay{Host: "127.0.0.1", Port: addr.Port, From: "hookglass@example.com", Dial: new(net.Dialer).DialContext})
	must(t, m.Send(t.Context(), []string{"leave@example.org"}, hookglass.Message{ID: "msg_1", Title: "Alert", Text: "It is down."}))
	if got := <-told; !strings.Contains(got, "It is down.") {
		t.Errorf("told was:\n%s", got)
	}
}

// patient is a connection that is never late.
type patient struct{ net.Conn }

func (patient) SetDeadline(time.Time) error { return nil }

// A relay that does not answer holds a mail up for as long as the whole of it may take, not for as long as each step may.
func TestAMailEndsInTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	ctx, over := context.WithCancel(t.Context())
	m := alert.NewMailer(alert.Relay{
		Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, From: "hookglass@example.com",
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return patient{conn}, err
		},
	})
	ended := make(chan error, 1)
	go func() {
		ended <- m.Send(ctx, []string{"ada@example.org"}, hookglass.Message{ID: "msg_1", Title: "Alert", Text: "It is down."})
	}()
	relay, err := l.Accept()
	must(t, err)
	defer relay.Close()
	fmt.Fprint(relay, "220 relay\r\n")
	_, err = bufio.NewReader(relay).ReadString('\n') // EHLO, which has no answer
	must(t, err)
	over()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a mail that nobody took was sent")
		}
	case <-time.After(time.Minute):
		t.Fatal("the mail goes on")
	}
}

// An address that the relay refuses for good keeps the message from nobody else. Where one is refused for now, nobody is
// sent it twice.
func TestAnAddressThatIsRefusedHoldsNobodyUp(t *testing.T) {
	for _, c := range []struct {
		to      []string
		data    int // messages that the relay took
		talks   int
		problem string
	}{
		{[]string{"ada@example.org", "gone@example.org", "bob@example.org"}, 2, 2, "The mail relay refused 1 of 3 addresses, with 550. The others were sent the message."},
		{[]string{"gone@example.org", "gone2@example.org"}, 0, 2, "The mail relay answered 550."},
		{[]string{"gone@example.org"}, 0, 1, "The mail relay answered 550."},
		{[]string{"ada@example.org", "later@example.org"}, 0, 1, "The mail relay answered 451."},
	} {
		addr, told := relay(t)
		var d net.Dialer
		m := alert.NewMailer(alert.Relay{Host: "127.0.0.1", Port: addr.Port, From: "hookglass@example.com", Dial: d.DialContext})
		err := m.Send(t.Context(), c.to, hookglass.Message{ID: "msg_1", Title: "Alert", Text: "It is down."})
		if err == nil || alert.MailFailure(err).Message != c.problem {
			t.Errorf("%q: %v", c.to, err)
		}
		data := 0
		for range c.talks {
			got := <-told
			data += strings.Count(got, "\nDATA\n")
		}
		if data != c.data {
			t.Errorf("%q: %d messages were taken, want %d", c.to, data, c.data)
		}
	}
}

func TestMailGoesThroughTheRelay(t *testing.T) {
	addr, told := relay(t)
	var d net.Dialer
	m := alert.NewMailer(alert.Relay{Host: "127.0.0.1", Port: addr.Port, From: "hookglass@example.com", Dial: d.DialContext})
	err := m.Send(t.Context(), []string{"ada@example.org", "bob@example.org"}, hookglass.Message{
		ID: "msg_1", At: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Title: "Alert\r\nBcc: eve@example.net", Text: "It is down.", EndpointID: "ep_1",
	})
	must(t, err)
	got := <-told
	for _, part := range []string{"MAIL FROM:<hookglass@example.com>", "RCPT TO:<ada@example.org>", "RCPT TO:<bob@example.org>", "Message-ID: <msg_1@example.com>", "Auto-Submitted: auto-generated", "It is down.", "Endpoint: ep_1"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in:\n%s", part, got)
		}
	}
	if strings.Contains(got, "\nBcc:") || strings.Contains(got, "RCPT TO:<eve") {
		t.Errorf("a subject became a header:\n%s", got)
	}
}
