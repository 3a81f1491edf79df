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
	// largeReads bounds the large events that readers are given at a time: one is held for as long as its reader takes.
	largeReads = 256 << 20
	// readTime is how long a reader waits for room.
	readTime = 30 * time.Second
	// exportTime is how long one waits who has a part of a file already, and would have to start over.
	exportTime = time.Hour
	// exportTimes is how many times its size an event takes that is written to a file: as it was received, as text, and
	// as what is written of it.
	exportTimes = 4
)

// errNoRead is told where what others read leaves no room in time.
var errNoRead = &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "Too many large requests are being read.", RetryAfter: 5 * time.Second}

// Hold reads an event, and a large one only while there is room for what becomes of it: so many times its size. The
// room is given back when ctx is done, as that of a request is when it has been answered. It answers what read answers,
// and unavailable. Of a large event read is called twice: first with a view that leaves out what is large, see
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

// HoldAll is Hold for events that are needed together. Who took room for one, and then for another, could wait for
// somebody who waits for them.
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

// RoomFor waits for room for what was made of events and is given to a reader, which has it until ctx is done. It
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

// readerOf names those who share as one.
func readerOf(who hookglass.Principal) string {
	return strconv.FormatInt(who.Account, 10) + " " + string(who.Endpoint)
}

// matchTimes is how many times its size an event takes while it is held against a query: it is decoded.
const matchTimes = 2

// Means reports whether a query means an event that is in the list form, and reads as much of it as that takes, as
// there is room. It answers not_found for one that was deleted meanwhile, and unavailable.
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

// MayExport waits until there is room to begin a file. It answers unavailable, which nobody can be told once the file
// has begun.
func (s *Service) MayExport(ctx context.Context, who hookglass.Principal) error {
	give, err := s.room(ctx, who, store.EachBytes, s.readTime)
	if err == nil {
		give()
	}
	return err
}

// Each calls fn with each event of an endpoint that the query means, oldest first. It is for a file, which its reader
// may take slowly: it waits for room before it reads large events, see Hold. It answers what [store.DB.EachEvent] does.
func (s *Service) Each(ctx context.Context, who hookglass.Principal, ref string, q query.Query, fn func(*hookglass.Event) error) error {
	return s.db.EachEvent(ctx, who, ref, q, s.exporting(ctx, who), fn)
}

// EachReported is Each with the delivery reports of each event.
func (s *Service) EachReported(ctx context.Context, who hookglass.Principal, ref string, q query.Query, fn func(*hookglass.Event) error) error {
	return s.db.EachReportedEvent(ctx, who, ref, q, s.exporting(ctx, who), fn)
}

// exporting waits for room for what is read for a file.
func (s *Service) exporting(ctx context.Context, who hookglass.Principal) store.Holding {
	return func(bytes, largest int64) (give func(), err error) {
		return s.room(ctx, who, bytes+(exportTimes-1)*largest, exportTime)
	}
}

// Picked is EachReported for the events with these ids, in the order of the ids. Events that are gone are
// left out.
func (s *Service) Picked(ctx context.Context, who hookglass.Principal, ref string, ids []string, fn func(*hookglass.Event) error) error {
	one := func(id string) error {
		var e *hookglass.Event
		err := s.db.View(ctx, who, func(v *store.View) (err error) {
			e, err = v.ListedEvent(ref, id)
			return err
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
