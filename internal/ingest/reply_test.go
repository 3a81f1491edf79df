package ingest_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/ingest"
)

func replying(r *hookglass.Reply) *stub {
	return &stub{capture: func(context.Context, capture.Target, *capture.Arrival) (*hookglass.Reply, error) { return r, nil }}
}

// TestReplyOnTheWire holds the promise of the package comment: a reply's own fields in order, and behind
// them Date, Content-Length and Connection alone.
func TestReplyOnTheWire(t *testing.T) {
	headers := hookglass.Headers{{Name: "x-Odd", Value: "1"}, {Name: "Content-Type", Value: "text/plain"}, {Name: "x-odd", Value: "caf\xe9"}}
	own := "x-Odd: 1\r\nContent-Type: text/plain\r\nx-odd: caf\xe9\r\n"
	long := strings.Repeat("long", 100_000)
	for _, row := range []struct {
		request string
		reply   hookglass.Reply
		want    string // DATE stands for the date line
	}{
		{get(hook("")), hookglass.Reply{Status: 200, Headers: headers, Body: []byte("body")}, "HTTP/1.1 200 OK\r\n" + own + "DATEContent-Length: 4\r\n\r\nbody"},
		{get(hook("")), hookglass.Reply{Status: 200, Headers: headers, Body: []byte(long)}, "HTTP/1.1 200 OK\r\n" + own + "DATEContent-Length: 400000\r\n\r\n" + long},
		{get(hook("")), hookglass.Reply{Status: 299}, "HTTP/1.1 299 \r\nDATEContent-Length: 0\r\n\r\n"},
		{get(hook("")), hookglass.Reply{Status: 302, Headers: hookglass.Headers{{Name: "Location", Value: "/x"}}}, "HTTP/1.1 302 Found\r\nLocation: /x\r\nDATEContent-Length: 0\r\n\r\n"},
		{get(hook("")), hookglass.Reply{Status: 204, Headers: headers}, "HTTP/1.1 204 No Content\r\n" + own + "DATE\r\n"},
		{get(hook("")), hookglass.Reply{Status: 304, Body: []byte("none")}, "HTTP/1.1 304 Not Modified\r\nDATE\r\n"},
		{"HEAD " + hook("") + " HTTP/1.1\r\nHost: x\r\n\r\n", hookglass.Reply{Status: 200, Body: []byte("body")}, "HTTP/1.1 200 OK\r\nDATEContent-Length: 4\r\n\r\n"},
		{"HEAD " + hook("") + " HTTP/1.1\r\nHost: x\r\n\r\n", hookglass.Reply{Status: 200, Body: []byte(long)}, "HTTP/1.1 200 OK\r\nDATEContent-Length: 400000\r\n\r\n"},
		{"HEAD " + hook("") + " HTTP/1.1\r\nHost: x\r\n\r\n", hookglass.Reply{Status: 200}, "HTTP/1.1 200 OK\r\nDATE\r\n"},
		{"GET " + hook("") + " HTTP/1.1\r\nHost: x\r\nConnection: x, Close\r\n\r\n", hookglass.Reply{Status: 200}, "HTTP/1.1 200 OK\r\nDATEContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"GET " + hook("") + " HTTP/1.0\r\n\r\n", hookglass.Reply{Status: 200}, "HTTP/1.0 200 OK\r\nDATEContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"GET " + hook("") + " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", hookglass.Reply{Status: 200}, "HTTP/1.0 200 OK\r\nDATEContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"},
		{get(hook("")), hookglass.Reply{Status: 200, Headers: hookglass.Headers{
			{Name: "Content-Length", Value: "9"}, {Name: "transfer-encoding", Value: "chunked"}, {Name: "Connection", Value: "close"}, {Name: "date", Value: "now"},
			{Name: "X-Split", Value: "a\r\nX-Evil: b"}, {Name: "X Space", Value: "a"}, {Name: "", Value: "a"}, {Name: "X-Good", Value: "\t"},
		}}, "HTTP/1.1 200 OK\r\nX-Good: \t\r\nDATEContent-Length: 0\r\n\r\n"},
	} {
		c := start(t, ingest.Config{}, replying(&row.reply), nil).dial()
		before := time.Now().Truncate(time.Second)
		c.send(row.request)
		got := make([]byte, 0, len(row.want)+100)
		for len(got) < len(row.want)-len("DATE")+len("Date: Mon, 02 Jan 2006 15:04:05 GMT\r\n") {
			b, err := c.r.ReadByte()
			if err != nil {
				t.Fatalf("%.300q, then %v", got, err)
			}
			got = append(got, b)
		}
		if c.r.Buffered() > 0 {
			t.Errorf("%d bytes too many", c.r.Buffered())
		}
		i := bytes.Index(got, []byte("Date: "))
		if i < 0 {
			t.Fatalf("no Date in %.300q", got)
		}
		end := i + len("Date: Mon, 02 Jan 2006 15:04:05 GMT")
		date, err := http.ParseTime(string(got[i+len("Date: ") : end]))
		if err != nil || date.Before(before) || date.After(time.Now()) {
			t.Errorf("Date: %v, %v", date, err)
		}
		if got := string(got[:i]) + "DATE" + string(got[end+2:]); got != row.want {
			t.Errorf("got  %.400q\nwant %.400q", got, row.want)
		}
	}
}

func TestFallbackRepliesTheSame(t *testing.T) {
	reply := hookglass.Reply{Status: 201, Headers: hookglass.Headers{{Name: "X-A", Value: "1"}, {Name: "X-A", Value: "2"}, {Name: "Transfer-Encoding", Value: "chunked"}}, Body: []byte("<html>")}
	c := start(t, ingest.Config{}, replying(&reply), nil).dial()
	c.send(get("/%68ooks/" + knownRef))
	a := c.want(201)
	a.Header.Del("Date")
	if got := fmt.Sprint(a.Header); got != "map[Content-Length:[6] X-A:[1 2]]" || a.body != "<html>" {
		t.Errorf("got %s %q", got, a.body)
	}
}

