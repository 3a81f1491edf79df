package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestThePushIsARealRequest(t *testing.T) {
	u, err := url.Parse("http://127.0.0.1:9/hooks/ep_x?a=b")
	if err != nil {
		t.Fatal(err)
	}
	r := push(u).copy()
	r.number(42)
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(r.bytes)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Fatal(err)
	}
	if req.URL.String() != "/hooks/ep_x?a=b" || req.Host != "127.0.0.1:9" || req.Method != "POST" {
		t.Errorf("%s %s to %s", req.Method, req.URL, req.Host)
	}
	if len(req.Header) != 13 { // the twelve and Content-Length
		t.Errorf("%d headers", len(req.Header))
	}
	if len(body) < 1450 || len(body) > 1600 || int64(len(body)) != req.ContentLength {
		t.Errorf("a body of %d bytes, announced as %d", len(body), req.ContentLength)
	}
	var doc struct{ Serial string }
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Serial != "000000000042" {
		t.Errorf("serial %q", doc.Serial)
	}
}

func TestALoadCountsWhatWasAnswered(t *testing.T) {
	var (
		mu   sync.Mutex
		seen = map[string]int{}
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var doc struct{ Serial string }
		if err := json.NewDecoder(r.Body).Decode(&doc); err != nil {
			t.Error(err)
		}
		mu.Lock()
		seen[doc.Serial]++
		n := len(seen)
		mu.Unlock()
		switch {
		case n%50 == 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case n%50 == 1:
			w.Header().Set("Connection", "close")
		case n%50 == 2: // chunked
			w.(http.Flusher).Flush()
			io.WriteString(w, strings.Repeat("x", 10_000))
		}
	}))
	defer server.Close()
	o, err := load{conns: 4, count: 1000}.send(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if o.acked != 980 || o.failed != 20 || o.unsure != 0 || o.firstFail != "status 503" {
		t.Errorf("acked %d, failed %d, unsure %d, %q", o.acked, o.failed, o.unsure, o.firstFail)
	}
	if len(seen) != 1000 {
		t.Errorf("%d different requests arrived", len(seen))
	}
	if o.p50 <= 0 || o.p99 < o.p50 || o.perSecond <= 0 {
		t.Errorf("p50 %v, p99 %v, %f/s", o.p50, o.p99, o.perSecond)
	}
}

func TestABrokenConnectionLeavesItsRequestUnsure(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 10 {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	o, err := load{conns: 1, count: 20}.send(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if o.acked != 19 || o.failed != 1 || o.unsure != 1 {
		t.Errorf("acked %d, failed %d, unsure %d", o.acked, o.failed, o.unsure)
	}
}

func TestALoadEndsWithItsServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	o, err := load{conns: 3, time: time.Minute}.send(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if o.acked != 0 || o.failed != 3 || o.unsure != 0 {
		t.Errorf("acked %d, failed %d, unsure %d", o.acked, o.failed, o.unsure)
	}
}

func TestSendAtOnceSendsOneBodyOnEachConnection(t *testing.T) {
	var bodies, size atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		bodies.Add(1)
		size.Add(n)
	}))
	defer server.Close()
	o, err := sendAtOnce(t.Context(), server.URL, 5, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	if o.acked != 5 || bodies.Load() != 5 || size.Load() != 5<<16 {
		t.Errorf("acked %d, %d bodies of %d bytes together", o.acked, bodies.Load(), size.Load())
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		answer   string
		reusable bool
		fault    string
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true, ""},
		{"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: Close\r\n\r\nok", false, ""},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\nA: b\r\n\r\n", true, ""},
		{"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", true, "status 503"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", false, "EOF"},
		{"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nok", false, "negative"},
		{"SSH-2.0-OpenSSH\r\n", false, "not an HTTP answer"},
		{"", false, "EOF"},
	} {
		reusable, err := readAnswer(bufio.NewReader(strings.NewReader(c.answer)))
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%q: error %v, want %q", c.answer, err, c.fault)
		}
		if reusable != c.reusable && (err == nil || errors.Is(err, errStatus)) {
			t.Errorf("%q: reusable %t", c.answer, reusable)
		}
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := readAnswer(bufio.NewReader(bytes.NewReader(b))); err == nil && !bytes.HasPrefix(b, []byte("HTTP/1.")) {
			t.Errorf("%q passed for an answer", b)
		}
	})
}

func TestWrkIsUnderstood(t *testing.T) {
	o, err := parseWrk(`Running 5s test @ http://127.0.0.1:8080/hooks/x
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.52ms    2.31ms  41.02ms   86.35%
    Req/Sec     9.49k   760.09    11.29k    71.00%
  Latency Distribution
     50%    2.95ms
     75%    4.33ms
     90%    6.04ms
     99%   12.27ms
  94459 requests in 5.00s, 18.65MB read
  Socket errors: connect 0, read 1, write 0, timeout 2
  Non-2xx or 3xx responses: 9
Requests/sec:  18887.13
Transfer/sec:      3.73MB
`)
	if err != nil {
		t.Fatal(err)
	}
	want := outcome{acked: 94450, failed: 12, unsure: 3, perSecond: 18887.13, p50: 2950 * time.Microsecond, p99: 12270 * time.Microsecond,
		firstFail: "Socket errors: connect 0, read 1, write 0, timeout 2"}
	if o != want {
		t.Errorf("got %+v, want %+v", o, want)
	}
	if _, err := parseWrk("unable to connect"); err == nil {
		t.Error("nonsense was understood")
	}
}

