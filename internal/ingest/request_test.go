package ingest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/ingest"
)

func TestBodiesAreKeptToTheByte(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, body := range []string{"", "\x00", "\xff\xfe", string(every), strings.Repeat(string(every), 1000), `{"a":"\u0000"}`} {
		s := new(stub)
		c := start(t, ingest.Config{}, s, nil).dial()
		c.send(post(hook(""), body))
		c.want(200)
		if got := string(s.one(t).Body); got != body {
			t.Errorf("a body of %d bytes arrived as %d others", len(body), len(got))
		}
	}
}

func TestHeadersKeepSpellingOrderAndDuplicates(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	sent := lines("x-Second: 2", "HOST: x", "X-First: 1", "x-second: two", "Content-Length: 0", "X-Empty:", "X-Latin: caf\xe9", "X-Tight:v", "X-Wide:  \t v \t")
	c.send("POST " + hook("") + " HTTP/1.1\r\n" + sent + "\r\n")
	c.want(200)
	want := lines("x-Second: 2", "HOST: x", "X-First: 1", "x-second: two", "Content-Length: 0", "X-Empty: ", "X-Latin: caf\xe9", "X-Tight: v", "X-Wide: v")
	if got := wire(s.one(t).Headers); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestFoldedHeaderIsJoinedByOneSpace(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send("GET " + hook("") + " HTTP/1.1\r\nHost: x\r\nX-Folded: one\r\n \t two\r\n\tthree\r\nX-Next: n\r\n\r\n")
	c.want(200)
	a := s.one(t)
	if got := a.Headers.Get("X-Folded"); got != "one two three" {
		t.Errorf("got %q", got)
	}
	if got := a.Headers.Get("X-Next"); got != "n" {
		t.Errorf("the line behind it is %q", got)
	}
}

func TestPathAfterTheEndpointIsKeptRaw(t *testing.T) {
	for sent, want := range map[string]string{
		"":               "/",
		"/":              "/",
		"//a":            "//a",
		"/a/../b":        "/a/../b",
		"/%2F%2e%2E":     "/%2F%2e%2E",
		"/%zz":           "/%zz",
		"/%00":           "/%00",
		"/a//b/./c/":     "/a//b/./c/",
		"/caf\xc3\xa9":   "/caf\xc3\xa9",
		"/hooks/other/x": "/hooks/other/x",
	} {
		s := new(stub)
		c := start(t, ingest.Config{}, s, nil).dial()
		c.send(post(hook(sent)+"?q=%zz&q=a;b", "x"))
		c.want(200)
		a := s.one(t)
		if a.Path != want || a.RawQuery != "q=%zz&q=a;b" || a.Target != hook(sent)+"?q=%zz&q=a;b" {
			t.Errorf("%q arrived as path %q, query %q, target %q", sent, a.Path, a.RawQuery, a.Target)
		}
	}
}

func TestBareQuestionMarkIsTold(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send(get(hook("?")) + get(hook("")))
	c.want(200)
	c.want(200)
	all := s.all()
	if all[0].Target != hook("?") || all[0].RawQuery != "" || all[1].Target != hook("") {
		t.Errorf("got %+v and %+v", all[0], all[1])
	}
}

func TestMethods(t *testing.T) {
	for _, m := range hookglass.Methods {
		s := new(stub)
		c := start(t, ingest.Config{}, s, nil).dial()
		c.send(m + " " + hook("") + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if a := c.read(m); a.StatusCode != 200 || m == "HEAD" && a.body != "" {
			t.Errorf("%s answered %d %q", m, a.StatusCode, a.body)
		}
		if s.one(t).Method != m {
			t.Errorf("%s arrived as %s", m, s.one(t).Method)
		}
	}
	for _, m := range []string{"PROPFIND", "TRACE", "post", "CONNECT", "PRI"} {
		s := new(stub)
		c := start(t, ingest.Config{}, s, nil).dial()
		c.send(m + " " + hook("") + " HTTP/1.1\r\nHost: x\r\n\r\n")
		a := c.want(405)
		if got := a.Header.Get("Allow"); got != "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS" {
			t.Errorf("%s: Allow: %q", m, got)
		}
		if !strings.Contains(a.body, `"error":"method_not_allowed"`) || len(s.all()) != 0 {
			t.Errorf("%s: %s, %d arrivals", m, a.body, len(s.all()))
		}
	}
	c := start(t, ingest.Config{}, new(stub), nil).dial()
	c.send("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
	c.want(405)
}

func TestOptionsAsteriskGoesToNetHTTP(t *testing.T) {
	c := start(t, ingest.Config{}, new(stub), nil).dial()
	c.send("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
	if a := c.want(200); a.body != "" {
		t.Errorf("got %q", a.body)
	}
}

func TestAbsoluteFormKeepsTheEndpointOfThePath(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send("POST http://other.example:81" + hook("/p?q") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nb")
	c.want(200)
	if a := s.one(t); a.Path != "/p" || a.Host != "other.example:81" || a.Target != hook("/p?q") || a.Headers.Get("Host") != "x" {
		t.Errorf("got %+v", a)
	}
}

func TestHTTP10(t *testing.T) {
	s := new(stub)
	sv := start(t, ingest.Config{}, s, nil)
	c := sv.dial()
	c.send("POST " + hook("") + " HTTP/1.0\r\nContent-Length: 2\r\n\r\nab")
	if a := c.want(200); a.Proto != "HTTP/1.0" || !a.Close {
		t.Errorf("got %s, close %v", a.Proto, a.Close)
	}
	c.wantEnd()
	if a := s.one(t); a.Proto != "HTTP/1.0" || string(a.Body) != "ab" || a.Host != "" {
		t.Errorf("got %+v", a)
	}
	c = sv.dial()
	c.send(strings.Repeat("GET "+hook("")+" HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 2))
	if a := c.want(200); a.Header.Get("Connection") != "keep-alive" {
		t.Errorf("Connection: %q", a.Header.Get("Connection"))
	}
	c.want(200)
}

func TestMalformedRequestsAreRefusedAndTheConnectionEnds(t *testing.T) {
	h := "POST " + hook("") + " HTTP/1.1\r\n"
	for name, text := range map[string]string{
		"NUL in a value":            h + "Host: x\r\nX-A: a\x00b\r\n\r\n",
		"control character":         h + "Host: x\r\nX-A: a\x01b\r\n\r\n",
		"lone CR":                   h + "Host: x\r\nX-A: a\rb\r\n\r\n",
		"space in a name":           h + "Host: x\r\nX A: a\r\n\r\n",
		"space before the colon":    h + "Host: x\r\nX-A : a\r\n\r\n",
		"no name":                   h + "Host: x\r\n: a\r\n\r\n",
		"no colon":                  h + "Host: x\r\nX-A\r\n\r\n",
		"fold on the first line":    h + " Host: x\r\n\r\n",
		"no Host":                   h + "X-A: a\r\n\r\n",
		"two Hosts":                 h + "Host: x\r\nHost: x\r\n\r\n",
		"a Host that is overruled":  "POST http://x" + hook("") + " HTTP/1.1\r\nHost: a/b\r\n\r\n",
		"a path for a Host":         h + "Host: a/b\r\n\r\n",
		"differing lengths":         h + "Host: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"differing huge lengths":    h + "Host: x\r\nContent-Length: 99999999999999999999\r\nContent-Length: 2\r\n\r\nab",
		"a list of lengths":         h + "Host: x\r\nContent-Length: 1, 1\r\n\r\na",
		"a signed length":           h + "Host: x\r\nContent-Length: +1\r\n\r\na",
		"an empty length":           h + "Host: x\r\nContent-Length:\r\n\r\n",
		"length and coding":         h + "Host: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"coding in HTTP/1.0":        "POST " + hook("") + " HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"space in the target":       "POST " + hook("/a b") + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"control in the target":     "POST " + hook("/a\x01") + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"no method, but TLS":        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", // which goes on, and has no line
		"no version":                "POST " + hook("") + "\r\nHost: x\r\n\r\n",
		"lower-case version":        "POST " + hook("") + " http/1.1\r\nHost: x\r\n\r\n",
		"a chunk that is none":      h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"a chunk without its end":   h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
		"a CR alone behind a size":  h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n1\rXa\r\n0\r\n\r\n",
		"a CR alone behind a chunk": h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\rX0\r\n\r\n",
		"a bare LF behind a chunk":  h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n",
		"a blank within a size":     h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n0 1\r\na\r\n0\r\n\r\n",
		"an LF behind another byte": h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naX\n0\r\n\r\n",
		"a bare LF in an extension": h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n1;e\na\r\n0\r\n\r\n",
		"a chunk without a size":    h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n;e\r\n\r\n",
		"a size of 16 digits":       h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n0000000000000001\r\na\r\n0\r\n\r\n",
		"a bare LF in the trailers": h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n",
		"a bare LF at the end":      h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n",
		"a bare LF behind a size":   h + "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := new(stub)
			c := start(t, ingest.Config{}, s, nil).dial()
			c.send(text)
			a := c.want(400)
			if !a.Close || !strings.Contains(a.body, `"error":"bad_request"`) {
				t.Errorf("close %v, %s", a.Close, a.body)
			}
			c.nc.CloseWrite()
			c.wantEnd()
			if n := len(s.all()); n != 0 {
				t.Errorf("%d arrivals", n)
			}
		})
	}
	for name, status := range map[string]int{
		"POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n":                         501,
		"POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n": 501,
		"POST " + hook("") + " HTTP/2.0\r\nHost: x\r\n\r\n":                                                             505,
	} {
		c := start(t, ingest.Config{}, new(stub), nil).dial()
		c.send(name)
		c.want(status)
		c.nc.CloseWrite()
		c.wantEnd()
	}
}

func TestRepeatedEqualLengthIsOne(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send("POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab")
	c.want(200)
	if string(s.one(t).Body) != "ab" {
		t.Error("the body is another")
	}
}

func TestUnknownEndpointsAreAllToldTheSame(t *testing.T) {
	s := new(stub)
	sv := start(t, ingest.Config{}, s, nil)
	var bodies []string
	for _, ref := range []string{
		"ep_unknown", "%00", "a%2Fb", strings.Repeat("a", 10<<10), "..", ".", "%zz", "%", "a b%20", "", strings.Repeat("%61", 65),
		knownRef + "%00", strings.ToUpper(knownRef), "é",
	} {
		c := sv.dial()
		if strings.Contains(ref, " ") {
			ref = strings.ReplaceAll(ref, " ", "+")
		}
		c.send(post("/hooks/"+ref+"/x", "body"))
		bodies = append(bodies, c.want(404).body)
	}
	c := sv.dial()
	c.send(get("/hooks"))
	bodies = append(bodies, c.want(404).body)
	if slices.Sort(bodies); bodies[0] != bodies[len(bodies)-1] || bodies[0] != `{"error":"not_found","message":"There is no such endpoint."}` {
		t.Errorf("told %q and %q", bodies[0], bodies[len(bodies)-1])
	}
	if len(s.all()) != 0 {
		t.Error("something was captured")
	}
}

func TestEscapedEndpointIsTheSame(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send(get("/hooks/%65%70_" + knownRef[3:] + "/p"))
	c.want(200)
	if s.one(t).Path != "/p" {
		t.Error("the path is another")
	}
}

func TestHeadLimits(t *testing.T) {
	const limit = 16 << 10
	cfg := ingest.Config{MaxHeaderBytes: limit, MaxHeaders: 100}
	request := "POST " + hook("?") + "%s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n%s\r\n"
	frame := len(fmt.Sprintf(request, "", ""))
	field := func(n int) string { return "X-Long: " + strings.Repeat("v", n-len("X-Long: \r\n")) + "\r\n" }
	for _, row := range []struct {
		name, text string
		status     int
	}{
		{"8 KiB of query", fmt.Sprintf(request, strings.Repeat("k=v&", 2<<10), ""), 200},
		{"an 8 KiB value", fmt.Sprintf(request, "", field(8<<10)), 200},
		{"at the limit", fmt.Sprintf(request, "", field(limit-frame)), 200},
		{"one beyond", fmt.Sprintf(request, "", field(limit-frame+1)), 431},
		{"1 MB of headers", fmt.Sprintf(request, "", field(1<<20)), 431},
		{"900 KB of query", fmt.Sprintf(request, strings.Repeat("q", 900<<10), ""), 414},
		{"a line at the limit", fmt.Sprintf(request, strings.Repeat("q", limit), ""), 414},
		{"100 lines", fmt.Sprintf(request, "", strings.Repeat("a: b\r\n", 98)), 200},
		{"101 lines", fmt.Sprintf(request, "", strings.Repeat("a: b\r\n", 99)), 431},
		{"20,000 lines", fmt.Sprintf(request, "", strings.Repeat("a: b\r\n", 20_000)), 431},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := new(stub)
			c := start(t, cfg, s, nil).dial()
			go func() { c.nc.Write([]byte(row.text)) }()
			c.want(row.status)
			if stored := len(s.all()); (stored == 1) != (row.status == 200) {
				t.Errorf("%d arrivals", stored)
			}
		})
	}
}

func TestEmptyLinesBeforeARequestAreSkipped(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send("\r\n" + post(hook(""), "a") + "\r\n\r\n" + post(hook(""), "b"))
	c.want(200)
	c.want(200)
}

func TestLinesMayEndInLFAlone(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send("POST " + hook("") + " HTTP/1.1\nHost: x\nContent-Length: 1\n\nb")
	c.want(200)
	if a := s.one(t); wire(a.Headers) != lines("Host: x", "Content-Length: 1") {
		t.Errorf("got %q", wire(a.Headers))
	}
}

func TestHeadInPieces(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	for _, b := range []byte(post(hook("/piece"), "body")) {
		c.send(string(b))
	}
	c.want(200)
	if a := s.one(t); a.Path != "/piece" || string(a.Body) != "body" {
		t.Errorf("got %+v", a)
	}
}