// The record of an answer (hookglass.Event.Sent) has every field that its sender was sent, and no other.
func TestTheRecordIsWhatIsOnTheWire(t *testing.T) {
	date := hookglass.Header{Name: "Date", Value: time.Now().UTC().Format(http.TimeFormat)}
	var reply *hookglass.Reply
	s := new(stub)
	s.capture = func(_ context.Context, _ capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.arrivals = []*capture.Arrival{a}
		return reply, nil
	}
	sv := start(t, ingest.Config{}, s, nil)
	for _, path := range []string{hook(""), "/%68ooks/" + knownRef} { // the second is served by net/http
		for _, method := range []string{"POST", "HEAD"} {
			for _, status := range []int{200, 204, 304, 404} {
				for _, head := range []string{
					" HTTP/1.1\r\nHost: x\r\n", " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", " HTTP/1.1\r\nHost: x\r\nConnection: X-A,\tClose\r\n",
					" HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n", " HTTP/1.1\r\nHost: x\r\nConnection: X-A\r\nconnection: close\r\n",
					" HTTP/1.0\r\n", " HTTP/1.0\r\nConnection: Keep-Alive\r\n", " HTTP/1.0\r\nConnection: keep-alive, close\r\n",
				} {
					reply = &hookglass.Reply{Status: status, Headers: hookglass.Headers{{Name: "X-A", Value: "1"}, date}}
					if method != "HEAD" && status != 204 && status != 304 {
						reply.Body = []byte("body")
					}
					c := sv.dial()
					c.send(method + " " + path + head + "\r\n")
					lines := textproto.NewReader(c.r) // http.ReadResponse would drop Connection
					if _, err := lines.ReadLine(); err != nil {
						t.Fatal(err)
					}
					wire, err := lines.ReadMIMEHeader()
					if err != nil {
						t.Fatal(err)
					}
					record := make(textproto.MIMEHeader)
					a := s.one(t)
					for _, h := range (&hookglass.Event{Method: a.Method, Proto: a.Proto, Payload: &hookglass.Payload{Headers: a.Headers, Reply: reply}}).Sent() {
						record.Add(h.Name, h.Value)
					}
					if !maps.EqualFunc(wire, record, slices.Equal) {
						t.Errorf("%s %s%q, %d: on the wire %v, on record %v", method, path, head, status, wire, record)
					}
				}
			}
		}
	}
}

func TestImpossibleStatusIs500(t *testing.T) {
	for _, status := range []int{0, 101, 1000} {
		c := start(t, ingest.Config{}, replying(&hookglass.Reply{Status: status}), nil).dial()
		c.send(get(hook("")))
		c.want(500)
	}
}

func TestAReplyThatAwaitsIsAnsweredLater(t *testing.T) {
	s := replying(&hookglass.Reply{Status: 200, Awaits: &hookglass.Event{ID: "req_x"}})
	s.answer = func(_ context.Context, r *hookglass.Reply) *hookglass.Reply {
		return &hookglass.Reply{Status: 418, Body: []byte(r.Awaits.ID)}
	}
	c := start(t, ingest.Config{}, s, nil).dial()
	for _, path := range []string{hook(""), "/%68ooks/" + knownRef} {
		c.send(get(path))
		if res := c.want(418); string(res.body) != "req_x" {
			t.Errorf("%s: %q", path, res.body)
		}
	}
}

func TestDelayedReplyIsWaitedFor(t *testing.T) {
	const delay = 60 * time.Millisecond
	c := start(t, ingest.Config{}, replying(&hookglass.Reply{Status: 200, Delay: delay}), nil).dial()
	for _, path := range []string{hook(""), "/%68ooks/" + knownRef} {
		before := time.Now()
		c.send(get(path))
		c.want(200)
		if took := time.Since(before); took < delay {
			t.Errorf("%s: answered after %v", path, took)
		}
	}
}

func TestAnswersBeyondWhatMayWaitAreGivenAtOnce(t *testing.T) {
	const half = 32<<20 + 1
	for _, path := range []string{hook(""), "/%68ooks/" + knownRef} {
		captured := make(chan struct{}, 2)
		s := &stub{capture: func(context.Context, capture.Target, *capture.Arrival) (*hookglass.Reply, error) {
			captured <- struct{}{}
			return &hookglass.Reply{Status: 200, Delay: time.Hour, Body: make([]byte, half)}, nil
		}}
		sv := start(t, ingest.Config{WriteTimeout: time.Minute}, s, nil)
		answered := make(chan int, 2)
		for range 2 {
			c := sv.dial()
			go func() {
				c.send(get(path))
				answered <- len(c.want(200).body)
			}()
		}
		<-captured
		<-captured
		if n := <-answered; n != half { // the other waits
			t.Errorf("%s: an answer of %d bytes", path, n)
		}
		done := sv.shutdown()
		if n := <-answered; n != half {
			t.Errorf("%s: at the end an answer of %d bytes", path, n)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAnAnswerBeyondWhatMayWaitAwaitsNobody(t *testing.T) {
	s := replying(&hookglass.Reply{Status: 200, Body: make([]byte, 64<<20+1), Awaits: &hookglass.Event{}})
	s.answer = func(ctx context.Context, r *hookglass.Reply) *hookglass.Reply {
		<-ctx.Done()
		return &hookglass.Reply{Status: 202}
	}
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send(get(hook("")))
	c.want(202)
}
