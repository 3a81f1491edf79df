package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/httpd"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/web/inspector"
)

const (
	beat  = 15 * time.Second // so that a browser and proxies know that the stream lives; it looks for missed events too
	batch = 100              // events that are read at once
	most  = 1000             // events that a browser which missed more is told of, as many as its list holds
	look  = 3 * time.Second  // between looks, on the way through what is stored, whether the browser may still see it
	calm  = time.Second      // after news, until a look at what they changed of requests that were sent: actions soon mark what came
)

// errStreamEnds ends a stream that is on its way through what is stored.
var errStreamEnds = errors.New("web: the stream ends")

// stream sends the rows of new requests as they are captured (Server-Sent Events). It goes on after the
// Last-Event-ID of a connection before, or after the place that the page was rendered at, so that none is missed.
func (a *app) stream(w http.ResponseWriter, r *http.Request) error {
	s := &stream{app: a, w: w, r: r, out: http.NewResponseController(w), came: true}
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = r.FormValue("after")
	}
	var err error
	if s.at, err = place(after); err != nil {
		return err
	}
	if s.filter, err = (query.Filter{Q: r.FormValue("q")}).Parse(a.DB.Now()); err != nil {
		return err
	}
	if s.all, err = (query.Filter{Ignored: "any"}).Parse(a.DB.Now()); err != nil {
		return err
	}
	v, e, err := a.open(r)
	if err != nil && !hookglass.Is(err, hookglass.CodeUnauthorized) && !hookglass.Is(err, hookglass.CodeNotFound) {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // some proxies collect an answer until they are told not to
	if err != nil {
		// A browser tries again for ever when it is refused, so it is told the reason in the stream.
		s.end(err)
		return nil
	}
	s.endpoint, s.who = e, v.who
	s.run(r.Context())
	return nil
}

type stream struct {
	*app
	w        http.ResponseWriter
	r        *http.Request
	out      *http.ResponseController
	endpoint hookglass.Endpoint
	who      hookglass.Principal
	filter   query.Query
	all      query.Query
	access   *store.Subscription
	looked   time.Time        // when it was last found that the browser may see the endpoint
	at       int64            // events up to here were sent
	marks    map[int64]string // what the newest of them bore when they were last looked at
	came     bool             // something was captured since, or nothing was looked at yet
	passed   bool             // more was captured between looks than is looked at
	seen     int64            // what at was at the last look
	failed   error            // of a write; the browser is gone
}

// run ends when the browser goes, the session or endpoint ends, or the server stops.
func (s *stream) run(ctx context.Context) {
	news := s.DB.Listen(store.TopicEvents(s.endpoint.Num))
	defer news.Close()
	s.access, s.looked, s.marks = s.DB.Listen(store.TopicTokens), time.Now(), make(map[int64]string)
	defer s.access.Close()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	_, s.failed = io.WriteString(s.w, "retry: 1000\n") // milliseconds before a browser connects again
	s.event("hello", "", nil)
	var due <-chan time.Time // when what was sent is looked at again
	for current := false; s.failed == nil; {
		err := s.catchUp(ctx)
		if err == nil && !current {
			err = s.lookAgain(ctx)
		}
		if err != nil {
			switch {
			case hookglass.Is(err, hookglass.CodeNotFound):
				s.end(err)
			case !errors.Is(err, errStreamEnds):
				httpd.BrokeOff(ctx, err)
			}
			return // anything else: the browser connects again
		}
		if !current {
			s.event("current", "", nil) // a browser without a connection to spare may leave now, and has missed nothing
			current = true
		}
		select {
		case <-news.C:
			if due == nil {
				due = time.After(calm)
			}
		case <-due:
			if err := s.lookAgain(ctx); err != nil {
				httpd.BrokeOff(ctx, err)
				return
			}
			if due = nil; s.passed {
				due = time.After(calm)
			}
		case <-tick.C:
			s.event("beat", "", nil)
			if !s.allowed() {
				return
			}
		case <-s.access.C:
			if !s.allowed() {
				return
			}
		case <-s.Draining:
			return
		case <-ctx.Done():
			return
		}
	}
}

// allowed reports whether the session or key that the stream began with still stands, and says so when it does not.
func (s *stream) allowed() bool {
	_, _, err := s.open(s.r)
	if hookglass.Is(err, hookglass.CodeUnauthorized) || hookglass.Is(err, hookglass.CodeNotFound) {
		s.end(err)
		return false
	}
	s.looked = time.Now()
	return true
}

// onTheWay reports whether the stream goes on. A long way through what is stored is no reason to go on for who may not
// see it any more, nor for a server that stops.
func (s *stream) onTheWay() bool {
	select {
	case <-s.Draining:
		return false
	case <-s.access.C:
		return s.allowed()
	default:
	}
	return time.Since(s.looked) < look || s.allowed()
}

// catchUp sends what was captured since: all of it, or what is left out and the newest.
func (s *stream) catchUp(ctx context.Context) error {
	for s.failed == nil {
		n, err := s.missed(ctx)
		if err != nil || n.upTo == s.at {
			return err
		}
		if n.skipped != 0 {
			s.event("skip", "", []byte(cursor(n.skipped)))
		}
		l := inspector.List{Endpoint: s.endpoint.ID, Place: cursor, Query: s.r.FormValue("q"), Now: time.Now()}
		for _, e := range n.wanted {
			if !s.onTheWay() {
				return errStreamEnds
			}
			var row bytes.Buffer
			if err := inspector.Row(l, e).Render(ctx, &row); err != nil {
				return err
			}
			s.event("row", cursor(e.Seq), baseOf(ctx).page(row.Bytes()))
		}
		if !s.onTheWay() {
			return errStreamEnds
		}
		s.at, s.came = n.upTo, true
		s.event("count", cursor(s.at), fmt.Append(nil, n.total))
	}
	return nil
}

