package mcp

import (
	"context"
	"net/http"
	"time"

	"hookglass"
	"hookglass/internal/httpd"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

type (
	wait struct {
		InEndpoint
		Provider       string `json:"provider" doc:"Only requests of this detected provider; * stands for any characters."`
		EventType      string `json:"event_type" doc:"Only requests of this event type, for example invoice.*."`
		TimeoutSeconds int    `json:"timeout_seconds" minimum:"1" maximum:"30" default:"15" doc:"How long to wait at most."`
		After          string `json:"after" doc:"The after of the answer before, a request's id, or an ISO 8601 time: what arrived behind it counts, also if it is there already. Default: now."`
		MaxBytes       int    `json:"max_bytes" minimum:"1" maximum:"262144" default:"16384" doc:"How much of each body is returned."`
	}

	// waited is the result of waiting.
	waited struct {
		TimedOut bool           `json:"timed_out"`
		Data     *requestDetail `json:"data"`
		After    *string        `json:"after"`
	}
)

// poll is how often a waiting call's token is checked; a revoked one is refused within 5 s.
const poll = 3 * time.Second

// waitForRequest returns the first match after a place, or nothing at the timeout. The store's announcements wake it; a
// final query finds what they may have missed.
func (s *service) waitForRequest(ctx context.Context, in *wait) (out waited, err error) {
	q, err := query.Filter{Provider: in.Provider, EventType: in.EventType, Ignored: "any"}.Parse(s.DB.Now())
	if err != nil {
		return out, err
	}
	e, err := store.Read(ctx, s.DB, asker(ctx), func(v *store.View) (hookglass.Endpoint, error) { return v.Endpoint(in.EndpointID) })
	if err != nil {
		return out, err
	}
	in.EndpointID = string(e.ID) // the custom id may move to another endpoint meanwhile
	until, cancel := context.WithTimeout(ctx, time.Duration(in.TimeoutSeconds)*time.Second)
	defer cancel()
	tokens := s.DB.Listen(store.TopicTokens)
	defer tokens.Close()
	w := s.arrivals.join(e, q) // before reading, so that nothing is missed in between
	defer w.leave()
	newest, seq, err := s.waitStart(ctx, in)
	if err != nil {
		return out, err
	}
	w.begin(newest)
	for {
		found, reached, err := s.firstAfter(ctx, until, string(e.ID), seq, q)
		if err != nil {
			return out, err
		}
		seq = reached
		if found != nil || until.Err() != nil {
			return s.waitEnd(ctx, in, found, seq)
		}
		over, err := s.sleep(ctx, until, w, tokens)
		if err != nil {
			return out, err
		}
		if over {
			cancel()
		}
	}
}

// sleep returns when there may be something, or when waiting is over: at the timeout, or because the server stops. It
// polls for tokens that expire or that another program revokes.
func (s *service) sleep(ctx, until context.Context, w *waiter, tokens *store.Subscription) (over bool, err error) {
	look := time.NewTicker(poll)
	defer look.Stop()
	for {
		select {
		case <-w.woken:
			return false, nil
		case <-until.Done():
			return true, nil
		case <-s.Draining:
			return true, nil
		case <-tokens.C:
		case <-look.C:
		}
		if err := s.stillPermitted(ctx); err != nil {
			return true, err
		}
	}
}

// waitEnd answers with what was found, if the token may still see it.
func (s *service) waitEnd(ctx context.Context, in *wait, found *hookglass.Event, seq int64) (out waited, err error) {
	if err := s.stillPermitted(ctx); err != nil {
		return out, err
	}
	out.After, out.TimedOut = ofArrivals.Cursor(seq), found == nil
	if found == nil {
		return out, nil
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	e, err := s.Captures.Hold(ctx, asker(ctx), detailTimes, func(v *store.View) (*hookglass.Event, error) {
		return v.ReportedEvent(in.EndpointID, string(found.ID))
	})
	if err != nil {
		return out, err
	}
	d, err := detail(e, in.MaxBytes, nil, nil)
	out.Data = &d
	return out, err
}

// waitStart returns the Seq of the newest event, and the Seq after which a match counts.
func (s *service) waitStart(ctx context.Context, in *wait) (newest, seq int64, err error) {
	after, other := ofArrivals.Place(in.After)
	isPlace := other == nil && in.After != ""
	id, wrong := hookglass.ParseEventID(in.After)
	since, err := id.Time(), error(nil)
	if in.After != "" && !isPlace && wrong != nil {
		if since, err = query.ParseTime(in.After, s.DB.Now()); err != nil {
			return 0, 0, hookglass.Invalid("after", "must be the after of an answer, a request's id, or an ISO 8601 time")
		}
	}
	err = s.view(ctx, func(v *store.View) error {
		if newest, err = v.NewestSeq(in.EndpointID); err != nil {
			return err
		}
		switch {
		case in.After == "":
			seq = newest
			return nil
		case isPlace:
			seq = after
			return nil
		case wrong == nil:
			if e, err := v.ListedEvent(in.EndpointID, in.After); err == nil {
				seq = e.Seq
				return nil
			} else if !hookglass.Is(err, hookglass.CodeNotFound) {
				return err
			}
		}
		// A time, or the id of a deleted request, which contains its time.
		page, err := v.Events(in.EndpointID, store.EventList{Query: query.Between(time.Time{}, since.Add(time.Microsecond)), Limit: 1})
		switch {
		case err != nil:
			return err
		case len(page.Events) > 0:
			seq = page.Events[0].Seq
		case page.Next > 0:
			seq = page.Next - 1 // the search ran out of time; nothing after that place is older
		}
		return nil
	})
	return newest, seq, err
}

// readAhead is how many events are read at a time.
const readAhead = 100

// firstAfter returns the first existing match after a place, and how far it searched, until the time is over.
func (s *service) firstAfter(ctx, until context.Context, ref string, seq int64, q query.Query) (*hookglass.Event, int64, error) {
	for {
		batch, err := store.Read(ctx, s.DB, asker(ctx), func(v *store.View) ([]*hookglass.Event, error) { return v.EventsAfter(ref, seq, readAhead) })
		if err != nil {
			return nil, seq, err
		}
		for _, e := range batch {
			seq = e.Seq
			if q.Match(e) {
				return e, seq, nil
			}
		}
		if len(batch) < readAhead || until.Err() != nil {
			return nil, seq, nil
		}
	}
}

// stillPermitted answers unauthorized if the token of a call is no longer valid.
func (s *service) stillPermitted(ctx context.Context) error {
	r, ok := ctx.Value(request{}).(*http.Request)
	if !ok {
		return nil
	}
	return httpd.StillPermitted(r, s.Accounts.Authenticate)
}
