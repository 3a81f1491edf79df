package capture

import (
	"context"
	"strconv"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

const (
	// largeReads bounds the large events held for readers: each is held for as long as its reader takes.
	largeReads = 256 << 20
	// readTime is how long a reader waits for room.
	readTime = 30 * time.Second
	// exportTime is how long a reader waits in the middle of a file, where giving up would mean to start over.
	exportTime = time.Hour
	// exportTimes is how many times its size an exported event takes in memory: as received, as text, and as written.
	exportTimes = 4
)

// errNoRead is the error when other readers leave no room in time.
var errNoRead = &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "Too many large requests are being read.", RetryAfter: 5 * time.Second}

// Hold reads an event. A large one is read only once there is room for times its size, which covers what is made of it.
// The room is returned when ctx is done, for example when a request was answered. It answers what read answers, and
// unavailable. For a large event read is called twice, first with a view that leaves large payloads out; see
// [store.View.Sparing].
func (s *Service) Hold(
	ctx context.Context, who hookglass.Principal, times int64, read func(*store.View) (*hookglass.Event, error),
) (*hookglass.Event, error) {
	all, err := s.HoldAll(ctx, who, times, func(v *store.View) ([]*hookglass.Event, error) {
		e, err := read(v)
		return []*hookglass.Event{e}, err
	})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// HoldAll is Hold for events that are needed together. Reserving room for one at a time could deadlock with others that
// do the same.
func (s *Service) HoldAll(
	ctx context.Context, who hookglass.Principal, times int64, read func(*store.View) ([]*hookglass.Event, error),
) (all []*hookglass.Event, err error) {
	var bytes int64
	err = s.db.View(ctx, who, func(v *store.View) error {
		light, weight := v.Sparing(fair.SmallBody)
		all, err = read(light)
		bytes = weight()
		return err
	})
	if err != nil {
		return nil, err
	}
	if bytes <= fair.SmallBody {
		return all, nil
	}
	if err = s.RoomFor(ctx, who, times*bytes); err != nil {
		return nil, err
	}
	return store.Read(ctx, s.db, who, read)
}

// RoomFor waits for room for data that is made of events for a reader. The room is returned when ctx is done. It
// answers unavailable.
func (s *Service) RoomFor(ctx context.Context, who hookglass.Principal, bytes int64) error {
	give, err := s.room(ctx, who, bytes, s.readTime)
	if err == nil {
		context.AfterFunc(ctx, give)
	}
	return err
}

func (s *Service) room(ctx context.Context, who hookglass.Principal, bytes int64, most time.Duration) (give func(), err error) {
	give, ok := s.reads.Await(ctx, readerOf(who), bytes, most)
	switch {
	case ok:
		return give, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, errNoRead
}

// readerOf identifies those who share a portion of the room.
func readerOf(who hookglass.Principal) string {
	return strconv.FormatInt(who.Account, 10) + " " + string(who.Endpoint)
}

// matchTimes is how many times its size an event takes while a query is matched against it, because it is decoded.
const matchTimes = 2

// Means reports whether an event in list form matches a query. It loads what the query reads, once there is room. It
// answers not_found for an event that was deleted meanwhile, and unavailable.
func (s *Service) Means(ctx context.Context, who hookglass.Principal, ref string, q query.Query, e *hookglass.Event) (bool, error) {
	read := (*store.View).Event
	if headers, body := q.Reads(); !headers && !body {
		if !q.ReadsDeliveries() {
			return q.Match(e), nil
		}
		read = (*store.View).ListedEvent
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	whole, err := s.Hold(ctx, who, matchTimes, func(v *store.View) (*hookglass.Event, error) {
		whole, err := read(v, ref, string(e.ID))
		if err == nil {
			err = v.LoadDeliveries([]*hookglass.Event{whole}, q)
		}
		return whole, err
	})
	if err != nil {
		return false, err
	}
	return q.Match(whole), nil
}

// MayExport waits until there is room to begin a file. It answers unavailable, which could not be reported any more
// once the file has begun.
func (s *Service) MayExport(ctx context.Context, who hookglass.Principal) error {
	give, err := s.room(ctx, who, store.EachBytes, s.readTime)
	if err == nil {
		give()
	}
	return err
}

// Each calls fn with each event of an endpoint that matches the query, oldest first. It is for files, whose readers may
// be slow: it waits for room before it reads large events, see Hold. It answers what [store.DB.EachEvent] does.
func (s *Service) Each(ctx context.Context, who hookglass.Principal, ref string, q query.Query, fn func(*hookglass.Event) error) error {
	return s.db.EachEvent(ctx, who, ref, q, s.exporting(ctx, who), fn)
}

// EachReported is Each with the delivery reports of each event.
func (s *Service) EachReported(ctx context.Context, who hookglass.Principal, ref string, q query.Query, fn func(*hookglass.Event) error) error {
	return s.db.EachReportedEvent(ctx, who, ref, q, s.exporting(ctx, who), fn)
}

// exporting returns a function that waits for room for the events that an export reads.
func (s *Service) exporting(ctx context.Context, who hookglass.Principal) store.Holding {
	return func(bytes, largest int64) (give func(), err error) {
		return s.room(ctx, who, bytes+(exportTimes-1)*largest, exportTime)
	}
}

// Picked is EachReported for the events with the given ids, in that order. It skips events that are gone.
func (s *Service) Picked(ctx context.Context, who hookglass.Principal, ref string, ids []string, fn func(*hookglass.Event) error) error {
	one := func(id string) error {
		e, err := store.Read(ctx, s.db, who, func(v *store.View) (*hookglass.Event, error) {
			return v.ListedEvent(ref, id)
		})
		if err != nil {
			return err
		}
		give, err := s.room(ctx, who, exportTimes*e.Size, exportTime)
		if err != nil {
			return err
		}
		defer give()
		err = s.db.View(ctx, who, func(v *store.View) (err error) {
			e, err = v.ReportedEvent(ref, id)
			return err
		})
		if err != nil {
			return err
		}
		return fn(e)
	}
	for _, id := range ids {
		if err := one(id); err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
			return err
		}
	}
	return nil
}