// lookAgain tells the browser that events which were sent were deleted or marked since the last look: the newest of
// them, or some that are further back, where there was news of nothing else, or where a flood that is over went by.
func (s *stream) lookAgain(ctx context.Context) error {
	var page store.EventPage
	var total int64
	err := s.DB.View(ctx, s.who, func(view *store.View) (err error) {
		ref := string(s.endpoint.ID)
		if page, err = view.Events(ref, store.EventList{Query: s.all, Limit: batch, Before: s.at + 1}); err != nil {
			return err
		}
		e, err := view.Endpoint(ref)
		total = e.EventCount
		return err
	})
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return nil // catchUp says that the endpoint is gone
	}
	if err != nil {
		return err
	}
	was := s.marks
	s.marks = make(map[int64]string, len(page.Events))
	from := int64(0) // what is behind it is in the page, or deleted
	for _, e := range page.Events {
		s.marks[e.Seq] = marksOf(e)
		if page.Next != 0 {
			from = e.Seq
		}
	}
	changed := false
	for seq, bore := range was {
		bears, kept := s.marks[seq]
		changed = changed || seq >= from && (!kept || bears != bore)
	}
	s.passed = s.passed || s.seen != 0 && from > s.seen
	s.seen = s.at
	switch {
	case !s.came && (s.passed || !changed):
		s.event("changed", "", fmt.Append(nil, total, " all"))
		s.passed = false
	case changed:
		s.event("changed", "", fmt.Append(nil, total, " new"))
	}
	s.came = false
	return nil
}

// marksOf is what can change of an event in the list.
func marksOf(e *hookglass.Event) string {
	return e.Ignored + "\x00" + e.Note + "\x00" + string(e.SignatureStatus) + "\x00" + e.SignatureReason + "\x00" + strings.Join(e.Tags, "\x00")
}

// news is what is sent at once.
type news struct {
	wanted  []*hookglass.Event // oldest first
	upTo    int64              // the last event that was looked at
	skipped int64              // events before this one may be left out; 0: none is
	total   int64              // of the endpoint
}

// missed reads what was captured since, or as much of it as is sent at once.
func (s *stream) missed(ctx context.Context) (n news, err error) {
	ref := string(s.endpoint.ID)
	var some []*hookglass.Event
	err = s.DB.View(ctx, s.who, func(view *store.View) error {
		n, some = news{upTo: s.at}, nil
		events, err := view.EventsAfter(ref, s.at, batch)
		if err != nil || len(events) == 0 {
			return err
		}
		for _, e := range events {
			s.marks[e.Seq] = marksOf(e)
		}
		far := len(events) == batch
		if far {
			if far, err = view.MoreAfter(ref, s.at, most); err != nil {
				return err
			}
		}
		if far {
			err = s.newest(view, ref, &n)
		} else {
			n.upTo, some = events[len(events)-1].Seq, events
		}
		if err != nil {
			return err
		}
		e, err := view.Endpoint(ref)
		n.total = e.EventCount
		return err
	})
	if err == nil && len(some) > 0 {
		n.wanted, err = s.match(ctx, ref, some)
	}
	return n, err
}

// newest reads as much as the list of a browser holds.
func (s *stream) newest(view *store.View, ref string, n *news) (err error) {
	if n.upTo, err = view.NewestSeq(ref); err != nil {
		return err
	}
	page, err := view.Events(ref, store.EventList{Query: s.filter, Limit: most, Before: n.upTo + 1})
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(page.Events) {
		if e.Seq > s.at {
			n.wanted = append(n.wanted, e)
		}
	}
	for _, e := range page.Events {
		s.marks[e.Seq] = marksOf(e)
	}
	if page.Next > s.at+1 {
		n.skipped = page.Next
	}
	return nil
}

// match keeps the events that the query means.
func (s *stream) match(ctx context.Context, ref string, events []*hookglass.Event) ([]*hookglass.Event, error) {
	wanted := make([]*hookglass.Event, 0, len(events))
	for _, e := range events {
		meant, err := s.Captures.Means(ctx, s.who, ref, s.filter, e)
		if err != nil && !hookglass.Is(err, hookglass.CodeNotFound) { // deleted meanwhile
			return nil, err
		}
		if meant {
			wanted = append(wanted, e)
		}
	}
	return wanted, nil
}

// end tells that the stream is over, and whether it goes on for who signs in again.
func (s *stream) end(why error) {
	var reason []byte
	if hookglass.Is(why, hookglass.CodeUnauthorized) {
		reason = []byte("signed out")
	}
	s.event("end", "", reason)
}

// event writes one event of the stream. id is where a later connection goes on.
func (s *stream) event(name, id string, data []byte) {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\n")
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	// A line break of any kind would end the field.
	for line := range bytes.FieldsFuncSeq(data, func(r rune) bool { return r == '\n' || r == '\r' }) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	if len(data) == 0 {
		b.WriteString("data:\n")
	}
	b.WriteByte('\n')
	if _, err := s.w.Write(b.Bytes()); err != nil {
		s.failed = err
		return
	}
	s.failed = s.out.Flush()
}
