package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"strings"
	"time"

	"hookglass/api"
)

const (
	// silence is how long a stream may be without a sign of life; the server gives one every 15 s.
	silence = 45 * time.Second
	// maxLine bounds one line of a stream: the list form of an event with the longest fields.
	maxLine = 4 << 20

	mediaStream = "text/event-stream"

	firstWait = 500 * time.Millisecond
	lastWait  = 30 * time.Second
)

// Stream returns events as they are captured, behind the event with the id after; "" begins with what comes next.
// It connects again when the connection is lost and leaves nothing out. It ends when the context does, without an
// error, and with the error of a call that will not work when repeated: no right, no such endpoint, a bad filter.
//
// away, which may be nil, hears why there is no connection, once until there is one again, and then nil. One that only
// has to be made again is not worth a word.
func (c *Client) Stream(ctx context.Context, endpoint string, filter Filter, after string, away func(error)) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		s := &stream{client: c, path: join("endpoints", endpoint, "stream"), filter: filter, last: after, away: away}
		s.run(ctx, yield)
	}
}

// Since is a Stream that begins with what came within that time before by the server's clock, newest first and 100 at
// most. Nothing is lost between the two: it looks at what came when the stream has begun.
func (c *Client) Since(ctx context.Context, endpoint string, filter Filter, since time.Duration, away func(error)) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		s := &stream{client: c, path: join("endpoints", endpoint, "stream"), filter: filter, away: away}
		s.before = func(ctx context.Context) ([]api.Event, error) {
			recent := filter
			recent.Query = strings.TrimSpace(fmt.Sprintf("%s after:%ds", filter.Query, int64(math.Ceil(since.Seconds()))))
			page, err := c.Requests(ctx, endpoint, recent, Page{Limit: 100})
			return page.Data, err
		}
		s.run(ctx, yield)
	}
}

type stream struct {
	client *Client
	path   string
	filter Filter
	last   string                                     // id of the last event
	alive  bool                                       // the connection gave a sign of life
	before func(context.Context) ([]api.Event, error) // what comes first, until it is known

	away func(error)
	told bool // that there is no connection
}

// run connects until the reader wants no more.
func (s *stream) run(ctx context.Context, yield func(api.Event, error) bool) {
	if s.away == nil {
		s.away = func(error) {}
	}
	wait := firstWait
	for ctx.Err() == nil {
		more, err := s.follow(ctx, yield)
		var refused *Error
		switch {
		case !more:
			return
		case errors.As(err, &refused) && refused.Status < 500 && refused.Status != http.StatusTooManyRequests:
			yield(api.Event{}, err)
			return
		}
		switch {
		case s.alive:
			wait, s.alive = firstWait, false
		case !s.told && ctx.Err() == nil:
			s.told = true
			s.away(err)
		}
		if refused != nil {
			wait = max(wait, refused.RetryAfter)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, lastWait)
	}
}

// follow reads one connection. more is false when the reader wants no more.
func (s *stream) follow(ctx context.Context, yield func(api.Event, error) bool) (more bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	header := http.Header{"Accept": {mediaStream}}
	if s.last != "" {
		header.Set("Last-Event-ID", s.last)
	}
	res, err := s.client.send(ctx, http.MethodGet, s.path, s.filter.values(), nil, header)
	if err != nil {
		return true, err
	}
	defer res.Body.Close()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), mediaStream) { // what else has lines has no events
		return true, foreign(res.StatusCode, res.Header.Get("X-Request-Id"))
	}
	alarm := time.AfterFunc(silence, func() { cancel(errors.New("the stream fell silent")) })
	defer alarm.Stop()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxLine)
	id, text := "", ""
	for lines.Scan() {
		alarm.Reset(silence)
		s.connected()
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "": // a comment, or the end of an event
			if place, ok := strings.CutPrefix(value, "begins behind "); ok && s.last == "" {
				s.last = place
			}
			alarm.Stop() // the reader may take its time
			if more, err := s.giveBefore(ctx, yield); err != nil || !more {
				return more, err
			}
			if text != "" {
				if more, err := give(text, yield); err != nil || !more {
					return more, err
				}
				s.last, text = id, ""
			}
			alarm.Reset(silence)
		case "id":
			id = value
		case "data":
			text = value
		}
	}
	if err := lines.Err(); err != nil {
		return true, err
	}
	return true, io.ErrUnexpectedEOF
}

// connected notes a sign of life, and says that there is a connection again where it was said that there is none.
func (s *stream) connected() {
	s.alive = true
	if s.told {
		s.told = false
		s.away(nil)
	}
}

// giveBefore gives the reader what comes first, once.
func (s *stream) giveBefore(ctx context.Context, yield func(api.Event, error) bool) (more bool, err error) {
	if s.before == nil {
		return true, nil
	}
	events, err := s.before(ctx)
	if err != nil {
		return true, err
	}
	s.before = nil
	for _, e := range events {
		if !yield(e, nil) {
			return false, nil
		}
	}
	return true, nil
}

// give gives the reader an event as the stream spells it.
func give(text string, yield func(api.Event, error) bool) (more bool, err error) {
	var e api.Event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return true, fmt.Errorf("an event of the stream: %w", err)
	}
	return yield(e, nil), nil
}
