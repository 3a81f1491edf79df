package rest_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
	"hookglass/internal/httpd"
	"hookglass/internal/rest"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// patience is for what must happen soon; a test that waits so long has failed.
const patience = 2 * time.Minute

// message is one of a stream of Server-Sent Events.
type message struct{ id, event, data string }

// stream is an open stream. Its messages end when it does.
type stream struct {
	t        *testing.T
	messages chan message
	stop     context.CancelFunc
	place    string // where it began
}

func (s *site) stream(token, ref, query, last string) *stream {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/endpoints/"+ref+"/stream"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	if ct := res.Header.Get("Content-Type"); res.StatusCode != 200 || ct != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
		s.t.Fatalf("a stream answers %d %s %v", res.StatusCode, ct, res.Header)
	}
	out := &stream{t: s.t, messages: make(chan message), stop: cancel}
	began := make(chan string, 1)
	go func() {
		defer close(out.messages)
		defer res.Body.Close()
		var m message
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				m.id = value
			case "event":
				m.event = value
			case "data":
				m.data = value
			case "": // a comment, or the end of an event
				if place, ok := strings.CutPrefix(value, "begins behind "); ok {
					began <- place
				}
				if lines.Text() != "" {
					continue
				}
				select {
				case out.messages <- m: // also one without data, as simple readers yield it
				case <-ctx.Done():
					return
				}
				m = message{}
			}
		}
	}()
	select {
	case out.place = <-began:
	case <-time.After(patience):
		s.t.Fatal("a stream does not tell where it begins")
	}
	return out
}

func (st *stream) next() message {
	st.t.Helper()
	select {
	case m, ok := <-st.messages:
		if !ok {
			st.t.Fatal("the stream has ended")
		}
		return m
	case <-time.After(patience):
		st.t.Fatal("the stream is silent")
	}
	return message{}
}

// ids reads so many events.
func (st *stream) ids(n int) (all []string) {
	st.t.Helper()
	for range n {
		all = append(all, st.next().id)
	}
	return all
}

func (st *stream) ends() {
	st.t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case _, ok := <-st.messages:
			if !ok {
				return
			}
		case <-deadline:
			st.t.Fatal("the stream goes on")
		}
	}
}

func TestAStreamTellsOfEventsAsTheyAreCaptured(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint(`,"custom_id":"payments"`)
		s.arrive(e.ID, nil) // before the stream
		st := s.stream(s.token, "payments", "", "")
		id := s.arrive(e.ID, func(a *capture.Arrival) { a.Path = "/a\nb" })
		m := st.next()
		var got api.Event
		if err := json.Unmarshal([]byte(m.data), &got); err != nil || m.id != id || m.event != "" || got.ID != id || got.Path != "/a\nb" {
			t.Errorf("got %+v: %v", m, err)
		}
		listed := s.list("/endpoints/" + e.ID + "/requests?limit=1").Data[0]
		if want, _ := json.Marshal(listed); string(want) != m.data {
			t.Errorf("the data is %s, want the list form %s", m.data, want)
		}
	})
}

func TestAStreamGoesOnBehindTheLastEventSeen(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		first := s.stream(s.token, e.ID, "", "")
		begin := s.arrive(e.ID, nil)
		if got := first.ids(1); got[0] != begin {
			t.Fatalf("got %v", got)
		}
		first.stop()
		var missed []string
		for range 5 {
			missed = append(missed, s.arrive(e.ID, nil))
		}
		again := s.stream(s.token, e.ID, "", begin)
		if got := again.ids(5); !slices.Equal(got, missed) {
			t.Errorf("behind %s came %v, want %v", begin, got, missed)
		}
		older := s.stream(s.token, e.ID, "", "wr_"+strings.TrimPrefix(missed[2], "req_"))
		if got := older.ids(2); !slices.Equal(got, missed[3:]) {
			t.Errorf("behind the third came %v, want %v", got, missed[3:])
		}
	})
}

func TestAStreamLosesNothingWhereTheLastEventSeenWasDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		old := s.arrive(e.ID, func(a *capture.Arrival) { a.At = time.Now().Add(-time.Hour) })
		seen := s.arrive(e.ID, nil)
		missed := s.arrive(e.ID, nil)
		s.want(200, "DELETE", "/endpoints/"+e.ID+"/requests/"+seen, "", nil)
		if got := s.stream(s.token, e.ID, "", seen).ids(1); got[0] != missed {
			t.Errorf("got %v, want %s and not %s, which is old", got, missed, old)
		}
	})
}

