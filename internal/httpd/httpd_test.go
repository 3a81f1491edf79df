package httpd_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/httpd"
)

func TestAPanicIsAnsweredAndRecorded(t *testing.T) {
	w, log := serve(t, httpd.Config{}, httptest.NewRequest("GET", "/", nil), func(http.ResponseWriter, *http.Request) { panic("the tea is cold") })
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"error":"internal"`) || strings.Contains(w.Body.String(), "tea") {
		t.Errorf("the caller is told %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log, "the tea is cold") || !strings.Contains(log, "httpd_test.go") {
		t.Errorf("the log has %s", log)
	}
}

// An answer that is half out must not look whole, nor one of which only the headers are.
func TestAPanicInAnAnswerBreaksTheConnection(t *testing.T) {
	for _, sent := range []string{"half", ""} {
		server := httptest.NewServer(httpd.New(httpd.Config{Log: discard}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if sent != "" {
				_, _ = io.WriteString(w, sent)
			}
			_ = http.NewResponseController(w).Flush()
			panic("the tea is cold")
		})))
		defer server.Close()
		res, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if text, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("after %q the answer %q ends well", sent, text)
		}
	}
}

func TestAnswersAreGuarded(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "192.0.2.1:5000"
	r.Header.Set("X-Forwarded-Proto", "https")
	for proto, proxies := range map[string]httpd.Proxies{"http": nil, "https": {netip.MustParsePrefix("192.0.2.0/24")}} {
		w, _ := serve(t, httpd.Config{Proxies: proxies}, r, func(w http.ResponseWriter, r *http.Request) {
			if got := httpd.From(r.Context()).Scheme; got != proto {
				t.Errorf("the scheme is %s, want %s", got, proto)
			}
		})
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if got := w.Header().Get("Strict-Transport-Security") != ""; got != (proto == "https") {
			t.Errorf("over %s, HSTS is %v", proto, got)
		}
	}
}

func TestTheLogHoldsNoSecret(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth/link/{secret}", func(http.ResponseWriter, *http.Request) {})
	r := httptest.NewRequest("GET", "/auth/link/canary-path?ticket=canary-query", nil)
	r.Header.Set("Authorization", "Bearer canary-token")
	r.Header.Set("Cookie", "session=canary-cookie")
	_, log := serve(t, httpd.Config{}, r, mux.ServeHTTP)
	if strings.Contains(log, "canary") || !strings.Contains(log, "/auth/link/{secret}") {
		t.Errorf("the log has %s", log)
	}
}

func TestCallersAreToldApart(t *testing.T) {
	for _, c := range []struct{ peer, other string }{
		{"192.0.2.1:1", "192.0.2.2:1"},
		{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1"},
	} {
		if caller(t, c.peer, hookglass.Principal{}) == caller(t, c.other, hookglass.Principal{}) {
			t.Errorf("%s and %s are one caller", c.peer, c.other)
		}
	}
	if caller(t, "[2001:db8::1]:1", hookglass.Principal{}) != caller(t, "[2001:db8::ffff]:2", hookglass.Principal{}) {
		t.Error("addresses of one network are two callers")
	}
	if caller(t, "192.0.2.1:1", hookglass.Principal{}) != caller(t, "[::ffff:192.0.2.1]:2", hookglass.Principal{}) {
		t.Error("one address in two forms is two callers")
	}
	if caller(t, "192.0.2.1:1", hookglass.Principal{Token: 7}) != caller(t, "192.0.2.2:1", hookglass.Principal{Token: 7}) {
		t.Error("a token from two addresses is two callers")
	}
}

func caller(t *testing.T, peer string, who hookglass.Principal) (name string) {
	t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = peer
	serve(t, httpd.Config{}, r, func(_ http.ResponseWriter, r *http.Request) {
		known := httpd.From(r.Context())
		known.Who = who
		name = known.Caller()
	})
	return name
}

func TestOutsideOfTheStackNothingIsKnown(t *testing.T) {
	if r := httpd.From(context.Background()); r.ID != "" || r.Client.IsValid() {
		t.Errorf("got %+v", r)
	}
}

func TestAMuxNeverRedirects(t *testing.T) {
	mux := httpd.NewMux()
	mux.HandleFunc("GET /a/{id}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /a/{id}", func(http.ResponseWriter, *http.Request) {})
	for target, want := range map[string]int{
		"GET /a/1": 200, "HEAD /a/1": 200, "GET /a/x%2Fy": 200, "GET /a/x%2F%2Fy": 200, "GET /a/%2E": 200, "GET /a": 404, "GET /a/": 404, "GET /a/1/": 404, "GET //a/1": 404, "GET /b/../a/1": 404, "GET /a/./1": 404,
		"DELETE /a/1": 405, "OPTIONS /a/1": 405, "PATCH /": 404,
	} {
		method, path, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(method, "http://example.com"+path, nil))
		if w.Code != want || want == 405 && w.Header().Get("Allow") != "GET, HEAD, POST" {
			t.Errorf("%s: %d %v, want %d", target, w.Code, w.Header(), want)
		}
	}
}

// A slow reader gets all of a long answer, and one that takes nothing does not keep it for ever.
func TestALongAnswerGivesItsReaderTimeForEachPiece(t *testing.T) {
	w := &timed{ResponseRecorder: httptest.NewRecorder()}
	httpd.New(httpd.Config{Log: discard}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n, err := w.Write(make([]byte, 1_000_000)); n != 1_000_000 || err != nil {
			t.Errorf("%d bytes were written, %v", n, err)
		}
	})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Body.Len() != 1_000_000 || w.untimed > 0 || w.largest > 64<<10 {
		t.Errorf("%d bytes, %d pieces without a time of their own, %d bytes in one", w.Body.Len(), w.untimed, w.largest)
	}
}

// A connection has its writer wait until much of what it holds was taken, though its reader takes all the time.
func TestAReaderIsWaitedForAsLongAsItsConnectionHoldsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		ended := make(chan error, 1)
		srv := &http.Server{Handler: httpd.New(httpd.Config{Log: discard}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 10_000_000))
			ended <- err
		}))}
		go func() { _ = srv.Serve(&oneConn{conn: server}) }()
		defer srv.Close()
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		go func() { // a third of 4 MiB at once, 64 kbit/s of all
			for {
				if _, err := io.CopyN(io.Discard, client, 4<<20/3); err != nil {
					return
				}
				time.Sleep(4 << 20 / 3 * time.Second / 8000)
			}
		}()
		if err := <-ended; err != nil {
			t.Errorf("the answer ends with %v", err)
		}
	})
}

func TestAReaderThatTakesNothingIsGivenUp(t *testing.T) {
	w := &timed{ResponseRecorder: httptest.NewRecorder(), full: true}
	var err error
	httpd.New(httpd.Config{Log: discard}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err = w.Write(make([]byte, 1_000_000))
	})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if !errors.Is(err, os.ErrDeadlineExceeded) || w.pieces != 1 {
		t.Errorf("after %d pieces: %v", w.pieces, err)
	}
}

// Who looks through much for what is next to write, or has found the last of it, is given up by no reader's deadline.
func TestBetweenPiecesOfAnAnswerThereIsNoDeadline(t *testing.T) {
	w := &timed{ResponseRecorder: httptest.NewRecorder()}
	quiet := func(after string) {
		if !w.until.IsZero() {
			t.Errorf("after %s the deadline stands at %v", after, w.until)
		}
	}
	httpd.New(httpd.Config{Log: discard}).Wrap(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(out, "a piece")
		quiet("a piece")
		if err := http.NewResponseController(out).Flush(); err != nil || w.unflushed {
			t.Errorf("flushed without a deadline: %v; %v", w.unflushed, err)
		}
		quiet("a flush")
	})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if left := time.Until(w.until); left <= 0 || left > 3*time.Minute {
		t.Errorf("what the server still holds of the answer has %v", left)
	}
}

func TestAFlushThatFailsIsTold(t *testing.T) {
	w := &timed{ResponseRecorder: httptest.NewRecorder(), full: true}
	httpd.New(httpd.Config{Log: discard}).Wrap(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(out).Flush(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it says %v", err)
		}
	})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
}

// timed notes what is written without a deadline since what was written before.
type timed struct {
	*httptest.ResponseRecorder
	full, set, unflushed     bool
	until                    time.Time
	pieces, untimed, largest int
}

func (w *timed) SetWriteDeadline(at time.Time) error {
	w.set, w.until = !at.IsZero(), at
	return nil
}

func (w *timed) FlushError() error {
	w.unflushed = !w.set
	if w.full {
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (w *timed) Write(p []byte) (int, error) {
	if !w.set {
		w.untimed++
	}
	w.pieces++
	if w.full {
		return 0, os.ErrDeadlineExceeded
	}
	w.set, w.largest = false, max(w.largest, len(p))
	return w.ResponseRecorder.Write(p)
}

func TestACapabilitysLinesSayWhoAsked(t *testing.T) {
	var b strings.Builder
	log := httpd.Knowing(slog.New(slog.NewTextHandler(&b, nil))).With("part", "account")
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "192.0.2.7:4711"
	serve(t, httpd.Config{}, r, func(_ http.ResponseWriter, r *http.Request) { log.WarnContext(r.Context(), "a sign-in failed") })
	if line := b.String(); !strings.Contains(line, "part=account client=192.0.2.7 request=rq_") {
		t.Errorf("the line is %s", line)
	}
	b.Reset()
	log.Warn("more")
	if line := b.String(); strings.Contains(line, "client") {
		t.Errorf("outside of a request the line is %s", line)
	}
}

// Who waits for the memory that a slow reader holds has the answer broken off, so that it is not taken for whole.
func TestAnAnswerToASlowReaderCanBeBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		room := fair.NewBodies(64 << 20)
		var log strings.Builder
		had, ended := make(chan struct{}), make(chan error, 1)
		srv := &http.Server{Handler: httpd.New(httpd.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			give, _ := room.Await(r.Context(), "slow", 50<<20, time.Second)
			defer give()
			close(had)
			w.Header().Set("Content-Length", "10000000")
			_, err := w.Write(make([]byte, 10_000_000))
			ended <- err
		}))}
		go func() { _ = srv.Serve(&oneConn{conn: server}) }()
		defer srv.Close()
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-had
		taken := make(chan int)
		go func() { // 64 KiB in 15 s: fast enough while nobody waits
			n, piece := 0, make([]byte, 64<<10)
			for {
				got, err := io.ReadFull(client, piece)
				if n += got; err != nil {
					taken <- n
					return
				}
				time.Sleep(15 * time.Second)
			}
		}()
		began := time.Now()
		give, ok := room.Await(t.Context(), "waits", 50<<20, 10*time.Minute)
		if !ok {
			t.Fatal("the reader's room is not given back")
		}
		give()
		if took := time.Since(began); took < 3*time.Minute || took > 4*time.Minute {
			t.Errorf("the room was given back after %v", took)
		}
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the answer was written: %v", err)
		}
		if n := <-taken; n == 0 || n >= 10_000_000 {
			t.Errorf("the reader has %d bytes", n)
		}
		if !strings.Contains(log.String(), "broken off") {
			t.Errorf("the log says %q", log.String())
		}
	})
}

// oneConn is a listener on which one connection comes.
type oneConn struct {
	conn net.Conn
	once sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	var conn net.Conn
	if l.once.Do(func() { conn = l.conn }); conn != nil {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }
