package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/httpd"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

type eventStream struct {
	ID string `path:"id" doc:"The endpoint's id or custom id." example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	EventFilter
	LastEventID string `header:"Last-Event-ID" doc:"The last event that was seen: the stream begins behind it." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
}

const (
	streamBatch = 100 // events read at a time
	// streamComment says something between two events. It is a comment, because simple readers would take an id without
	// data for an event. No empty line follows: it would end an event, and some readers (Python's httpx-sse) yield one
	// without data. So the next event is in the same block, which must not begin with the comment: other readers skip
	// such a block.
	streamComment = "retry: 1000\n: %s\n"
	// clockSlack is how far the clocks of nodes and the order of capture may differ.
	clockSlack = 10 * time.Second
)

func (s *service) stream(t *table) {
	handleRaw(t, operation{
		id: "stream-requests", method: http.MethodGet, path: "/endpoints/{id}/stream", tag: "Requests", summary: "Follow captured events",
		text: "Server-Sent Events: each has the captured event's id and its list form as data, and no name, so an EventSource has it as a message. Without Last-Event-ID it begins " +
			"with what comes next, and a comment says behind what (`: begins behind req_…`): send that id if the stream breaks before its first event. Where the last event seen was deleted meanwhile, some that were seen may come again, and none is left out.",
		access: access{scope: hookglass.ScopeRead, key: true},
	}, []string{"text/event-stream"}, s.streamRequests)
}

// streamRequests sends events until the reader leaves, the server stops, the token is revoked or the endpoint is
// deleted. Announcements wake it; because one can be lost, it also polls.
func (s *service) streamRequests(in *eventStream, w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	q, err := in.query(s.DB.Now())
	if err != nil {
		return err
	}
	e, err := s.existing(ctx, in.ID)
	if err != nil {
		return err
	}
	in.ID = string(e.ID) // the custom id may move to another endpoint meanwhile
	events, tokens := s.DB.Listen(store.TopicEvents(e.Num)), s.DB.Listen(store.TopicTokens)
	defer events.Close()
	defer tokens.Close()
	seq, begin, err := s.streamStart(ctx, in)
	if err != nil {
		return err
	}

	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies must pass on each event at once
	if r.Method == http.MethodHead {
		return nil
	}
	out := &sse{w: w, rc: http.NewResponseController(w), fed: time.Now()}
	// Tells the reader its position, so that it can reconnect before the first event.
	if err := out.comment("begins behind " + string(begin)); err != nil {
		return nil
	}
	f := &follower{service: s, r: r, out: out, ref: in.ID, query: q, tokens: tokens, looked: time.Now()}
	f.follow(events, seq)
	return nil
}

// follower is one reader of a stream.
type follower struct {
	*service
	r      *http.Request
	out    *sse
	ref    string // the endpoint's id
	query  query.Query
	tokens *store.Subscription
	looked time.Time // when its token was last checked while stored events were sent
}

// follow sends the events after seq as they come.
func (f *follower) follow(events *store.Subscription, seq int64) {
	ctx := f.r.Context()
	beat, look := time.NewTicker(f.heartbeat), time.NewTicker(poll)
	defer beat.Stop()
	defer look.Stop()
	for {
		var err error
		if seq, err = f.sendAfter(ctx, seq); err != nil {
			if !errors.Is(err, errStreamEnds) {
				httpd.BrokeOff(ctx, err)
			}
			return // the reader or the endpoint is gone; a reconnecting reader is told
		}
		select {
		case <-events.C:
			continue
		case <-beat.C:
			if f.out.comment("") != nil {
				return
			}
		case <-look.C:
			if !f.stillValid(f.r) {
				return
			}
		case <-f.tokens.C:
			if !f.stillValid(f.r) {
				return
			}
		case <-ctx.Done():
			return
		case <-f.Draining:
			return
		}
	}
}

// onTheWay is called between two events. While many stored events are sent, it sends signs of life and checks that the
// reader is still permitted.
func (f *follower) onTheWay() error {
	select {
	case <-f.Draining:
		return errStreamEnds
	case <-f.tokens.C:
		f.looked = time.Time{}
	default:
	}
	if time.Since(f.looked) > poll {
		if !f.stillValid(f.r) {
			return errStreamEnds
		}
		f.looked = time.Now()
	}
	if time.Since(f.out.fed) > f.heartbeat {
		return f.out.comment("")
	}
	return nil
}

// errStreamEnds ends a stream that is still sending stored events.
var errStreamEnds = errors.New("rest: the stream ends")

// existing returns the endpoint that a caller names. It answers not_found.
func (s *service) existing(ctx context.Context, ref string) (hookglass.Endpoint, error) {
	return store.Read(ctx, s.DB, asker(ctx), func(v *store.View) (hookglass.Endpoint, error) { return v.Endpoint(ref) })
}

// streamStart returns the Seq after which a stream begins, and the id of an event that stands for it.
func (s *service) streamStart(ctx context.Context, in *eventStream) (seq int64, begin hookglass.EventID, err error) {
	err = s.view(ctx, func(v *store.View) error {
		before := query.Query{} // matches every event
		if in.LastEventID != "" {
			if begin, err = hookglass.ParseEventID(in.LastEventID); err != nil {
				return hookglass.Invalid("Last-Event-ID", "must be the id of an event")
			}
			e, err := v.ListedEvent(in.ID, in.LastEventID)
			if err == nil {
				seq = e.Seq
				return nil
			}
			if !hookglass.Is(err, hookglass.CodeNotFound) {
				return err
			}
			// It was deleted. Its id contains its time, and events from well before that were seen.
			before = query.Between(time.Time{}, begin.Time().Add(-clockSlack))
		}
		newest, err := v.Events(in.ID, store.EventList{Query: before, Limit: 1})
		switch {
		case err != nil:
			return err
		case len(newest.Events) > 0:
			seq = newest.Events[0].Seq
			begin = cmp.Or(begin, newest.Events[0].ID)
		case newest.Next > 0:
			seq = newest.Next - 1 // the search ran out of time; nothing after that place is older
		case begin == "":
			begin = hookglass.NewEventID(hookglass.EventWebhook, v.Now) // an id that looks like a deleted event's
		}
		return nil
	})
	return seq, begin, err
}

// stillValid reports whether the token may still read.
func (s *service) stillValid(r *http.Request) bool { return s.stillPermitted(r) == nil }

// stillPermitted answers unauthorized if the token may no longer read.
func (s *service) stillPermitted(r *http.Request) error {
	return httpd.StillPermitted(r, s.Accounts.Authenticate)
}

// whilePermitted cancels a waiting function when the token is revoked, and then answers unauthorized, whatever was
// found.
func (s *service) whilePermitted(ctx context.Context, wait func(context.Context) error) error {
	r := ctx.Value(asked{}).(*http.Request)
	ctx, end := context.WithCancel(ctx)
	tokens := s.DB.Listen(store.TopicTokens)
	defer tokens.Close()
	var watching sync.WaitGroup
	watching.Go(func() {
		look := time.NewTicker(poll)
		defer look.Stop()
		for s.stillValid(r) {
			select {
			case <-tokens.C:
			case <-look.C:
			case <-ctx.Done():
				return
			}
		}
		end()
	})
	err := wait(ctx)
	end()
	watching.Wait()
	return cmp.Or(s.stillPermitted(r), err)
}

// sendAfter sends the events after seq that match the query, and returns how far it came. It fails if the reader or the
// endpoint is gone, and if onTheWay does; an error of the storage is retried later.
func (f *follower) sendAfter(ctx context.Context, seq int64) (int64, error) {
	for {
		batch, err := store.Read(ctx, f.DB, asker(ctx), func(v *store.View) ([]*hookglass.Event, error) { return v.EventsAfter(f.ref, seq, streamBatch) })
		if hookglass.Is(err, hookglass.CodeUnavailable) && ctx.Err() == nil {
			return seq, nil
		}
		if err != nil {
			return seq, err
		}
		for _, e := range batch {
			if err := f.onTheWay(); err != nil {
				return seq, err
			}
			meant, err := f.Captures.Means(ctx, asker(ctx), f.ref, f.query, e)
			switch {
			case hookglass.Is(err, hookglass.CodeNotFound): // deleted since
			case hookglass.Is(err, hookglass.CodeUnavailable) && ctx.Err() == nil:
				return seq, f.out.flush()
			case err != nil:
				return seq, err
			}
			if meant {
				if err := f.out.event(string(e.ID), api.FromEvent(e)); err != nil {
					return seq, err
				}
			}
			seq = e.Seq
		}
		// Flush before reading more: the storage may be slow or unavailable.
		if err := f.out.flush(); err != nil || len(batch) < streamBatch {
			return seq, err
		}
	}
}

// sse writes Server-Sent Events (HTML standard, section 9.2).
type sse struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	unfed bool // something was written and is not flushed
	fed   time.Time
}

// event sends an event without a name, so that readers get it as a plain message.
func (s *sse) event(id string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	s.unfed = true
	_, err = fmt.Fprintf(s.w, "id: %s\ndata: %s\n\n", id, text)
	return err
}

// comment tells a reader that the stream lives, and how soon to come back after its end.
func (s *sse) comment(text string) error {
	s.unfed = true
	if _, err := fmt.Fprintf(s.w, streamComment, text); err != nil {
		return err
	}
	return s.flush()
}

func (s *sse) flush() error {
	if !s.unfed {
		return nil
	}
	s.unfed, s.fed = false, time.Now()
	return s.rc.Flush()
}
