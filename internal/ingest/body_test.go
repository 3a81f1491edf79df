package ingest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/ingest"
)

func chunkedPost(path string, chunks string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
}

func TestChunkedBody(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send(chunkedPost(hook("/1"), "1\r\na\r\n1;ext\r\nb\r\n2 ; name=\"v;w\"\r\ncd\r\n0a\r\n0123456789\r\nB\r\n0123456789e\r\nf\r\n0123456789abcdf\r\n0\r\n\r\n"))
	c.send(chunkedPost(hook("/2"), "0;last\r\nX-Sum: 1\r\nx-sum: 2\r\n\r\n"))
	c.send(post(hook("/3"), "plain"))
	for range 3 {
		c.want(200)
	}
	all := s.all()
	if got := string(all[0].Body); got != "abcd0123456789"+"0123456789e"+"0123456789abcdf" || all[0].Trailers != nil {
		t.Errorf("body %q, trailers %v", got, all[0].Trailers)
	}
	if got := wire(all[1].Trailers); len(all[1].Body) != 0 || got != lines("X-Sum: 1", "x-sum: 2") {
		t.Errorf("body %q, trailers %q", all[1].Body, got)
	}
	if all[2].Path != "/3" || string(all[2].Body) != "plain" {
		t.Errorf("behind them: %+v", all[2])
	}
}

func TestChunkedBodyByteByByte(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, "1\r\n%c\r\n", 'a'+i%26)
	}
	text := chunkedPost(hook(""), b.String()+"0\r\nX-T: v\r\n\r\n")
	for i := range len(text) {
		c.send(text[i : i+1])
	}
	c.want(200)
	if a := s.one(t); len(a.Body) != 500 || a.Body[27] != 'b' || a.Trailers.Get("x-t") != "v" {
		t.Errorf("got %q, %v", a.Body, a.Trailers)
	}
}

func TestChunkOverheadIsBounded(t *testing.T) {
	for _, chunks := range []string{
		"1;" + strings.Repeat("e", 5<<10) + "\r\na\r\n0\r\n\r\n",
		strings.Repeat("1;"+strings.Repeat("e", 1000)+"\r\na\r\n", 100) + "0\r\n\r\n",
		"0000000000000000000000001\r\na\r\n0\r\n\r\n",
	} {
		c := start(t, ingest.Config{}, new(stub), nil).dial()
		c.send(chunkedPost(hook(""), chunks))
		c.want(400)
	}
	c := start(t, ingest.Config{}, new(stub), nil).dial()
	c.send(chunkedPost(hook(""), "0\r\nX-Long: "+strings.Repeat("v", 70<<10)))
	c.want(431)
}

func TestExpectContinue(t *testing.T) {
	request := func(ref, expect string, n int) string {
		return fmt.Sprintf("POST /hooks/%s HTTP/1.1\r\nHost: x\r\nExpect: %s\r\nContent-Length: %d\r\n\r\n", ref, expect, n)
	}
	s := new(stub)
	sv := start(t, ingest.Config{MaxBodyBytes: 1000}, s, nil)

	c := sv.dial()
	c.send(request(knownRef, "100-Continue", 4))
	c.want(100)
	c.send("body")
	c.want(200)
	if a := s.one(t); string(a.Body) != "body" || a.Headers.Get("Expect") != "100-Continue" {
		t.Errorf("got %+v", a)
	}
	c.send(post(hook(""), "again"))
	c.want(200)

	for _, row := range []struct {
		ref, expect string
		n, status   int
	}{{knownRef, "100-continue", 1001, 413}, {"unknown", "100-continue", 4, 404}, {knownRef, "200-ok", 4, 417}} {
		c = sv.dial()
		c.send(request(row.ref, row.expect, row.n))
		if a := c.want(row.status); !a.Close {
			t.Errorf("%d keeps a connection on which a body may come", row.status)
		}
		c.nc.CloseWrite()
		c.wantEnd()
	}
	c = sv.dial()
	c.send(request(knownRef, "100-continue", 0))
	c.want(200)
}

func TestBodyLimit(t *testing.T) {
	const limit = 200_000
	for n, status := range map[int]int{limit - 1: 200, limit: 200, limit + 1: 413, 5 * limit: 413} {
		body := strings.Repeat("b", n)
		for _, text := range []string{
			post(hook(""), body),
			chunkedPost(hook(""), fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, body)),
			chunkedPost(hook(""), fmt.Sprintf("%x\r\n%s\r\n1\r\nb\r\n0\r\n\r\n", n-1, body[1:])),
		} {
			s := new(stub)
			c := start(t, ingest.Config{MaxBodyBytes: limit}, s, nil).dial()
			c.send(text) // all of it, before the answer is read
			a := c.want(status)
			if status == 200 {
				if got := s.one(t).Body; string(got) != body {
					t.Errorf("a body of %d bytes arrived as %d", n, len(got))
				}
				continue
			}
			if a.body != `{"error":"payload_too_large","message":"The body is larger than this service accepts."}` || s.refusals() != 1 || len(s.all()) != 0 {
				t.Errorf("%s, %d refusals, %d arrivals", a.body, s.refusals(), len(s.all()))
			}
		}
	}
}

