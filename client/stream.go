package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"hookglass/api"
)

const (
	// silence is how long a stream may be silent; the server sends a sign of life every 15 s.
	silence = 45 * time.Second
	// maxLine bounds one line of a stream: an event's list form with the longest fields.
	maxLine = 4 << 20

	mediaStream = "text/event-stream"

	firstWait = 500 * time.Millisecond
	lastWait  = 30 * time.Second
)

// Stream returns events as they are captured, starting after the event with the id after; "" starts with the next one.
// It reconnects when the connection is lost and misses nothing. It ends without an error when the context does, and
// with the error of a call that is useless to repeat: no right, no such endpoint, a bad filter.
//
// away, which may be nil, is called with the reason when reconnecting fails, once until it succeeds, and then with nil.
// A connection that is restored at once is not reported.
func (c *Client) Stream(ctx context.Context, endpoint string, filter Filter, after string, away func(error)) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		s := &stream{client: c, path: join("endpoints", endpoint, "stream"), filter: filter, last: after, away: away}
		s.run(ctx, yield)
	}
}

// Since is a Stream that begins with the events since a time, newest first and at most 100: ISO 8601, or a duration as
// 10s that the server counts back from its now. It queries them after the stream has begun, so nothing is lost in
// between.
func (c *Client) Since(ctx context.Context, endpoint string, filter Filter, since string, away func(error)) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		s := &stream{client: c, path: join("endpoints", endpoint, "stream"), filter: filter, away: away}
		s.before = func(ctx context.Context) ([]api.Event, error) {
			recent := filter
			recent.Query = strings.TrimSpace(filter.Query + " after:" + since)
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
	before func(context.Context) ([]api.Event, error) // queries the first events; nil once that is done

	away func(error)
	told bool // away was told that there is no connection
}

// run keeps connecting until the reader wants no more.
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
	if !strings.HasPrefix(res.Header.Get("Content-Type"), mediaStream) { // not a stream of events
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
			alarm.Stop() // the time that the reader takes does not count
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

// connected records a sign of life, and tells away if the connection was reported as lost.
func (s *stream) connected() {
	s.alive = true
	if s.told {
		s.told = false
		s.away(nil)
	}
}

// giveBefore yields the first events, once.
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

// give yields an event of the stream.
func give(text string, yield func(api.Event, error) bool) (more bool, err error) {
	var e api.Event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return true, fmt.Errorf("an event of the stream: %w", err)
	}
	return yield(e, nil), nil
}