// The place that a stream names before its first event is one to come back to.
func TestAStreamThatSawNothingComesBackToItsPlace(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		st := s.stream(s.token, e.ID, "", "")
		st.stop()
		missed := s.arrive(e.ID, nil)
		if got := s.stream(s.token, e.ID, "", st.place).ids(1); got[0] != missed {
			t.Errorf("behind %s came %v, want %s", st.place, got, missed)
		}
	})
}

func TestAStreamIsFiltered(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		byBody := s.stream(s.token, e.ID, "?q="+url.QueryEscape(`body./kind:wanted`), "")
		byMethod := s.stream(s.token, e.ID, "?method=PUT", "")
		s.arrive(e.ID, nil)
		put := s.arrive(e.ID, func(a *capture.Arrival) { a.Method = "PUT" })
		wanted := s.arrive(e.ID, func(a *capture.Arrival) { a.Body = []byte(`{"kind":"wanted"}`) })
		if got := byBody.ids(1); got[0] != wanted {
			t.Errorf("by body: %v, want %s", got, wanted)
		}
		if got := byMethod.ids(1); got[0] != put {
			t.Errorf("by method: %v, want %s", got, put)
		}
		s.want(422, "GET", "/endpoints/"+e.ID+"/stream?q=provder:x", "", nil)
	})
}

func TestAStreamEndsWithItsTokenItsEndpointAndTheServer(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e, other := s.newEndpoint(""), s.newEndpoint("")
		token, record := s.tokenFor(0)
		revoked, deleted, drained := s.stream(token, e.ID, "", ""), s.stream(s.token, other.ID, "", ""), s.stream(s.token, e.ID, "", "")
		soon := func(what string, s *stream) {
			t.Helper()
			elapsed := storetest.Watch(t)
			s.ends()
			if took := elapsed(); took > 5*time.Second {
				t.Errorf("the stream of %s ended after %v, want 5 s at most", what, took)
			}
		}
		if err := s.accounts.RevokeToken(t.Context(), hookglass.System, record.ID); err != nil {
			t.Fatal(err)
		}
		soon("a token that was revoked", revoked)
		s.want(200, "DELETE", "/endpoints/"+other.ID, "", nil)
		soon("an endpoint that was deleted", deleted)
		id := s.arrive(e.ID, nil)
		if got := drained.ids(1); got[0] != id {
			t.Errorf("the third stream got %v, want %s", got, id)
		}
		go s.drain()
		drained.ends()
	})
}

