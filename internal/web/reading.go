package web

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/internal/store"
)

// eventTimes is how much memory a request takes while an answer is made of it, in multiples of its size: as received,
// and as parsed, decoded and judged.
const eventTimes = 3

// reading tracks the memory that an answer reserves for large requests. It is released when the page is rendered; the
// page then has a reservation of its own.
type reading struct {
	ctx  context.Context // done when the answer needs them no longer
	over context.CancelFunc
	room func(ctx context.Context, who hookglass.Principal, bytes int64) error
	who  hookglass.Principal
	held bool // a request was read whole
}

type readingKey struct{}

// reads lets the handlers of a request read events. done must be called after the answer.
func (a *app) reads(r *http.Request) (with *http.Request, done func()) {
	ctx, over := context.WithCancel(r.Context())
	return r.WithContext(context.WithValue(r.Context(), readingKey{}, &reading{ctx: ctx, over: over, room: a.Captures.RoomFor})), over
}

// rendered records that a page of that size was made of what was read.
func rendered(r *http.Request, bytes int) error {
	now, ok := r.Context().Value(readingKey{}).(*reading)
	if !ok || !now.held {
		return nil
	}
	now.held = false
	now.over()
	return now.room(r.Context(), now.who, int64(bytes))
}

// holding returns the context until whose end the memory is reserved.
func holding(ctx context.Context, who hookglass.Principal) context.Context {
	now := ctx.Value(readingKey{}).(*reading)
	now.who, now.held = who, true
	return now.ctx
}

// event reads a request with its payload, for a page.
func (a *app) event(ctx context.Context, v visitor, e hookglass.Endpoint, id string) (*hookglass.Event, error) {
	return a.held(ctx, v, e, id, eventTimes)
}

// reported is event including delivery reports.
func (a *app) reported(ctx context.Context, v visitor, e hookglass.Endpoint, id string) (*hookglass.Event, error) {
	return a.Captures.Hold(holding(ctx, v.who), v.who, eventTimes, func(view *store.View) (*hookglass.Event, error) {
		return view.ReportedEvent(string(e.ID), id)
	})
}

// held is event for an answer that takes that many times the request's size, see [capture.Service.Hold].
func (a *app) held(ctx context.Context, v visitor, e hookglass.Endpoint, id string, times int64) (*hookglass.Event, error) {
	return a.Captures.Hold(holding(ctx, v.who), v.who, times, func(view *store.View) (*hookglass.Event, error) {
		return view.Event(string(e.ID), id)
	})
}

// listed reads a request without its payload.
func (a *app) listed(ctx context.Context, v visitor, e hookglass.Endpoint, id string) (*hookglass.Event, error) {
	return store.Read(ctx, a.DB, v.who, func(view *store.View) (*hookglass.Event, error) {
		return view.ListedEvent(string(e.ID), id)
	})
}
