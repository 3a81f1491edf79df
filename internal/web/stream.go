package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/httpd"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/web/inspector"
)

const (
	beat  = 15 * time.Second // sign of life for browsers and proxies; also the slow poll for missed events
	batch = 100              // events that are read at once
	most  = 1000             // events sent to a browser that missed more: as many as its list holds
	look  = 3 * time.Second  // between checks of the browser's rights while many stored events are sent
	calm  = time.Second      // after new events, until sent ones are checked for marks that actions set
)

// errStreamEnds ends a stream that is still sending stored events.
var errStreamEnds = errors.New("web: the stream ends")

// stream sends the rows of new requests as they are captured (Server-Sent Events). It continues after the Last-Event-ID
// of the previous connection, or after the place at which the page was rendered, so that none is missed.
func (a *app) stream(w http.ResponseWriter, r *http.Request) error {
	s := &stream{app: a, w: w, r: r, out: http.NewResponseController(w), known: r.FormValue("marks"), came: true}
	var err error
	if s.at, err = place(cmp.Or(r.Header.Get("Last-Event-ID"), r.FormValue("after"))); err != nil {
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
	h.Set("X-Accel-Buffering", "no") // tell proxies not to buffer
	if err != nil {
		// Browsers retry a refused stream for ever, so the reason is sent within the stream.
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
	looked   time.Time        // when the browser's rights were last checked
	at       int64            // events up to here were sent
	marks    map[int64]string // the marks of the newest of them at the last check
	known    string           // what the browser knows of the marks, from the connection before; "": nothing
	came     bool             // something was captured since the last check, or there was none
	passed   bool             // more was captured between checks than one covers
	seen     int64            // the value of at at the last check
	failed   error            // of a write; the browser is gone
}

// run ends when the browser leaves, the session or endpoint ends, or the server stops.
func (s *stream) run(ctx context.Context) {
	news := s.DB.Listen(store.TopicEvents(s.endpoint.Num))
	defer news.Close()
	s.access, s.looked, s.marks = s.DB.Listen(store.TopicTokens), time.Now(), make(map[int64]string)
	defer s.access.Close()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	_, s.failed = io.WriteString(s.w, "retry: 1000\n") // milliseconds before a browser connects again
	s.event("hello", "", nil)
	var due <-chan time.Time // when to check sent events again
	for current := false; s.failed == nil; current = true {
		if err := s.bringUp(ctx, !current); err != nil {
			switch {
			case hookglass.Is(err, hookglass.CodeNotFound):
				s.end(err)
			case !errors.Is(err, errStreamEnds):
				httpd.BrokeOff(ctx, err)
			}
			return // anything else: the browser reconnects
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

// bringUp sends what was captured since, the first time also what changed before the browser came. From then on a
// browser that is short of connections may disconnect without missing anything.
func (s *stream) bringUp(ctx context.Context, first bool) error {
	if s.known != "" {
		if err := s.lookAgain(ctx); err != nil {
			return err
		}
	}
	if err := s.catchUp(ctx); err != nil || !first {
		return err
	}
	if s.came {
		if err := s.lookAgain(ctx); err != nil {
			return err
		}
	}
	s.event("current", "", []byte(s.digest()))
	return nil
}

// allowed reports whether the session or key is still valid, and ends the stream if not.
func (s *stream) allowed() bool {
	_, _, err := s.open(s.r)
	if hookglass.Is(err, hookglass.CodeUnauthorized) || hookglass.Is(err, hookglass.CodeNotFound) {
		s.end(err)
		return false
	}
	s.looked = time.Now()
	return true
}

// onTheWay reports whether to go on while many stored events are sent: not after the rights ended or the server stops.
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

// catchUp sends what was captured since: all of it, or the number of skipped events and the newest.
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

// lookAgain tells the browser which sent events were deleted or marked since the last check. It covers the newest, or
// some older ones when there was no other news or after a flood of events.
func (s *stream) lookAgain(ctx context.Context) error {
	var page store.EventPage
	var total int64
	err := s.DB.View(ctx, s.who, func(view *store.View) (err error) {
		ref := string(s.endpoint.ID)
		if page, err = view.Events(ref, store.EventList{Query: s.all, Limit: batch, Before: s.at + 1}); err != nil {
			return err
		}
		if err := view.LoadFailed(page.Events); err != nil {
			return err
		}
		e, err := view.Endpoint(ref)
		total = e.EventCount
		return err
	})
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return nil // catchUp reports that the endpoint is gone
	}
	if err != nil {
		return err
	}
	was := s.marks
	s.marks = make(map[int64]string, len(page.Events))
	from := int64(0) // later events are on the page, or deleted
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
	if s.known != "" {
		changed, s.known = s.known != s.digest(), ""
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

// marksOf returns the changeable parts of an event in the list.
func marksOf(e *hookglass.Event) string {
	return strconv.Itoa(e.Failed) + " " + strconv.Itoa(e.Status) + "\x00" + e.Ignored + "\x00" + e.Note + "\x00" + string(e.SignatureStatus) + "\x00" + e.SignatureReason + "\x00" + strings.Join(e.Tags, "\x00")
}

// digest stands for the marks. A browser gives it to its next connection, which tells what changed in between.
func (s *stream) digest() string {
	h := fnv.New64a()
	for _, seq := range slices.Sorted(maps.Keys(s.marks)) {
		fmt.Fprintf(h, "%d %s\x00\x00", seq, s.marks[seq])
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// news is what is sent together.
type news struct {
	wanted  []*hookglass.Event // oldest first
	upTo    int64              // the last event that was read
	skipped int64              // events before this one may be missing; 0: none
	total   int64              // of the endpoint
}

// missed reads what was captured since, up to what is sent together.
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

// newest reads as many events as the list of a browser holds.
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

// match returns the events that match the query.
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

// end tells the browser that the stream is over, and whether signing in again would continue it.
func (s *stream) end(why error) {
	var reason []byte
	if hookglass.Is(why, hookglass.CodeUnauthorized) {
		reason = []byte("signed out")
	}
	s.event("end", "", reason)
}

// event writes one event of the stream. id is where a later connection continues.
func (s *stream) event(name, id string, data []byte) {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\n")
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	// Any kind of line break would end the field.
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
