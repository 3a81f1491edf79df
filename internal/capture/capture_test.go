package capture_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/endpoint"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// bench is a capture service with one endpoint, running.
type bench struct {
	t         *testing.T
	db        *store.DB
	captures  *capture.Service
	endpoints *endpoint.Service
	ep        hookglass.Endpoint
}

func newBench(t *testing.T, db *store.DB) *bench {
	t.Helper()
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	endpoints := endpoint.New(db, keys)
	captures := newService(db, endpoints, nil)
	b := &bench{t: t, db: db, endpoints: endpoints, captures: captures} // a test may set another
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); captures.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	e, _, err := endpoints.CreateTemporary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.ep = e
	return b
}

func newService(db *store.DB, endpoints *endpoint.Service, tunnel capture.Tunnel) *capture.Service {
	return capture.New(db, capture.Config{Retention: time.Hour, Verifiers: endpoints, Tunnel: tunnel}, slog.New(slog.DiscardHandler))
}

// set changes the endpoint. The next arrival sees it.
func (b *bench) set(change func(*hookglass.Endpoint)) {
	b.t.Helper()
	change(&b.ep)
	err := b.db.Update(b.t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.SaveEndpoint(&b.ep) })
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) post(method, target, body string, headers ...string) *hookglass.Reply {
	b.t.Helper()
	t, err := b.captures.Admit(b.t.Context(), string(b.ep.ID))
	if err != nil {
		b.t.Fatal(err)
	}
	path, query, _ := strings.Cut(target, "?")
	a := &capture.Arrival{
		Method: method, Path: path, RawQuery: query, Target: "/hooks/" + string(b.ep.ID) + target, Proto: "HTTP/1.1",
		Host: "hooks.test", Scheme: "http", Client: netip.MustParseAddr("192.0.2.7"), Body: []byte(body), At: time.Now(),
	}
	for i := 0; i < len(headers); i += 2 {
		a.Headers = append(a.Headers, hookglass.Header{Name: headers[i], Value: headers[i+1]})
	}
	r, err := b.captures.Capture(b.t.Context(), t, a)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestTheDefaultAnswerNamesTheEvent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		r := newBench(t, db).post("POST", "/", "{}")
		var answer struct {
			Received bool
			ID       hookglass.EventID
		}
		if err := json.Unmarshal(r.Body, &answer); err != nil {
			t.Fatal(err)
		}
		if r.Status != 200 || !answer.Received || !strings.HasPrefix(string(answer.ID), "req_") || r.Source != hookglass.SourceDefault {
			t.Errorf("%d %s %s", r.Status, r.Source, r.Body)
		}
		if r.Headers.Get("content-type") != "application/json" {
			t.Errorf("headers %v", r.Headers)
		}
	})
}

func TestAnAnswerToHEADHasNoBody(t *testing.T) {
	r := newBench(t, storetest.SQLite(t)).post("HEAD", "/", "")
	sent := (&hookglass.Event{Method: "HEAD", Payload: &hookglass.Payload{Reply: r}}).Sent()
	if r.Status != 200 || len(r.Body) != 0 || sent.Has("Content-Length") {
		t.Errorf("%d %q with %v", r.Status, r.Body, sent)
	}
}

