package inspector_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/show"
)

func render(t *testing.T, e *hookglass.Event) string {
	t.Helper()
	list := inspector.List{Endpoint: "ep_x", Now: time.Now(), Place: func(int64) string { return "p" }}
	var page bytes.Buffer
	if err := inspector.Panel(inspector.NewDetail(list, e)).Render(t.Context(), &page); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// A delivery takes as long as its target, and may be sent for minutes: it is looked at until it is over.
func TestDeliveriesAreKeptFreshUntilTheyAreOver(t *testing.T) {
	now := time.Now()
	for state, over := range map[hookglass.ForwardState]bool{
		hookglass.ForwardPending: false, hookglass.ForwardSending: false, hookglass.ForwardDelivered: true, hookglass.ForwardFailed: true, hookglass.ForwardSkipped: true,
	} {
		d := inspector.NewOutcomes("ep_x", &hookglass.Event{ID: "req_x", ReceivedAt: now.Add(-time.Hour)}, now)
		f := hookglass.Forward{State: state, CreatedAt: now.Add(-time.Hour)}
		if over {
			f.FinishedAt = now
		}
		d.Forwards = []inspector.Forward{{Forward: f}}
		var part bytes.Buffer
		if err := inspector.Deliveries(d).Render(t.Context(), &part); err != nil {
			t.Fatal(err)
		}
		if fresh := !strings.Contains(part.String(), `data-every=""`); fresh == over {
			t.Errorf("%s: kept fresh: %t", state, fresh)
		}
	}
}

// What failed is told before the deliveries are opened: by the tab, in place of how many there are.
func TestTheTabOfDeliveriesTellsWhatFailed(t *testing.T) {
	forward := func(s hookglass.ForwardState) inspector.Forward {
		return inspector.Forward{Forward: hookglass.Forward{State: s}}
	}
	run := func(s hookglass.RunStatus) hookglass.ActionRun { return hookglass.ActionRun{Status: s} }
	came, lost := &hookglass.DeliveryReport{StatusCode: 200}, &hookglass.DeliveryReport{StatusCode: 502}
	for want, with := range map[string]inspector.Detail{
		`data-count=""`:  {},
		`data-count="4"`: {Forwards: []inspector.Forward{forward(hookglass.ForwardDelivered), forward(hookglass.ForwardPending), forward(hookglass.ForwardSkipped)}, Runs: []hookglass.ActionRun{run(hookglass.ActionRunCompleted)}},
		`data-count="2"`: {Reports: []*hookglass.DeliveryReport{came, lost}}, // newest first
		`data-count="4 failed" data-bad`: {
			Forwards: []inspector.Forward{forward(hookglass.ForwardFailed), forward(hookglass.ForwardDelivered)}, Reports: []*hookglass.DeliveryReport{lost, came},
			Runs: []hookglass.ActionRun{run(hookglass.ActionRunFailed), run(hookglass.ActionRunStopped), run(hookglass.ActionRunRunning)},
		},
	} {
		d := inspector.NewOutcomes("ep_x", &hookglass.Event{ID: "req_x"}, time.Now())
		d.Forwards, d.Reports, d.Runs = with.Forwards, with.Reports, with.Runs
		var part bytes.Buffer
		if err := inspector.Deliveries(d).Render(t.Context(), &part); err != nil {
			t.Fatal(err)
		}
		if head, _, _ := strings.Cut(part.String(), ">"); !strings.HasSuffix(head, want) {
			t.Errorf("%q is not at the end of %q", want, head)
		}
	}
}

// Who waits for a code has it before the message, whose frame fills a screen.
func TestTheCodesOfAMailAreAboveIt(t *testing.T) {
	for kind, message := range map[string]string{"text/html": "<iframe", "text/plain": "Your code is"} {
		mail := "Subject: Hello\r\nContent-Type: " + kind + "\r\n\r\nYour code is 482913.\r\n"
		page := render(t, &hookglass.Event{ID: "eml_x", Type: hookglass.EventEmail, Payload: &hookglass.Payload{Body: []byte(mail)}, ReceivedAt: time.Now()})
		code := strings.LastIndex(page, "Copy the code 482913")
		if code < 0 || code > strings.Index(page, message) {
			t.Errorf("%s: the code is not above the message: %s", kind, page)
		}
	}
}

// A duplicate names the request that was forwarded instead, with a link.
func TestADuplicateLinksToTheFirst(t *testing.T) {
	now := time.Now()
	for state, says := range map[hookglass.ForwardState]string{
		hookglass.ForwardSkipped: "Skipped: the same as ", hookglass.ForwardPending: "Waits for the same webhook, and is sent if that fails: ",
	} {
		d := inspector.NewOutcomes("ep_x", &hookglass.Event{ID: "req_x", ReceivedAt: now}, now)
		d.Forwards = []inspector.Forward{{Forward: hookglass.Forward{State: state, SameAs: "req_first", NextAt: now, CreatedAt: now}}}
		var part bytes.Buffer
		if err := inspector.Deliveries(d).Render(t.Context(), &part); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{says, `/endpoints/ep_x/requests/req_first">req_first</a>`} {
			if !strings.Contains(part.String(), want) {
				t.Errorf("%s: no %q in %s", state, want, part.String())
			}
		}
	}
}

func TestOfALongAnswerThePageSaysThatItIsTheBeginning(t *testing.T) {
	for _, c := range []struct {
		size     int
		complete bool
		says     string
	}{
		{16 << 10, true, ""},
		{16<<10 + 1, true, "Only the beginning is shown; " + show.Bytes(16<<10+1) + " are stored."},
		{64 << 10, true, "Only the beginning is shown; " + show.Bytes(64<<10) + " are stored."},
		{64 << 10, false, "The response was longer and is cut off here."},
		{3, false, "The response was longer and is cut off here."},
	} {
		d := inspector.NewDetail(inspector.List{Endpoint: "ep_x", Now: time.Now(), Place: func(int64) string { return "p" }}, &hookglass.Event{Payload: &hookglass.Payload{}})
		d.First, d.Reports = inspector.TabDeliveries, []*hookglass.DeliveryReport{{StatusCode: 200, Evidence: &hookglass.DeliveryEvidence{Body: bytes.Repeat([]byte("x"), c.size), Complete: c.complete}}}
		var page bytes.Buffer
		if err := inspector.Panel(d).Render(t.Context(), &page); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), c.says) || c.says == "" && strings.Contains(page.String(), "Only the beginning") {
			t.Errorf("of %d bytes, complete %v, it does not say %q", c.size, c.complete, c.says)
		}
	}
}