func TestQuantiles(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	var all []time.Duration
	for i := 1; i <= 100; i++ {
		all = append(all, ms(i))
	}
	for q, want := range map[float64]time.Duration{0: ms(1), 0.5: ms(50), 0.99: ms(99), 1: ms(100)} {
		if got := quantile(all, q); got != want {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing: %v", got)
	}
}

func TestRatiosAreThoseOfARound(t *testing.T) {
	at := func(perSecond float64, p99 time.Duration) outcome { return outcome{perSecond: perSecond, p99: p99} }
	row := captureMedians("x", 64,
		[]outcome{at(10, 30), at(40, 20), at(30, 60)},
		[]outcome{at(20, 10), at(100, 10), at(50, 10)})
	if row.ratio != 0.5 || row.perSecond != 30 || row.p99Ratio != 3 {
		t.Errorf("%+v", row)
	}
}

func TestTheReportReplacesOnlyItsSectionsBetweenTheMarkers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "performance.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("### A\nbefore\n" + beginMarker + "\n### A\n\nold\n### B\n\nold\n" + endMarker + "\nafter\n")
	if err := writeBetweenMarkers(file, "\n### B\n\nnew\n\n### C\n\nfirst\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "### A\nbefore\n" + beginMarker + "\n\n### A\n\nold\n\n### B\n\nnew\n\n### C\n\nfirst\n\n" + endMarker + "\nafter\n"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	write("no markers")
	if err := writeBetweenMarkers(file, "new"); err == nil {
		t.Error("wrote into a file without markers")
	}
}

func TestPlotsAreWellFormedAndSayWhatTheyShow(t *testing.T) {
	r := &report{
		plan: &plan{databases: []string{"sqlite"}},
		captures: []captureRow{
			{system: noop, conns: 64, ratio: 1, perSecond: 40_000},
			{system: "a <peer> & \"more\"", conns: 64, ratio: 0.4, perSecond: 16_000},
		},
		reads: []readRow{
			{database: "sqlite", events: 1000, what: "newest 25", median: time.Millisecond},
			{database: "sqlite", events: 1_000_000, what: "newest 25", median: 2 * time.Millisecond},
			{database: "sqlite", events: 1000, what: "of one size only", median: time.Millisecond},
			{database: "sqlite", events: 1_000_000, what: "refused", problem: "it was"},
		},
	}
	dir := t.TempDir()
	if err := r.writePlots(filepath.Join(dir, "performance.md")); err != nil {
		t.Fatal(err)
	}
	for name, words := range map[string][]string{
		"capture":      {"64 connections", "a <peer> & \"more\"", "0.40  (16,000 a second)"},
		"reads-sqlite": {"newest 25", "1,000,000", "1ms"},
	} {
		svg, err := os.ReadFile(filepath.Join(dir, plotFile(name)))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if chars, ok := token.(xml.CharData); ok {
				text.Write(chars)
			}
		}
		for _, w := range words {
			if !strings.Contains(text.String(), w) {
				t.Errorf("%s does not say %q", name, w)
			}
		}
		if strings.Contains(text.String(), "of one size only") {
			t.Errorf("%s draws a line of one point", name)
		}
	}
}

func TestFigures(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{1500 * time.Microsecond: "1.50 ms", 15 * time.Millisecond: "15 ms", 2500 * time.Millisecond: "2.5 s", 61 * time.Second: "61 s"} {
		if got := duration(d); got != want {
			t.Errorf("duration(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{
		{"-conns", "0"}, {"-conns", "x"}, {"-sizes", "100,10"}, {"-databases", "oracle"}, {"-parts", "all"},
		{"-load", "ab"}, {"-peer", "x"}, {"-peer", "x=ftp://y"}, {"-rounds", "0"}, {"more"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	p, err := parse([]string{"-short", "-conns", "3"})
	if err != nil {
		t.Fatal(err)
	}
	if p.out != "" || len(p.conns) != 1 || p.conns[0] != 3 || p.rounds != 1 {
		t.Errorf("-short -conns 3: %+v", p)
	}
}

// The benchmark in its short form, on both databases, so that it still runs when somebody needs it. The parts that it
// leaves out are built of the same pieces, and are in make bench ARGS=-short.
func TestTheShortForm(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "hookglass")
	if out, err := exec.Command("go", "build", "-ldflags=-s", "-o", binary, "hookglass/cmd/hookglass").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p, err := parse([]string{"-short", "-parts", "capture,forward,read,start,memory", "-load", loadOwn, "-binary", binary, "-dir", "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	p.log = t.Logf
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	report, err := p.run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"### Capture", "### Lists and searches", "### Starting", "### Memory", "### Forwarding and replay", "| hookglass, SQLite ", "| hookglass, PostgreSQL ", "and holds them all"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report does not hold %q:\n%s", want, report)
		}
	}
}

// TestMain lets the test's own program be the other servers, as the benchmark's is.
func TestMain(m *testing.M) {
	if beOther(os.Args) {
		return
	}
	os.Exit(m.Run())
}