func TestTheCustomAnswerIsFilledIn(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	for _, c := range []struct {
		name, kind, template, want string
	}{
		{"method and path", "text/plain", "{{request.method}} {{ request.path }}", "PUT /a%2Fb"},
		{"header, without case", "text/plain", "{{request.header.x-name}}", `say "hi"`},
		{"query", "text/plain", "{{request.query.q}}", "1 2"},
		{"whole body", "text/plain", "{{request.body}}", `{"a":{"b~c/d":[1.50,"x\"y"]},"n":12345678901234567890,"o":{"z":1.50, "a":{"y":1,"b":2},"a":3}}`},
		{"pointer to a number keeps its spelling", "text/plain", "{{request.body/n}}", "12345678901234567890"},
		{"pointer with escapes", "text/plain", "{{request.body/a/b~0c~1d/1}}", `x"y`},
		{"members stay in their order, and those that repeat", "text/plain", "{{request.body/o}}", `{"z":1.50,"a":{"y":1,"b":2},"a":3}`},
		{"inserted as JSON outside a string", "application/json", `{"s":{{request.body/a/b~0c~1d/1}},"m":{{request.method}},"n":{{request.body/zz}},"o":{{request.body/o}}}`,
			`{"s":"x\"y","m":"PUT","n":null,"o":{"z":1.50,"a":{"y":1,"b":2},"a":3}}`},
		{"the whole body as JSON", "application/json", `{"b":{{request.body}}}`, `{"b":{"a":{"b~c/d":[1.50,"x\"y"]},"n":12345678901234567890,"o":{"z":1.50, "a":{"y":1,"b":2},"a":3}}}`},
		{"pointer to an array", "text/plain", "{{request.body/a/b~0c~1d}}", `[1.50,"x\"y"]`},
		{"no leading zero in an index", "text/plain", "{{request.body/a/b~0c~1d/01}}", ""},
		{"what is not there is empty", "text/plain", "[{{request.body/zz}}{{request.header.none}}{{nonsense}}]", "[]"},
		{"escaped inside a JSON string", "application/json", `{"v":"{{request.header.x-name}}","n":{{request.body/n}}}`, `{"v":"say \"hi\"","n":12345678901234567890}`},
		{"what is filled in is no template", "text/plain", "{{request.header.x-template}}", "{{request.method}}"},
		{"an open brace is text", "text/plain", "{{request.method", "{{request.method"},
		{"a third brace is text", "text/plain", "{{{request.method}}}", "{PUT}"},
		{"braces before a template are text", "text/plain", "a {{ b {{request.method}}", "a {{ b PUT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.set(func(e *hookglass.Endpoint) {
				e.Response = &hookglass.Response{Status: 201, Headers: map[string]string{"Content-Type": c.kind, "X-Echo": "{{request.header.x-name}}"}, Body: c.template}
			})
			r := b.post("PUT", "/a%2Fb?q=1+2", `{"a":{"b~c/d":[1.50,"x\"y"]},"n":12345678901234567890,"o":{"z":1.50, "a":{"y":1,"b":2},"a":3}}`,
				"X-Name", `say "hi"`, "X-Template", "{{request.method}}")
			if r.Status != 201 || r.Source != hookglass.SourceCustom || string(r.Body) != c.want {
				t.Errorf("%d %s %q, want %q", r.Status, r.Source, r.Body, c.want)
			}
			if got := r.Headers.Get("X-Echo"); got != `say "hi"` {
				t.Errorf("X-Echo: %q", got)
			}
		})
	}
}

func TestTheCustomAnswerWithoutAContentType(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	for _, c := range []struct{ template, want, kind string }{
		{`{"v":"{{request.body/v}}","n":{{request.body/n}}}`, `{"v":"say \"hi\"","n":null}`, "application/json"},
		{` [{{request.body/v}}]`, ` ["say \"hi\""]`, "application/json"},
		{`[{{request.body/v}}] came`, `[say "hi"] came`, "text/plain; charset=utf-8"},
		{`{{request.body/v}}`, `say "hi"`, "text/plain; charset=utf-8"},
		{`{{request.body}}`, `{"v":"say \"hi\""}`, "application/json"},
		{`{"v":1}`, `{"v":1}`, "application/json"},
	} {
		b.set(func(e *hookglass.Endpoint) { e.Response = &hookglass.Response{Status: 200, Body: c.template} })
		r := b.post("POST", "/", `{"v":"say \"hi\""}`)
		if kind := r.Headers.Get("Content-Type"); string(r.Body) != c.want || kind != c.kind {
			t.Errorf("%s: %s %q, want %s %q", c.template, kind, r.Body, c.kind, c.want)
		}
	}
}