func TestJSONIsATreeInItsOrder(t *testing.T) {
	b := inspector.NewBody([]byte(` {"z":1.0,"a":[true,null,"x\u003c"],"z":12345678901234567890,"e":{}}`), "application/json", "")
	if b.Tree == nil || b.Partial || b.Cut || b.Fault != "" {
		t.Fatalf("%+v", b)
	}
	var got []string
	for _, n := range b.Tree.Children {
		got = append(got, n.Name+" "+n.Text)
	}
	if s := strings.Join(got, ", "); s != `"z" 1.0, "a" , "z" 12345678901234567890, "e" ` {
		t.Errorf("members are %s", s)
	}
	if x := b.Tree.Children[1].Children[2].Text; x != `"x<"` {
		t.Errorf("the string is %s", x)
	}
}

// Amazon SNS sends JSON in a string. It is read like JSON, between the marks of a string.
func TestJSONInAStringIsATree(t *testing.T) {
	b := inspector.NewBody([]byte(`{"Message":"{\"a\":[1.0]}","log":"[x","last":true}`), "application/json", "")
	if b.Tree == nil || b.Partial {
		t.Fatalf("%+v", b)
	}
	message, log, last := b.Tree.Children[0], b.Tree.Children[1], b.Tree.Children[2]
	if !message.Held || message.Key != "Message" || message.Children[0].Key != "a" || message.Children[0].Children[0].Text != "1.0" || log.Text != `"[x"` || last.Text != "true" {
		t.Errorf("%+v, %+v, %+v", message, log, last)
	}
	page := render(t, &hookglass.Event{Method: "POST", Type: hookglass.EventWebhook, ContentType: "application/json", Payload: &hookglass.Payload{Body: []byte(`{"m":"{\"a\":1}"}`)}})
	if !strings.Contains(page, `<span class="j-mark">&#34;{</span>`) || !strings.Contains(page, `<div class="leaf j-mark">}&#34;</div>`) {
		t.Error("the page does not say that a string holds it")
	}
	many := inspector.NewBody([]byte(`{"m":"[`+strings.Repeat("1,", 2000)+`1]","z":1}`), "application/json", "")
	if !many.Partial || len(many.Tree.Children) != 1 || !many.Tree.Children[0].More {
		t.Errorf("a long one: partial %v, %d members", many.Partial, len(many.Tree.Children))
	}
}

