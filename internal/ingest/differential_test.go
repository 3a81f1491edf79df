package ingest_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hookglass"
	"hookglass/internal/ingest"
)

// TestWellFormedRequestsAreReadAsNetHTTPReadsThem pipelines random requests on one connection and compares
// every arrival with what http.ReadRequest makes of the same bytes.
func TestWellFormedRequestsAreReadAsNetHTTPReadsThem(t *testing.T) {
	s := new(stub)
	sv := start(t, ingest.Config{}, s, nil)
	seen := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.Custom(wellFormed), 1, 5).Draw(rt, "requests"), "")
		r := bufio.NewReader(strings.NewReader(text))
		c := sv.dial()
		defer c.nc.Close()
		c.send(text)
		for {
			want, err := http.ReadRequest(r)
			if err == io.EOF {
				break
			}
			if err != nil {
				rt.Fatalf("net/http: %v", err)
			}
			body, err := io.ReadAll(want.Body)
			if err != nil {
				rt.Fatalf("net/http's body: %v", err)
			}
			if a := c.read(want.Method); a.StatusCode != 200 {
				rt.Fatalf("answered %d %s", a.StatusCode, a.body)
			}
			got := s.all()[seen]
			seen++
			if got.Method != want.Method || got.Target != want.RequestURI || got.RawQuery != want.URL.RawQuery ||
				hook("")+strings.TrimSuffix(got.Path, "/") != strings.TrimSuffix(want.URL.EscapedPath(), "/") || string(got.Body) != string(body) || got.Host != want.Host {
				rt.Fatalf("got %+v", got)
			}
			headers := make(http.Header)
			for _, h := range got.Headers {
				headers.Add(h.Name, h.Value)
			}
			for name, values := range want.Header {
				if !slices.Equal(headers[name], values) {
					rt.Fatalf("%s: %q, net/http: %q", name, headers[name], values)
				}
			}
			for name, values := range want.Trailer {
				if !slices.Equal(got.Trailers.Values(name), values) {
					rt.Fatalf("trailer %s: %q, net/http: %q", name, got.Trailers, values)
				}
			}
		}
	})
}

func wellFormed(t *rapid.T) string {
	var b strings.Builder
	path := rapid.StringMatching(`(/[a-zA-Z0-9._~-]{0,8}){0,4}`).Draw(t, "path")
	query := rapid.StringMatching(`(\?([a-z;&=+/?]|%[0-9A-F]{2}){0,20})?`).Draw(t, "query")
	fmt.Fprintf(&b, "%s %s%s HTTP/1.1\r\nHost: x\r\n", rapid.SampledFrom(hookglass.Methods).Draw(t, "method"), hook(path), query)
	for range rapid.IntRange(0, 10).Draw(t, "lines") {
		name := rapid.StringMatching(`[Xx]-[!#$%&'*+.^_|~0-9A-Za-z-]{1,12}`).Draw(t, "name")
		value := rapid.StringMatching(`([!-~\x{80}-\x{ff}]([ -~\t]{0,30}[!-~])?)?`).Draw(t, "value")
		fmt.Fprintf(&b, "%s:%s%s%s\r\n", name, rapid.SampledFrom([]string{"", " ", "\t", " \t "}).Draw(t, "before"), value, rapid.SampledFrom([]string{"", " "}).Draw(t, "behind"))
	}
	body := rapid.SliceOfN(rapid.Byte(), -1, 20_000).Draw(t, "body")
	switch rapid.SampledFrom([]string{"none", "length", "chunked"}).Draw(t, "framing") {
	case "length":
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	case "chunked":
		b.WriteString("Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
		for len(body) > 0 {
			n := rapid.IntRange(1, len(body)).Draw(t, "chunk")
			fmt.Fprintf(&b, "%x%s\r\n%s\r\n", n, rapid.SampledFrom([]string{"", ";a", ";a=b"}).Draw(t, "extension"), body[:n])
			body = body[n:]
		}
		b.WriteString("0\r\nX-Sum: 1\r\n\r\n")
	default:
		b.WriteString("\r\n")
	}
	return b.String()
}