func TestTheCustomAnswerTellsWhatIsEmptyFromWhatIsNotThere(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	for _, c := range []struct{ template, want string }{
		{`{"v":{{request.body/v}},"none":{{request.body/none}},"null":{{request.body/n}}}`, `{"v":"","none":null,"null":null}`},
		{`[{{request.query.q}},{{request.query.bare}},{{request.query.none}}]`, `["","",null]`},
		{`[{{request.header.x-empty}},{{request.header.x-none}},{{event.type}}]`, `["",null,null]`},
		{`["<{{request.body/v}}>","<{{request.body/none}}>"]`, `["<>","<>"]`},
	} {
		b.set(func(e *hookglass.Endpoint) { e.Response = &hookglass.Response{Status: 200, Body: c.template} })
		if r := b.post("POST", "/?q=&bare", `{"v":"","n":null}`, "X-Empty", ""); string(r.Body) != c.want {
			t.Errorf("%s: %s, want %s", c.template, r.Body, c.want)
		}
	}
	b.set(func(e *hookglass.Endpoint) {
		e.Response = &hookglass.Response{Status: 200, Body: `[{{request.body}},{{request.body/v}}]`}
	})
	if r := b.post("POST", "/", ""); string(r.Body) != "[null,null]" {
		t.Errorf("of no body: %s", r.Body)
	}
	if r := b.post("POST", "/", "v=", "Content-Type", "application/x-www-form-urlencoded"); string(r.Body) != `["v=",""]` {
		t.Errorf("of a form: %s", r.Body)
	}
}

// Only an ampersand separates the fields of a query and a form, and one that is encoded wrongly is no reason to lose it
// or the others: the record has them all.
func TestTheCustomAnswerReadsWhatASenderEncodedWrongly(t *testing.T) {
	const fields, want = "list=a;b&share=100%&ada=1+2&ada=3&&x%20y=%7A", "a;b|100%|1 2|z|"
	b := newBench(t, storetest.SQLite(t))
	for _, where := range []string{"request.query.", "request.body/"} {
		b.set(func(e *hookglass.Endpoint) {
			e.Response = &hookglass.Response{Status: 200, Body: "{{" + where + "list}}|{{" + where + "share}}|{{" + where + "ada}}|{{" + where + "x y}}|{{" + where + "none}}"}
		})
		if r := b.post("POST", "/?"+fields, fields, "Content-Type", "application/x-www-form-urlencoded"); string(r.Body) != want {
			t.Errorf("%s: %q, want %q", where, r.Body, want)
		}
	}
	b.set(func(e *hookglass.Endpoint) {
		e.Response = &hookglass.Response{Status: 200, Body: `{"all":{{request.body/p}},"id":{{request.body/p/user/id}},"n":{{request.body/p/n}},"none":{{request.body/p/none}},"text":{{request.body/x/0}}}`}
	})
	inside := `{"all":"{\"n\":1.0,\"user\":{\"id\":\"U1\"}}","id":"U1","n":1.0,"none":null,"text":null}`
	if r := b.post("POST", "/", `p={"n":1.0,"user":{"id":"U1"}}&x=a`, "Content-Type", "application/x-www-form-urlencoded"); string(r.Body) != inside {
		t.Errorf("JSON in a form: %s, want %s", r.Body, inside)
	}
	b.set(func(e *hookglass.Endpoint) {
		e.Response = &hookglass.Response{Status: 200, Body: `[{{request.body/é}},{{request.body/é/a}}]`}
	})
	if r, want := b.post("POST", "/", `%E9={"a":"%E9"}`, "Content-Type", "application/x-www-form-urlencoded"), `["{\"a\":\"é\"}","é"]`; string(r.Body) != want {
		t.Errorf("a form in Latin-1: %s, want %s", r.Body, want)
	}
	b.set(func(e *hookglass.Endpoint) {
		e.Response = &hookglass.Response{Status: 200, Body: `[{{request.query.é}},{{request.body/à}},{{request.body/è}},{{request.body/ì}}]`}
	})
	both := "%C3%A0=1&%E0=2&%C3%A8=1&%E8=2&%C3%AC=1&%EC=2"
	if r, want := b.post("POST", "/?%E9=0", both, "Content-Type", "application/x-www-form-urlencoded"), `["0","1","1","1"]`; string(r.Body) != want {
		t.Errorf("the first of names that are alike: %s, want %s", r.Body, want)
	}
}