func TestWhatABodyIsShownAs(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write([]byte(`{"packed":true}`))
	w.Close()
	for name, c := range map[string]struct {
		body, contentType, encoding string
		tree, form, text, hex       bool
		fault, xml                  string
	}{
		"nothing":                       {body: ""},
		"JSON by its type":              {body: `"a string"`, contentType: "application/problem+json; charset=utf-8", tree: true, text: true, hex: true},
		"JSON by its look":              {body: `[1]`, contentType: "text/plain", tree: true, text: true, hex: true},
		"JSON that ends too early":      {body: `{"a":`, contentType: "application/json", text: true, hex: true, fault: "unexpected end of the JSON, near byte 5"},
		"two JSON values":               {body: `{} {}`, contentType: "application/json", text: true, hex: true, fault: "unexpected data after the JSON value, near byte 4"},
		"what only looks like JSON":     {body: `{not json`, contentType: "text/plain", text: true, hex: true},
		"XML":                           {body: `<a><b x="1">t</b><c/></a>`, contentType: "application/xml", text: true, hex: true, xml: "<a>\n  <b x=\"1\">t</b>\n  <c/>\n</a>"},
		"what is no XML":                {body: `<a <`, contentType: "application/xml", text: true, hex: true},
		"a form":                        {body: "a=b", contentType: "application/x-www-form-urlencoded", form: true, text: true, hex: true},
		"text":                          {body: "hello", text: true, hex: true},
		"bytes":                         {body: "\xff\xfe", contentType: "application/json", hex: true},
		"text with a zero":              {body: "a\x00b", text: true, hex: true},
		"a form with a zero":            {body: "a=b\x00", contentType: "application/x-www-form-urlencoded", form: true, text: true, hex: true},
		"JSON with a zero":              {body: "{\"a\":\"b\x00\"}", contentType: "application/json", text: true, hex: true, fault: "near byte"},
		"text in UTF-16":                {body: "a\x00b\x00c\x00", hex: true},
		"bytes that happen to be UTF-8": {body: "\x00\x01\x02\x03a", contentType: "application/octet-stream", hex: true},
		"JSON that is compressed":       {body: packed.String(), contentType: "application/json", encoding: "gzip", tree: true, text: true, hex: true},
		"what is no compressed JSON":    {body: `{"a":1}`, contentType: "application/json", encoding: "gzip", tree: true, text: true, hex: true},
	} {
		b := inspector.NewBody([]byte(c.body), c.contentType, c.encoding)
		if (b.Tree != nil) != c.tree || (b.Form != nil) != c.form || (b.Text != "") != c.text || (b.Hex != "") != c.hex || b.XML != c.xml || !strings.Contains(b.Fault, c.fault) || (b.Fault == "") != (c.fault == "") {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

func TestTextOfAnotherCharsetIsReadable(t *testing.T) {
	for name, c := range map[string]struct {
		body, contentType string
		text, charset     string
		tree, broken      bool
	}{
		"Latin-1":                              {body: "Gr\xfc\xdfe \x80", contentType: "text/plain; charset=ISO-8859-1", text: "Grüße €", charset: "ISO-8859-1"},
		"Windows-1251, quoted":                 {body: "\xcf\xf0\xe8\xe2\xe5\xf2", contentType: `text/plain; charset="windows-1251"`, text: "Привет", charset: "windows-1251"},
		"Shift JIS":                            {body: "\x93\xfa\x96\x7b", contentType: "text/plain; charset=Shift_JIS", text: "日本", charset: "Shift_JIS"},
		"UTF-16 by its mark":                   {body: "\xff\xfe{\x00\"\x00\xe9\x00\"\x00:\x001\x00}\x00", contentType: "application/json", text: `{"é":1}`, charset: "UTF-16LE", tree: true},
		"UTF-16 of the other order":            {body: "\xfe\xff\x00a\x65\xe5", text: "a日", charset: "UTF-16BE"},
		"UTF-16 without a mark":                {body: "\x00a\x00b", contentType: "text/plain; charset=utf-16", text: "ab", charset: "utf-16"},
		"UTF-16 without a mark, little first":  {body: "a\x00b\x00", contentType: "text/plain; charset=utf-16", text: "ab", charset: "utf-16"},
		"JSON in Latin-1":                      {body: "{\"a\":\"\xe9\"}", contentType: "application/json; charset=latin1", text: `{"a":"é"}`, charset: "latin1", tree: true},
		"XML by its declaration":               {body: "<?xml version=\"1.0\" encoding='ISO-8859-1'?><a>\xe9</a>", contentType: "application/xml", text: "<?xml version=\"1.0\" encoding='ISO-8859-1'?><a>é</a>", charset: "ISO-8859-1"},
		"UTF-8 that is called something else":  {body: "é", contentType: "text/plain; charset=iso-8859-1", text: "é"},
		"bytes that are called text":           {body: "\x00\x01\x02\xff\xfe\x03\x04\x80", contentType: "text/plain; charset=iso-8859-1"},
		"a charset that nobody knows":          {body: "\x93\xfa\x96\x7b", contentType: "text/plain; charset=none"},
		"a charset that browsers do not read":  {body: "\x93\xfa\x96\x7b", contentType: "text/plain; charset=iso-2022-kr"},
		"a mark and nothing else":              {body: "\xff\xfe", contentType: "text/plain"},
		"another charset that is not declared": {body: "\xcf\xf0\xe8\xe2\xe5\xf2", contentType: "text/plain"},
		"a slip in text":                       {body: "caf\xe9 olé", contentType: "text/plain", text: `caf\xe9 olé`, broken: true},
		"a slip in JSON":                       {body: "{\"a\":\"h\xe9\"}", contentType: "application/json", text: `{"a":"h\xe9"}`, tree: true, broken: true},
		"a slip in what may be anything":       {body: "caf\xe9 olé", contentType: "application/octet-stream"},
	} {
		b := inspector.NewBody([]byte(c.body), c.contentType, "")
		if b.Text != c.text || b.Charset != c.charset || b.Broken != c.broken || (b.Tree != nil) != c.tree || b.Fault != "" || b.Hex != hex.Dump([]byte(c.body)) {
			t.Errorf("%s: %+v", name, b)
		}
	}
	b := inspector.NewBody([]byte("\xef\xbb\xbf{\"a\":1}"), "application/json", "")
	if b.Tree == nil || b.Fault != "" || !b.Marked || b.Charset != "" {
		t.Errorf("JSON behind a mark: %+v", b)
	}
	b = inspector.NewBody([]byte("a=%E9&b=\xe9&c=%C3%A9"), "application/x-www-form-urlencoded; charset=iso-8859-1", "")
	if len(b.Form) != 3 || b.Form[0].Value != "é" || b.Form[1].Value != "é" || b.Form[2].Value != "é" || b.Charset != "iso-8859-1" {
		t.Errorf("a form: %+v", b)
	}
	b = inspector.NewBody([]byte("--x\r\nContent-Disposition: form-data; name=a\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\r\nh\xe9\r\n--x--\r\n"), "multipart/form-data; boundary=x", "")
	if len(b.Parts) != 1 || b.Parts[0].Text != "hé" || b.Parts[0].Size != 2 || b.Text != "" {
		t.Errorf("a part: %+v", b)
	}
	if found, _ := inspector.Find([]byte("{\"a\":\"h\xe9\"}"), "application/json; charset=latin1", "", "hé"); len(found) != 1 || found[0].Pointer != "/a" {
		t.Errorf("found %+v", found)
	}
	page := render(t, &hookglass.Event{Method: "POST", Type: hookglass.EventWebhook, ContentType: "text/plain; charset=iso-8859-1", Payload: &hookglass.Payload{Body: []byte("h\xe9")}})
	if !strings.Contains(page, "Sent in iso-8859-1") || !strings.Contains(page, ">hé</pre>") {
		t.Error("the page does not say in which charset the body was written")
	}
}

func TestOnlyABodyThatIsShownAsItIsCanBeCopied(t *testing.T) {
	for body, want := range map[string]bool{"two\nlines": true, "": false, "two\r\nlines": false, "\nline": false, "a\x1bb": false, "a\x00b": false, "\xff": false, strings.Repeat("x", 256<<10+1): false} {
		if b := inspector.NewBody([]byte(body), "", ""); b.Exact != want {
			t.Errorf("%.20q: %v", body, b.Exact)
		}
	}
}

func TestLargeBodiesAreShownInPart(t *testing.T) {
	for name, c := range map[string]struct {
		body         string
		cut, partial bool
	}{
		"text at the bound":              {strings.Repeat("x", 256<<10), false, false},
		"text beyond":                    {strings.Repeat("x", 256<<10+1), true, false},
		"text cut inside a character":    {strings.Repeat("x", 256<<10-1) + "é", true, false},
		"bytes at the bound":             {strings.Repeat("\xff", 16<<10), false, false},
		"bytes beyond":                   {strings.Repeat("\xff", 16<<10+1), true, false},
		"2,000 values":                   {"[" + strings.Repeat("1,", 1998) + "1]", false, false},
		"2,001 values":                   {"[" + strings.Repeat("1,", 1999) + "1]", false, true},
		"64 levels":                      {strings.Repeat("[", 64) + strings.Repeat("]", 64), false, false},
		"65 levels":                      {strings.Repeat("[", 65) + strings.Repeat("]", 65), false, true},
		"a million levels, never closed": {strings.Repeat("[", 1_000_000), true, true},
	} {
		b := inspector.NewBody([]byte(c.body), "", "")
		if b.Cut != c.cut || b.Partial != c.partial {
			t.Errorf("%s: cut %v, partial %v", name, b.Cut, b.Partial)
		}
		if !utf8.ValidString(b.Text) {
			t.Errorf("%s: the text is none", name)
		}
	}
	if n := len(render(t, &hookglass.Event{Method: "POST", Type: hookglass.EventWebhook, Payload: &hookglass.Payload{Body: []byte(`{"a":"` + strings.Repeat("x", 5<<20) + `"}`)}})); n > 1<<20 {
		t.Errorf("a page of %d bytes", n)
	}
}

func TestABombIsDecodedInPart(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for range 64 {
		w.Write(make([]byte, 1<<20))
	}
	w.Close()
	b := inspector.NewBody(packed.Bytes(), "", "gzip")
	if !b.Cut || len(b.Hex) > 128<<10 {
		t.Errorf("cut %v, %d characters", b.Cut, len(b.Hex))
	}
}

// GitHub's forms and Slack's have JSON in a field. It is read like JSON, and copied as it came.
func TestJSONInAFormIsReadable(t *testing.T) {
	page := render(t, &hookglass.Event{
		Type: hookglass.EventWebhook, Method: "POST", URL: "http://h/", Path: "/", ContentType: "application/x-www-form-urlencoded",
		Payload: &hookglass.Payload{Body: []byte("payload=" + url.QueryEscape(`{"n":1.0,"to":["a"]}`) + "&note=%7Bno+json%7D&deep=" + strings.Repeat("%5B", 9000) + strings.Repeat("%5D", 9000))},
	})
	for _, want := range []string{"{\n  &#34;n&#34;: 1.0,\n  &#34;to&#34;: [\n    &#34;a&#34;\n  ]\n}", `data-copy="{&#34;n&#34;:1.0,&#34;to&#34;:[&#34;a&#34;]}"`, "{no json}"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if len(page) > 1<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
	for form, want := range map[string]string{
		"a=%5B%7B%22x%22%3A%22y%22%7D%5D&b=1&a=%7B": "a x b a ", "a=1&b=%5B": "", "a=%EF%BB%BF%7B%22x%22:1%7D": "a x ",
		strings.Repeat("b=1&", 1998) + "a=[1]": strings.Repeat("b ", 1998) + "a …", strings.Repeat("b=1&", 3000) + "a=[]": "",
	} {
		b, got := inspector.NewBody([]byte(form), "application/x-www-form-urlencoded", ""), ""
		var names func(n *inspector.Node)
		names = func(n *inspector.Node) {
			for _, c := range n.Children {
				if n.Kind == '{' {
					got += c.Key + " "
				}
				names(c)
			}
		}
		if b.Tree != nil {
			names(b.Tree)
		}
		if b.Partial {
			got += "…"
		}
		if got != want || len(b.Form) == 0 {
			t.Errorf("the tree of %.40s… has %.80q, want %.80q", form, got, want)
		}
	}
}

// Indented, each of these fields would be some hundred times as long.
func TestAFormOfNestedBracketsIsNoHugePage(t *testing.T) {
	field := "&a=" + strings.Repeat("[", 350) + strings.Repeat("]", 350)
	page := render(t, &hookglass.Event{
		Type: hookglass.EventWebhook, Method: "POST", URL: "http://h/", Path: "/", ContentType: "application/x-www-form-urlencoded",
		Payload: &hookglass.Payload{Body: []byte(strings.Repeat(field, 300))},
	})
	if !strings.Contains(page, field[len("&a="):]) {
		t.Error("the page has not what came")
	}
	if len(page) > 8<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

func TestAPageIsTextWhateverCame(t *testing.T) {
	page := render(t, &hookglass.Event{
		Type: hookglass.EventWebhook, Method: "POST", URL: "http://h/\xff?q=\xfe", Path: "/\xff", RawQuery: "q=\xfe&r=%E9", ContentType: "a/\xff",
		Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "X-Place", Value: "caf\xe9"}}, Body: []byte("\xff")},
	})
	if !utf8.ValidString(page) {
		t.Error("the page holds bytes that are no UTF-8")
	}
	if !strings.Contains(page, `data-copy="café"`) {
		t.Error("what is copied of a header is not what came")
	}
}

func TestASignatureIsExplained(t *testing.T) {
	for reason, want := range map[string]string{
		"missing_signature": "has no signature", "signature_mismatch": "does not match", "timestamp_out_of_tolerance": "too far", "missing_timestamp": "timestamp",
		"malformed_timestamp": "timestamp", "missing_id": "message id", "malformed_signature": "form", "no_supported_scheme": "form",
		"body_hash_mismatch": "different body", "unusable_secret": "not a valid key", "new_reason": "could not be verified",
	} {
		e := &hookglass.Event{Method: "POST", Type: hookglass.EventWebhook, SignatureStatus: hookglass.SignatureFailed, SignatureReason: reason}
		if page := render(t, e); !strings.Contains(page, want) || !strings.Contains(page, "<code>"+reason+"</code>") {
			t.Errorf("%s is not explained by %q", reason, want)
		}
	}
}

func TestAMailIsShownByItsSubject(t *testing.T) {
	page := render(t, &hookglass.Event{Type: hookglass.EventEmail, Method: "EMAIL", Path: "orders@mail.test", From: "ada@example.com", To: "orders@mail.test", Subject: "An <order>"})
	for _, want := range []string{"An &lt;order&gt;", "ada@example.com", "orders@mail.test", "EMAIL"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "Copy as curl") || strings.Contains(page, "Response") {
		t.Error("a mail is treated as a webhook")
	}
}

// Whatever a sender sends, the page is made, is text, and holds nothing of it as markup.
func FuzzDetail(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"<script>"}]}`), "application/json", "", "a=b&<x>", "X-A", "<img>")
	f.Add([]byte("a=%3Cscript%3E&%zz"), "application/x-www-form-urlencoded", "gzip", "%", "\xff", "\x00")
	f.Add([]byte("\x1f\x8b\x08\x00"), "text/html", "gzip", "", "", "")
	f.Add([]byte("x\x9c\x03\x00"), "", "deflate", "&&=&", ":", "\"'")
	f.Fuzz(func(t *testing.T, body []byte, contentType, encoding, query, name, value string) {
		marked := "<fuzz " + value
		e := &hookglass.Event{
			ID: "req_1", Type: hookglass.EventWebhook, Method: "POST", Path: "/" + marked, RawQuery: query + marked, URL: "http://x/" + marked, ContentType: contentType,
			EventType: marked, DeliveryID: marked, Tags: []string{marked},
			Payload: &hookglass.Payload{
				Headers: hookglass.Headers{{Name: "Content-Encoding", Value: encoding}, {Name: name, Value: marked}}, Body: append(body, marked...),
				Reply: &hookglass.Reply{Status: 200, Headers: hookglass.Headers{{Name: "Content-Type", Value: contentType}}, Body: body},
			},
		}
		if page := render(t, e); strings.Contains(page, "<fuzz") {
			t.Errorf("markup of a sender's: %s", page)
		}
	})
}

func TestPartsOfAFormAreReadAndTaken(t *testing.T) {
	const contentType = "multipart/form-data; boundary=x"
	body := []byte("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nhello\r\n--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"../n.bin\"\r\nContent-Type: image/png\r\n\r\n\xff\x00\r\n--x--\r\n")
	b := inspector.NewBody(body, contentType, "")
	if len(b.Parts) != 2 || b.Parts[0].Name != "a" || b.Parts[0].Text != "hello" || b.Parts[1].Text != "" || b.Parts[1].Size != 2 {
		t.Fatalf("%+v", b.Parts)
	}
	e := &hookglass.Event{Type: hookglass.EventWebhook, ContentType: contentType, Payload: &hookglass.Payload{Body: body}}
	part, err := capture.Part(e, 1)
	if string(part.Content) != "\xff\x00" || part.Filename != "n.bin" || err != nil {
		t.Errorf("%q %q %v", part.Content, part.Filename, err)
	}
	if _, err := capture.Part(e, 2); !hookglass.Is(err, hookglass.CodeNotFound) {
		t.Errorf("there is a third part: %v", err)
	}
	if b := inspector.NewBody([]byte("--x\r\nbroken"), contentType, ""); len(b.Parts) != 0 {
		t.Errorf("%+v", b.Parts)
	}
}