func TestRefusalOfAnEndlessBodyCanBeRead(t *testing.T) {
	for _, length := range []string{"100000000000", "99999999999999999999999"} {
		s := new(stub)
		c := start(t, ingest.Config{}, s, nil).dial()
		c.send("POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + "\r\n\r\n")
		for range 64 {
			c.send(strings.Repeat("b", 1<<20))
		}
		if a := c.want(413); !a.Close {
			t.Error("the connection is kept")
		}
		c.nc.CloseWrite()
		c.wantEnd()
		if s.refusals() != 1 {
			t.Errorf("%d refusals", s.refusals())
		}
	}
}

func TestWhatNetHTTPRefusesWithoutReadingItCanBeRead(t *testing.T) {
	unread := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	part := strings.Repeat("b", 1<<20)
	for name, framed := range map[string][2]string{
		"with a length": {fmt.Sprintf("Content-Length: %d\r\n\r\n", 64*len(part)), part},
		"in chunks":     {"Transfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n", len(part), part)},
		"at its end":    {fmt.Sprintf("Connection: close\r\nContent-Length: %d\r\n\r\n", 64*len(part)), part},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, ingest.Config{}, new(stub), unread).dial()
			c.send("POST /api/v1/endpoints HTTP/1.1\r\nHost: x\r\n" + framed[0])
			for range 64 {
				c.send(framed[1]) // all of it, before the answer is read
			}
			if a := c.want(401); !a.Close {
				t.Error("the connection is kept")
			}
			c.nc.CloseWrite()
			c.wantEnd()
		})
	}
}

func TestConnectionGoesOnBehindASmallRefusedBody(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send(post("/hooks/unknown", "body") + post(hook(""), "next") + "PUT /hooks/unknown HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n")
	c.want(404)
	c.want(200)
	c.want(404)
	c.send(strings.Repeat("b", 60_000) + post(hook(""), "last"))
	c.want(200)
	if all := s.all(); len(all) != 2 || string(all[1].Body) != "last" {
		t.Errorf("%d arrivals", len(all))
	}
}

// Who sends slowly is received after who began later and was done first, as the two are stored.
func TestARequestIsReceivedWhenItsBodyIsThere(t *testing.T) {
	known := make(chan struct{}, 2)
	s := &stub{admit: func(context.Context, string) (capture.Target, error) {
		known <- struct{}{}
		return capture.Target{}, nil
	}}
	f := start(t, ingest.Config{}, s, nil)
	slow, quick := f.dial(), f.dial()
	slow.send("POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nsl")
	<-known
	quick.send("POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nqu")
	quick.want(200)
	slow.send("ow")
	slow.want(200)
	if all := s.all(); len(all) != 2 || string(all[1].Body) != "slow" || !all[1].At.After(all[0].At) {
		t.Errorf("%d arrivals: %+v", len(all), all)
	}
}

func TestBodyCutShortIsNotStored(t *testing.T) {
	for _, text := range []string{
		"POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf",
		chunkedPost(hook(""), "a\r\nhalf"),
	} {
		s := new(stub)
		c := start(t, ingest.Config{}, s, nil).dial()
		c.send(text)
		c.nc.CloseWrite()
		c.want(400)
		c.wantEnd()
		if len(s.all()) != 0 {
			t.Error("half a body was stored")
		}
	}
}

// escapedHook is a hook that net/http receives.
const escapedHook = "/%68ooks/" + knownRef

func TestSlowSendersAreCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(stub)
		b := inBubble(t, nil, ingest.Config{HeaderTimeout: 3 * time.Second, BodyGrace: 2 * time.Second}, s)
		for name, row := range map[string]struct {
			text  string
			after time.Duration
		}{
			"half a head":              {"POST " + hook("") + " HTTP/1.1\r\nHost:", 3 * time.Second},
			"half a body":              {"POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf", 2 * time.Second},
			"half a body, by net/http": {"POST " + escapedHook + " HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf", 2 * time.Second},
			"half a chunk":             {chunkedPost(hook(""), "a\r\nhalf"), 2 * time.Second},
			"half a chunk, 64":         {chunkedPost(hook(""), "10000\r\n"+strings.Repeat("b", 40_000)), 2 * time.Second},
		} {
			c, begun := b.dial(), time.Now()
			go io.WriteString(c.nc, row.text)
			if res := c.answer(); res.StatusCode != 408 || !res.Close {
				t.Errorf("%s: %s, the connection is kept: %v", name, res.Status, !res.Close)
			}
			if took := time.Since(begun); took != row.after {
				t.Errorf("%s: after %v, want %v", name, took, row.after)
			}
			c.end()
		}
		c, begun := b.dial(), time.Now()
		c.end() // nothing sent
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("the connection on which nothing was sent ended after %v", took)
		}
		b.stop()

		b = inBubble(t, nil, ingest.Config{IdleTimeout: time.Minute}, s)
		for _, path := range []string{hook(""), "/api"} { // the second is idle with net/http
			c := b.dial()
			go io.WriteString(c.nc, get(path))
			if res := c.answer(); res.StatusCode != 200 || res.Close {
				t.Errorf("%s: %s", path, res.Status)
			}
			begun := time.Now()
			c.end()
			if took := time.Since(begun); took != time.Minute {
				t.Errorf("%s: ended after %v", path, took)
			}
		}
		b.stop()
		if len(s.all()) != 1 {
			t.Errorf("%d arrivals", len(s.all()))
		}
	})
}