func TestTheCustomAnswerReadsACompressedBody(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) {
		e.Response = &hookglass.Response{Status: 200, Body: `[{{request.body/challenge}}]`}
	})
	for _, c := range []struct{ coding, body, kind, want string }{
		{"gzip", gzipped(t, `{"challenge":"c 1"}`), "application/json", `["c 1"]`},
		{"gzip", gzipped(t, `challenge=c+2`), "application/x-www-form-urlencoded", `["c 2"]`},
		{"gzip", `{"challenge":"not compressed"}`, "application/json", `["not compressed"]`},
		{"br", gzipped(t, `{"challenge":"c 3"}`), "application/json", `[null]`},
		{"gzip", gzipped(t, `{"challenge":"c 4","more":"`+strings.Repeat("x", 1<<20)+`"}`), "application/json", `[null]`},
	} {
		if r := b.post("POST", "/", c.body, "Content-Type", c.kind, "Content-Encoding", c.coding); string(r.Body) != c.want {
			t.Errorf("%s of %d bytes: %s, want %s", c.coding, len(c.body), r.Body, c.want)
		}
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheCustomAnswerReadsABodyBehindAByteOrderMark(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	const body = "\xef\xbb\xbf" + `{"v":"x","n":1}`
	for _, c := range []struct{ template, want string }{
		{`{"v":{{request.body/v}},"all":{{request.body}}}`, `{"v":"x","all":{"v":"x","n":1}}`},
		{`{{request.body/v}} of {{request.body}}`, `x of ` + body},
	} {
		b.set(func(e *hookglass.Endpoint) { e.Response = &hookglass.Response{Status: 200, Body: c.template} })
		if r := b.post("POST", "/", body); string(r.Body) != c.want {
			t.Errorf("%s: %q, want %q", c.template, r.Body, c.want)
		}
	}
}

func TestALineBreakOfTheSenderNeverSplitsAHeader(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) {
		e.Response = &hookglass.Response{Status: 200, Headers: map[string]string{"X-Echo": "{{request.body/v}}"}}
	})
	r := b.post("POST", "/", `{"v":"a\r\nSet-Cookie: x=1"}`)
	if got := r.Headers.Get("X-Echo"); got != "a  Set-Cookie: x=1" || r.Headers.Has("Set-Cookie") {
		t.Errorf("headers %q", r.Headers)
	}
}

func TestAnEchoedHeaderKeepsItsBytes(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) {
		e.Response = &hookglass.Response{Status: 200, Headers: map[string]string{"X-Echo": "{{request.header.x-name}}"}}
	})
	for _, value := range []string{"caf\xe9", "\xff\xfe", "caf\u00e9", "a\tb"} {
		if got := b.post("POST", "/", "", "X-Name", value).Headers.Get("X-Echo"); got != value {
			t.Errorf("%q is echoed as %q", value, got)
		}
	}
}

func TestAHeaderFilledInBeyondItsBoundIsLeftOut(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) {
		e.Response = &hookglass.Response{Status: 200, Body: "{{request.body/v}}", Headers: map[string]string{
			"X-Echo": "{{request.body/v}}", "X-Twice": "{{request.body/v}}{{request.body/v}}", "X-Event": "{{event.id}}",
		}}
	})
	for _, c := range []struct {
		size        int
		echo, twice bool
	}{{4096, true, true}, {4097, true, false}, {8192, true, false}, {8193, false, false}, {1 << 20, false, false}} {
		v := strings.Repeat("v", c.size)
		r := b.post("POST", "/", `{"v":"`+v+`"}`)
		if r.Headers.Has("X-Echo") != c.echo || r.Headers.Has("X-Twice") != c.twice || !r.Headers.Has("X-Event") {
			t.Errorf("a value of %d bytes: once %v, twice %v, event %v",
				c.size, r.Headers.Has("X-Echo"), r.Headers.Has("X-Twice"), r.Headers.Has("X-Event"))
		}
		if string(r.Body) != v {
			t.Errorf("a value of %d bytes is %d in the body", c.size, len(r.Body))
		}
	}
}

