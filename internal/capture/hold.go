package capture

import (
	"context"
	"strconv"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

const (
	// largeReads bounds the large events that readers are given at a time: one is held for as long as its reader takes.
	largeReads = 256 << 20
	// readTime is how long a reader waits for room.
	readTime = 30 * time.Second
)

// errNoRead is told where what others read leaves no room in time.
var errNoRead = &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "Too many large requests are being read.", RetryAfter: 2 * time.Second}

// Hold reads an event, and a large one only while there is room for what becomes of it: so many times its size. The
// room is given back when ctx is done, as that of a request is when it has been answered. It answers what read answers,
// and rate_limited.
func (s *Service) Hold(
	ctx context.Context, who hookglass.Principal, times int64, read func(*store.View) (*hookglass.Event, error),
) (e *hookglass.Event, err error) {
	look := func(v *store.View) (err error) {
		e, err = read(v)
		return err
	}
	if err = s.db.View(ctx, who, look); err != nil || e.Size <= fair.SmallBody {
		return e, err
	}
	of, size := strconv.FormatInt(who.Account, 10)+" "+string(who.Endpoint), times*e.Size
	give, ok := s.reads.Take(of, size)
	if ok {
		context.AfterFunc(ctx, give)
		return e, nil
	}
	e = nil // who waits holds nothing
	if give, ok = s.reads.Await(ctx, of, size, s.readTime); !ok {
		return nil, errNoRead
	}
	context.AfterFunc(ctx, give)
	err = s.db.View(ctx, who, look)
	return e, err
}