func TestAStreamStaysWithItsEndpoint(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e, other := s.newEndpoint(`,"custom_id":"payments"`), s.newEndpoint("")
		stream := s.stream(s.token, "payments", "", "")
		s.want(200, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"custom_id":null}}`, nil)
		s.want(200, "PATCH", "/endpoints/"+other.ID, `{"endpoint":{"custom_id":"payments"}}`, nil)
		s.arrive(other.ID, nil)
		id := s.arrive(e.ID, nil)
		if got := stream.ids(1); got[0] != id {
			t.Errorf("the stream got %v, want %s", got, id)
		}
		s.want(200, "DELETE", "/endpoints/"+e.ID, "", nil)
		stream.ends()
	})
}

// Many events in a short time reach a stream whole and in order, on whichever node it is.
func TestAStreamHoldsEveryEventInOrder(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		st := s.stream(s.token, e.ID, "", "")
		const n = 250 // more than two batches
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range n {
				target, err := s.captures.Admit(t.Context(), e.ID)
				if err == nil {
					_, err = s.captures.Capture(t.Context(), target, &capture.Arrival{Method: "POST", Path: "/", Proto: "HTTP/1.1", Scheme: "http", Host: "h", At: time.Now()})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		}()
		got := st.ids(n)
		<-done
		if want := s.stored(e.ID); !slices.Equal(got, want) {
			t.Errorf("the stream had %d events, not the %d in their order", len(got), len(want))
		}
	})
}

// TestAStreamOnItsWayEndsWithItsTokenAndTheServer is about a stream that has much to send before it comes to what
// arrives now.
func TestAStreamOnItsWayEndsWithItsTokenAndTheServer(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		const n = 300
		first := s.storeMany(e.ID, n)
		token, record := s.tokenFor(0)
		draining := make(chan struct{})
		for name, end := range map[string]func(){
			"the token": func() {
				heard := s.db.Listen(store.TopicTokens)
				defer heard.Close()
				if err := s.accounts.RevokeToken(t.Context(), hookglass.System, record.ID); err != nil {
					t.Error(err)
				}
				<-heard.C
			},
			"the server": func() { close(draining) },
		} {
			deps := s.deps
			with := token
			if name == "the server" {
				deps.Draining, with = draining, s.token
			}
			r := httptest.NewRequestWithContext(t.Context(), "GET", rest.Base+"/endpoints/"+e.ID+"/stream", nil)
			r.Header.Set("Authorization", "Bearer "+with)
			r.Header.Set("Last-Event-ID", first)
			w := &midway{ResponseRecorder: httptest.NewRecorder(), then: end}
			httpd.New(httpd.Config{Log: slog.New(slog.DiscardHandler)}).Wrap(rest.New(deps)).ServeHTTP(w, r)
			if w.events == 0 || w.events > n-100 {
				t.Errorf("when %s ended, the stream had %d of %d events", name, w.events, n-1)
			}
		}
	})
}

// storeMany stores events beside reception, and returns the id of the first.
func (s *site) storeMany(ref string, n int) (first string) {
	s.t.Helper()
	var stored hookglass.Endpoint
	err := s.db.View(s.t.Context(), hookglass.System, func(v *store.View) (err error) { stored, err = v.Endpoint(ref); return err })
	if err != nil {
		s.t.Fatal(err)
	}
	for range n {
		ev := &hookglass.Event{
			ID: hookglass.NewEventID(hookglass.EventWebhook, time.Now()), EndpointNum: stored.Num, Type: hookglass.EventWebhook, ReceivedAt: time.Now(),
			Method: "POST", Path: "/", Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked, Payload: &hookglass.Payload{},
		}
		if err := s.db.Capture(s.t.Context(), 0, ev); err != nil {
			s.t.Fatal(err)
		}
		first = cmp.Or(first, string(ev.ID))
	}
	return first
}

// TestAStreamPassesOnWhatItReadBeforeItReadsMore is about a storage that takes its time, or does not answer: what was
// read of it before is with the reader.
func TestAStreamPassesOnWhatItReadBeforeItReadsMore(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		const atOnce = 100
		first := s.storeMany(e.ID, 2*atOnce+2)
		ctx, gone := context.WithTimeout(t.Context(), patience)
		defer gone()
		r := httptest.NewRequestWithContext(ctx, "GET", rest.Base+"/endpoints/"+e.ID+"/stream", nil)
		r.Header.Set("Authorization", "Bearer "+s.token)
		r.Header.Set("Last-Event-ID", first)
		w := &passing{ResponseRecorder: httptest.NewRecorder(), most: 2*atOnce + 1, then: gone}
		httpd.New(httpd.Config{Log: slog.New(slog.DiscardHandler)}).Wrap(rest.New(s.deps)).ServeHTTP(w, r)
		for _, at := range []int{atOnce, 2 * atOnce} {
			if !slices.Contains(w.passed, at) {
				t.Errorf("the first %d events were not passed on before more was read; passed on: %d", at, w.passed)
			}
		}
	})
}

// passing keeps after how many events a stream passed on what it had written.
type passing struct {
	*httptest.ResponseRecorder
	events int
	passed []int
	most   int
	then   func() // after so many
}

func (w *passing) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("\ndata: ")) {
		if w.events++; w.events == w.most {
			w.then()
		}
	}
	return w.ResponseRecorder.Write(p)
}

func (w *passing) Flush() { w.passed = append(w.passed, w.events) }

// midway does something when the first event of a stream is written.
type midway struct {
	*httptest.ResponseRecorder
	then   func()
	events int
}

func (w *midway) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("\ndata: ")) {
		if w.events++; w.events == 1 {
			w.then()
		}
	}
	return w.ResponseRecorder.Write(p)
}