func TestAnAnswerThatABrowserRendersIsSandboxed(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	for kind, sandboxed := range map[string]bool{
		"text/html": true, "image/svg+xml": true, "application/xhtml+xml": true, "text/xsl": true, "TEXT/HTML ; charset=utf-8": true,
		// Of these a browser guesses what they are, or takes what stands last.
		"": true, "html": true, "json": true, "text/": true, "*/*": true, "unknown/unknown": true, "application/unknown": true, "text/ plain": true,
		"application/json, text/html": true, "application/json;a=b, text/html": true, "multipart/x-mixed-replace; boundary=x": true,
		"application/json": false, "text/plain; charset=utf-8": false, "application/vnd.api+json": false, "image/png": false,
	} {
		b.set(func(e *hookglass.Endpoint) {
			e.Response = &hookglass.Response{Status: 200, Headers: map[string]string{"Content-Type": kind}, Body: "<script>1</script>"}
		})
		r := b.post("GET", "/", "")
		if got := r.Headers.Get("Content-Security-Policy") == "sandbox"; got != sandboxed {
			t.Errorf("%s: sandboxed %v", kind, got)
		}
	}
}

func TestWhoIsAdmitted(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		admit := func(ref string) hookglass.Code {
			_, err := b.captures.Admit(t.Context(), ref)
			if err == nil {
				return ""
			}
			return hookglass.CodeOf(err)
		}
		for ref, want := range map[string]hookglass.Code{
			string(b.ep.ID):                   "",
			string(hookglass.NewEndpointID()): hookglass.CodeNotFound,
			"":                                hookglass.CodeNotFound,
			strings.Repeat("x", 10_000):       hookglass.CodeNotFound,
			"\x00":                            hookglass.CodeNotFound,
			strings.ToUpper(string(b.ep.ID)):  hookglass.CodeNotFound,
			string(b.ep.ID) + "' OR '1'='1":   hookglass.CodeNotFound,
		} {
			if got := admit(ref); got != want {
				t.Errorf("%.40q: %q, want %q", ref, got, want)
			}
		}
		b.set(func(e *hookglass.Endpoint) { e.CustomID = "orders" })
		if got := admit("orders"); got != "" {
			t.Errorf("custom id: %q", got)
		}
		b.set(func(e *hookglass.Endpoint) { e.Enabled = false })
		if got := admit("orders"); got != hookglass.CodeGone {
			t.Errorf("disabled: %q", got)
		}
		b.set(func(e *hookglass.Endpoint) { e.Enabled, e.ExpiresAt = true, time.Now().Add(-time.Second) })
		if got := admit("orders"); got != hookglass.CodeNotFound {
			t.Errorf("expired: %q", got)
		}
	})
}

func TestRefusalsAreCounted(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		target, err := b.captures.Admit(t.Context(), string(b.ep.ID))
		if err != nil {
			t.Fatal(err)
		}
		b.captures.Refuse(t.Context(), target)
		b.captures.Refuse(t.Context(), target)
		var seen int64
		for end := time.Now().Add(time.Minute); seen != 2 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
				e, err := v.Endpoint(string(b.ep.ID))
				seen = e.RefusedCount
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if seen != 2 {
			t.Errorf("%d refusals", seen)
		}
	})
}

// A query is read once, however many parameters of it an answer names: what an answer of 1 MiB may name of a query of
// 64 KiB would else take a minute of a processor for each request.
func TestAQueryIsReadOnceForAnAnswer(t *testing.T) {
	query := strings.Repeat("%61=%62&", 1000)
	reading := func(placeholders int) float64 {
		template := strings.Repeat("{{request.query.none}}", placeholders)
		return testing.AllocsPerRun(1, func() { capture.FillQueryForTest(template, query) })
	}
	if one, many := reading(1), reading(100); many > 2*one {
		t.Errorf("1 placeholder takes %v allocations, 100 take %v", one, many)
	}
}

func TestAPartOfABodyIsReadOnceForAnAnswer(t *testing.T) {
	body := `{"a":{` + strings.Repeat(" ", 1<<20) + `}}`
	if got, want := capture.FillForTest(strings.Repeat("{{request.body/a}}", 200), body), strings.Repeat("{}", 200); string(got) != want {
		t.Errorf("the same part 200 times: %d bytes, want %d", len(got), len(want))
	}
}

func TestWhatAnAnswerReadsOfABodyIsBounded(t *testing.T) {
	body := strings.Repeat(`{"a":`, 200) + `"` + strings.Repeat("v", 1<<20) + `"` + strings.Repeat("}", 200)
	for depth, there := range map[int]bool{100: true, 200: false} {
		got := capture.FillForTest("{{request.body"+strings.Repeat("/a", depth)+"}}", body)
		if (string(got) != "null") != there {
			t.Errorf("at depth %d: %d bytes", depth, len(got))
		}
	}
}