func TestTricklingBodyIsCutOffAndASteadyOneIsNot(t *testing.T) {
	drip := func(c *piped, n, piece int, every time.Duration) {
		for sent := 0; sent < n; sent += piece {
			time.Sleep(every)
			if _, err := io.WriteString(c.nc, strings.Repeat("b", piece)); err != nil {
				return
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := new(stub)
		b := inBubble(t, nil, ingest.Config{BodyGrace: time.Second, MinBodyRate: 2000}, s)
		var drips sync.WaitGroup
		for _, path := range []string{hook(""), escapedHook} { // the second by net/http
			c := b.dial()
			drips.Go(func() {
				io.WriteString(c.nc, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n")
				drip(c, 40_000, 400, 190*time.Millisecond)
			})
			if res := c.answer(); res.StatusCode != 200 {
				t.Errorf("a steady body to %s: %s", path, res.Status)
			}
			c.nc.Close()
			c = b.dial()
			begun := time.Now()
			drips.Go(func() {
				io.WriteString(c.nc, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("b", 90_000)) // a burst buys no time
				drip(c, 10_000, 1, 10*time.Millisecond)                                                                                 // 100 s of it
			})
			if res, took := c.answer(), time.Since(begun); res.StatusCode != 408 || took > 5*time.Second {
				t.Errorf("a body that trickles to %s: %s after %v", path, res.Status, took)
			}
			c.nc.Close()
		}
		drips.Wait()
		b.stop()
		if len(s.all()) != 2 {
			t.Errorf("%d arrivals", len(s.all()))
		}
	})
}

// TestManyLargeBodiesStayWithinTheBudget has far more large bodies at once than the budget holds: all of them
// arrive, and never more than the budget and one body is held.
func TestManyLargeBodiesStayWithinTheBudget(t *testing.T) {
	const size, budget = 1 << 20, 4 << 20
	var mu sync.Mutex
	held, most := 0, 0
	s := &stub{capture: func(_ context.Context, _ capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
		mu.Lock()
		held += len(a.Body)
		most = max(most, held)
		mu.Unlock()
		time.Sleep(5 * time.Millisecond) // storage takes its time
		mu.Lock()
		held -= len(a.Body)
		mu.Unlock()
		return jsonReply("{}"), nil
	}}
	sv := start(t, ingest.Config{MaxBodyBytes: size, InFlightBytes: budget, BudgetWait: patience}, s, nil)
	body := bytes.Repeat([]byte("b"), size)
	var senders sync.WaitGroup
	for i := range 40 {
		senders.Go(func() {
			var r io.Reader = bytes.NewReader(body)
			if i%2 == 1 {
				r = io.MultiReader(r) // no length: chunked
			}
			resp, err := http.Post("http://"+sv.addr+hook(""), "text/plain", r)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("answered %d", resp.StatusCode)
			}
		})
	}
	senders.Wait()
	if most > budget+size {
		t.Errorf("%d bytes were held at once", most)
	}
}

func TestAnnouncedBodiesHoldNoBudgetAndWaitersAreToldToComeBack(t *testing.T) {
	entered, release := make(chan struct{}, 3), make(chan struct{})
	s := &stub{capture: func(_ context.Context, _ capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
		if len(a.Body) > 1<<20 {
			entered <- struct{}{}
			<-release
		}
		return nil, nil
	}}
	sv := start(t, ingest.Config{MaxBodyBytes: 4 << 20, InFlightBytes: 12 << 20, BudgetWait: 50 * time.Millisecond}, s, nil)
	for range 40 { // announced, 60 KB of it sent
		c := sv.dial()
		c.send("POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n" + strings.Repeat("b", 60_000))
	}
	large := post(hook(""), strings.Repeat("b", 4<<20))
	var holders []*sender
	for range 2 {
		c := sv.dial()
		c.send(large)
		<-entered
		holders = append(holders, c)
	}
	c := sv.dial()
	go c.nc.Write([]byte(large))
	a := c.want(503)
	if a.Header.Get("Retry-After") == "" || !strings.Contains(a.body, `"error":"unavailable"`) {
		t.Errorf("%v %s", a.Header, a.body)
	}
	if !strings.Contains(sv.log.String(), "no room in memory for their bodies") {
		t.Errorf("the log says %q", sv.log)
	}
	c = sv.dial()
	c.send(post(hook(""), "small bodies pass"))
	c.want(200)
	close(release)
	for _, c := range holders {
		c.want(200)
	}
	c = sv.dial()
	c.send(large)
	c.want(200)
}

func TestThousandsOfHalfSentSmallBodiesAreBoundedToo(t *testing.T) {
	s := new(stub)
	sv := start(t, ingest.Config{MaxBodyBytes: 1 << 20, InFlightBytes: 4 << 20, BudgetWait: 50 * time.Millisecond}, s, nil)
	const crowd = 150 // of 60 KB, more than double what there is for them
	statuses := make(chan int, crowd)
	for range crowd {
		c := sv.dial()
		c.send("POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + strings.Repeat("b", 50_000))
		go func() {
			if resp, err := http.ReadResponse(c.r, nil); err == nil {
				statuses <- resp.StatusCode
			}
		}()
	}
	if status := <-statuses; status != 503 {
		t.Errorf("the first answer is %d", status)
	}
	c := sv.dial()
	c.send(post(hook(""), strings.Repeat("b", 4000)))
	c.want(200)
}

func TestRefusedBeforeTheBodyIsRead(t *testing.T) {
	for _, row := range []struct {
		err    error
		status int
		retry  string
	}{
		{hookglass.Errorf(hookglass.CodeGone, "This endpoint is disabled."), 410, ""},
		{&hookglass.Error{Code: hookglass.CodeRateLimited, RetryAfter: 1500 * time.Millisecond}, 429, "2"},
		{hookglass.Errorf(hookglass.CodeUnavailable, ""), 503, "5"},
		{fmt.Errorf("store: %w", net.ErrClosed), 500, ""},
	} {
		s := &stub{admit: func(context.Context, string) (capture.Target, error) { return capture.Target{}, row.err }}
		sv := start(t, ingest.Config{}, s, nil)
		c := sv.dial()
		c.send("POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n")
		a := c.want(row.status)
		if !a.Close || a.Header.Get("Retry-After") != row.retry {
			t.Errorf("%d: close %v, Retry-After %q", row.status, a.Close, a.Header.Get("Retry-After"))
		}
		if row.status == 429 && !strings.Contains(a.body, `"retry_after":2`) {
			t.Errorf("429: %s", a.body)
		}
		if strings.Contains(a.body, "closed") {
			t.Errorf("the cause was told: %s", a.body)
		}
		if logged := strings.Contains(sv.log.String(), "closed"); logged != (row.status == 500) {
			t.Errorf("%d: logged %q", row.status, sv.log)
		}
	}
}

func TestHangingStorageIsToldInTime(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("store: %w", ctx.Err()) }
	for name, s := range map[string]*stub{
		"admit": {admit: func(ctx context.Context, _ string) (capture.Target, error) { return capture.Target{}, hang(ctx) }},
		"capture": {capture: func(ctx context.Context, _ capture.Target, _ *capture.Arrival) (*hookglass.Reply, error) {
			return nil, hang(ctx)
		}},
	} {
		c := start(t, ingest.Config{CaptureTimeout: 50 * time.Millisecond}, s, nil).dial()
		c.send(post(hook(""), "body"))
		if a := c.want(503); a.Header.Get("Retry-After") != "5" {
			t.Errorf("%s: Retry-After %q", name, a.Header.Get("Retry-After"))
		}
		c.send(get("/api")) // the connection lives
		c.want(200)
	}
}

func TestCaptureGoesOnWhenTheSenderHangsUp(t *testing.T) {
	hungUp := make(chan struct{})
	outcome := make(chan error, 1)
	s := &stub{capture: func(ctx context.Context, _ capture.Target, _ *capture.Arrival) (*hookglass.Reply, error) {
		<-hungUp
		outcome <- ctx.Err()
		return nil, nil
	}}
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send(post(hook(""), "body"))
	c.nc.SetLinger(0)
	c.nc.Close()
	close(hungUp)
	if err := <-outcome; err != nil {
		t.Errorf("the capture's context: %v", err)
	}
}