func TestAnAnswerBeyondItsBoundIsStillWhole(t *testing.T) {
	template := `{"v":"{{request.body}}","w":{{request.body}},"x":"{{request.body}}"}`
	small, large := strings.Repeat("\x01", 10), strings.Repeat("\x01", 1<<20)
	escaped := strings.Repeat(`\u0001`, 10)
	if got, want := capture.FillForTest(template, small), `{"v":"`+escaped+`","w":"`+escaped+`","x":"`+escaped+`"}`; string(got) != want {
		t.Errorf("a small body: %q", got)
	}
	if got, want := capture.FillForTest(template, large), `{"v":"","w":null,"x":""}`; string(got) != want {
		t.Errorf("a large body: %d bytes, want %q", len(got), want)
	}
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) {
		e.Response = &hookglass.Response{Status: 200, Body: strings.Repeat("[{{request.body}}]", 9)}
	})
	for size, times := range map[int]int{1 << 20: 6, 3 << 20: 3} { // of 4 MiB and twice the size
		v := strings.Repeat("v", size)
		if got, want := b.post("POST", "/", v).Body, strings.Repeat("["+v+"]", times)+strings.Repeat("[]", 9-times); string(got) != want {
			t.Errorf("%d bytes nine times: %d bytes, want %d", size, len(got), len(want))
		}
	}
}

func TestFieldsThatAnAnswerReadsAreBounded(t *testing.T) {
	fields := strings.Repeat("a&", 9_999) + "last=1&beyond=2"
	if got := capture.FillQueryForTest("{{request.query.last}}{{request.query.beyond}}", fields); string(got) != "1" {
		t.Errorf("of a query: %q", got)
	}
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) {
		e.Response = &hookglass.Response{Status: 200, Body: "{{request.body/last}}{{request.body/beyond}}"}
	})
	if r := b.post("POST", "/", fields, "Content-Type", "application/x-www-form-urlencoded"); string(r.Body) != "1" {
		t.Errorf("of a form: %q", r.Body)
	}
	object := "{" + strings.Repeat(`"a":0,`, 9_999) + `"last":1,"beyond":2}`
	if r := b.post("POST", "/", object, "Content-Type", "application/json"); string(r.Body) != "1" {
		t.Errorf("of an object: %q", r.Body)
	}
}

// What JSON cannot hold of a head is read as Latin-1; elsewhere it is echoed as it came.
func TestAnAnswerInJSONReadsWhatIsNotUTF8(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	for body, want := range map[string]string{
		`{"a":"{{request.header.X-Place}}","b":{{request.path}},"c":"{{request.query.q}}"}`: `{"a":"café","b":"/café","c":"ü"}`,
		"{{request.header.X-Place}} {{request.query.q}}":                                    "caf\xe9 \xfc",
	} {
		b.set(func(e *hookglass.Endpoint) { e.Response = &hookglass.Response{Status: 200, Body: body} })
		if r := b.post("POST", "/caf\xe9?q=%FC", "", "X-Place", "caf\xe9"); string(r.Body) != want {
			t.Errorf("%s makes %q, want %q", body, r.Body, want)
		}
	}
}

func FuzzFill(f *testing.F) {
	f.Add("{{request.body/a}}", `{"a":"b"}`)
	f.Add(`{"x":"{{request.body}}"}`, "\x00\"")
	f.Fuzz(func(t *testing.T, template, body string) {
		r := capture.FillForTest(template, body)
		if len(r) > 8<<20 {
			t.Errorf("an answer of %d bytes", len(r))
		}
		for _, h := range capture.HeaderForTest(template, body) {
			if !capture.Sendable(h) {
				t.Errorf("a header that cannot be sent: %q", h)
			}
		}
	})
}

func TestASignatureIsJudgedWithTheEndpointsSecrets(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		const body = `{"zen":"Keep it logically awesome."}`
		deliver := func(secret string) *hookglass.Event {
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write([]byte(body))
			r := b.post("POST", "/", body, "X-GitHub-Event", "ping", "X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958",
				"X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
			return b.event(r)
		}
		e := deliver("s3cret")
		if e.Provider != "github" || e.EventType != "ping" || e.DeliveryID != "72d3162e-cc78-11e3-81ab-4c9367dc0958" || e.SignatureStatus != hookglass.SignatureUnchecked {
			t.Errorf("without a config: %s %s %s %s", e.Provider, e.EventType, e.DeliveryID, e.SignatureStatus)
		}
		github, secret := "github", "s3cret"
		_, err := b.endpoints.CreateSignatureConfig(t.Context(), hookglass.System, string(b.ep.ID), endpoint.SignatureDraft{Provider: &github, Secret: &secret}, false)
		if err != nil {
			t.Fatal(err)
		}
		if e = deliver("s3cret"); e.SignatureStatus != hookglass.SignatureVerified {
			t.Errorf("with the right secret: %s (%s)", e.SignatureStatus, e.SignatureReason)
		}
		if e = deliver("other"); e.SignatureStatus != hookglass.SignatureFailed || e.SignatureReason == "" {
			t.Errorf("with the wrong secret: %s (%s)", e.SignatureStatus, e.SignatureReason)
		}
	})
}

// event reads back the event that a default reply names.
func (b *bench) event(r *hookglass.Reply) (e *hookglass.Event) {
	b.t.Helper()
	var answer struct{ ID string }
	if err := json.Unmarshal(r.Body, &answer); err != nil {
		b.t.Fatal(err)
	}
	err := b.db.View(b.t.Context(), hookglass.System, func(v *store.View) (err error) {
		e, err = v.Event(string(b.ep.ID), answer.ID)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return e
}

// A node that does not have the key yet that another seals with has the sender try again, and the balancer another
// node. What it knew of the endpoint before does not serve: that would judge by a secret that was replaced.
func TestAnArrivalWaitsForTheKeyOfASecret(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
		if err != nil {
			t.Fatal(err)
		}
		fresh, other := newService(db, endpoint.New(db, keys), nil), newService(db, endpoint.New(db, keys), nil)
		if _, err := other.Admit(t.Context(), string(b.ep.ID)); err != nil {
			t.Fatal(err)
		}
		secret, name := "whsec_"+strings.Repeat("QUJD", 8), "stripe"
		_, err = b.endpoints.CreateSignatureConfig(t.Context(), hookglass.System, string(b.ep.ID), endpoint.SignatureDraft{Provider: &name, Secret: &secret}, false)
		if err != nil {
			t.Fatal(err)
		}
		for name, node := range map[string]*capture.Service{"one that did not know the endpoint": fresh, "one that knew it": other} {
			if _, err := node.Admit(t.Context(), string(b.ep.ID)); !hookglass.Is(err, hookglass.CodeUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := b.captures.Admit(t.Context(), string(b.ep.ID)); err != nil {
			t.Error(err)
		}
	})
}

// Escapes count to the bound of an answer: a value that would not fit with them is left out as a whole.
func TestEscapesCountToTheBoundOfAnAnswer(t *testing.T) {
	for _, c := range []string{`"`, `\`, "\x01", "\u2028"} {
		const most = 4 << 20
		body := strings.Repeat(c, 3<<20)
		got := capture.FillForTest(`{"a":"{{request.body}}","b":"{{request.body}}"}`, body)
		if len(got) > most+2*len(body)+64 || !json.Valid(got) {
			t.Errorf("%q: an answer of %d bytes to %d", c, len(got), len(body))
		}
	}
}

// An endpoint that a sender asked for in vain may have been made since. Without a storage nobody knows, so the sender is
// told to come again; an endpoint that was known is known still.
func TestAStorageThatIsGoneMakesNoEndpointMissing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		if _, err := b.captures.Admit(t.Context(), "orders"); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("before it is made: %v", err)
		}
		if _, err := b.captures.Admit(t.Context(), string(b.ep.ID)); err != nil {
			t.Error(err)
		}
		b.set(func(e *hookglass.Endpoint) { e.CustomID = "orders" })
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.captures.Admit(t.Context(), "orders"); !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("without a storage: %v", err)
		}
		if _, err := b.captures.Admit(t.Context(), string(b.ep.ID)); err != nil {
			t.Errorf("one that is known: %v", err)
		}
	})
}
