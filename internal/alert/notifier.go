package alert

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

const (
	sendersAtOnce = 32 // channels that a node sends to at the same time
	lookEvery     = time.Second
	dueAtOnce     = 256
	sendTimeout   = 10 * time.Second // of one message by HTTP

	// holdAtOnce and holdFor bound what is sent under one lease: if the process dies, all of it is sent again. People
	// see that in a chat, where no id tells repetitions apart.
	holdAtOnce = 50
	holdFor    = time.Second
	// holdLease covers holdFor and one more message: by mail at the longest, in two conversations when the relay
	// refuses an address. When it ends, another node may take the channel (spec: decisions, section 14: within 60 s).
	holdLease = holdFor + 2*mailTimeout + 15*time.Second

	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
	maxAsked     = time.Hour // the longest Retry-After that is heeded

	// A message that a channel refuses, rather than fails to take, is dropped after this many attempts, because later
	// messages wait behind it.
	maxRefusals = 5
	// A channel is disabled after at least this many consecutive failures, the first of them this long ago. One that
	// takes a message now and then is never disabled.
	disableFailures = 10
	disableAfter    = 24 * time.Hour

	softStop = 5 * time.Second
)

// Run sends what waits for channels until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	heard := s.db.Listen(store.TopicNotifications)
	defer heard.Close()
	sends, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var sending sync.WaitGroup
	freed := make(chan struct{}, 1)

	look := time.NewTimer(0)
	defer look.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-heard.C:
		case <-freed:
		case <-look.C:
		}
		if err := s.round(ctx, sends, &sending, freed); err != nil && ctx.Err() == nil {
			s.Log.Warn("notifications could not be taken", "error", err)
		}
		look.Reset(lookEvery)
	}
	if !fair.Await(&sending, softStop) {
		cancel()
		sending.Wait()
	}
	return nil
}

// round starts to send to the channels that are due, as far as there are places.
func (s *Service) round(ctx, sends context.Context, sending *sync.WaitGroup, freed chan<- struct{}) error {
	due, err := s.due(ctx)
	for _, d := range due {
		tenant := "channels of account " + strconv.FormatInt(d.AccountID, 10)
		s.mu.Lock()
		taken := !s.busy[d.Num] && s.places.Take(tenant, d.Num)
		if taken {
			s.busy[d.Num] = true
		}
		s.mu.Unlock()
		if !taken {
			continue
		}
		sending.Go(func() {
			more, err := s.serve(sends, d.Num)
			if err != nil && sends.Err() == nil {
				s.Log.Warn("the outcome of notifications could not be stored; they may be sent again", "error", err)
			}
			s.mu.Lock()
			delete(s.busy, d.Num)
			s.places.Give(tenant, d.Num)
			s.mu.Unlock()
			if more && err == nil {
				select {
				case freed <- struct{}{}:
				default:
				}
			}
		})
	}
	return err
}

// due lists the channels that are due. All that have nothing to tell of the latest captures are moved past these at
// once: a turn of each would keep those waiting that have something to send.
func (s *Service) due(ctx context.Context) (due []store.ChannelDue, err error) {
	var passed []int64
	var upTo int64
	err = s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		passed, upTo, err = v.ChannelsPassed()
		return err
	})
	if err == nil && len(passed) > 0 {
		err = s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.MoveChannels(passed, upTo) })
	}
	if err != nil {
		return nil, err
	}
	return store.Read(ctx, s.db, hookglass.System, func(v *store.View) ([]store.ChannelDue, error) {
		return v.ChannelsDue(s.Now(), upTo, dueAtOnce)
	})
}

// serve sends the messages that wait for one channel, in order, until one fails or the time is over. It reports whether
// more may wait.
func (s *Service) serve(ctx context.Context, num int64) (more bool, err error) {
	var h store.HeldChannel
	whole := context.WithoutCancel(ctx) // a hold that is given up may be stored, and would be nobody's until it ends
	err = s.db.Update(whole, hookglass.System, func(tx *store.Tx) (err error) {
		h, err = tx.HoldChannel(num, s.Now(), holdLease)
		return err
	})
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return false, nil // another node was quicker
	}
	if err != nil {
		return false, err
	}
	var waiting []store.Pending
	var upTo int64
	p := store.ChannelProgress{Cursor: h.Cursor, Tries: h.Tries, Failures: h.Failures, FailingFrom: h.FailingFrom, LastError: h.LastError}
	err = s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		waiting, upTo, err = v.Waiting(h, holdAtOnce)
		return err
	})
	if err == nil {
		more = s.sendAll(ctx, h.Channel, waiting, upTo, &p)
	}
	// Store this even when the process stops: what was sent must not be sent again.
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), softStop)
	defer cancel()
	released := false
	err = errors.Join(err, s.db.Update(release, hookglass.System, func(tx *store.Tx) (err error) {
		released, err = tx.ReleaseChannel(h, p)
		return err
	}))
	if p.Disable == "" || !released {
		return more, err
	}
	s.Log.Info("a notification channel was disabled", "channel", h.ID, "reason", p.Disable)
	// If the process ends here, the rest is deleted when the channel is enabled or deleted.
	return false, errors.Join(err, s.forget(ctx, hookglass.System, h.ID, false))
}

// sendAll sends messages in order and records their outcomes in p. It reports whether more that can be sent now may
// wait.
func (s *Service) sendAll(ctx context.Context, c hookglass.Channel, waiting []store.Pending, upTo int64, p *store.ChannelProgress) (more bool) {
	began := s.Now()
	for _, w := range waiting {
		if ctx.Err() != nil {
			return false
		}
		if s.Now().Sub(began) > holdFor {
			return true
		}
		sent, err := s.try(ctx, c, w.Message)
		if hookglass.Is(err, hookglass.CodeUnavailable) {
			return false // the storage is unavailable, or the node stops
		}
		if err != nil {
			sent.Failure = &hookglass.Failure{Code: "internal", Message: "The channel's configuration cannot be read."}
			s.Log.Error("a notification could not be made", "channel", c.ID, "error", err)
		}
		if withdrawn(sent) {
			return false
		}
		done := s.judge(sent, p)
		if done {
			if w.Num != 0 {
				p.Done = append(p.Done, w.Num)
			} else {
				p.Cursor = w.Seq
			}
		}
		if !sent.Delivered && !sent.looped {
			return false
		}
	}
	p.Cursor = max(p.Cursor, upTo)
	return len(waiting) == holdAtOnce
}

// judge records the outcome of an attempt in p, and reports whether the message is done with.
func (s *Service) judge(sent Sent, p *store.ChannelProgress) (done bool) {
	now := s.Now()
	if sent.Delivered {
		p.Tries, p.Failures, p.FailingFrom, p.LastError, p.DeliveredAt = 0, 0, time.Time{}, "", now
		return true
	}
	if sent.looped { // not a failure of the channel
		p.Tries, p.LastError = 0, sent.problem()
		return true
	}
	p.Tries++
	p.Failures++
	if p.FailingFrom.IsZero() {
		p.FailingFrom = now
	}
	p.LastError = sent.problem()
	bound := min(firstBackoff<<min(p.Failures-1, 20), maxBackoff)
	p.DueAt = now.Add(max(bound/2+s.Delay(bound/2), sent.retryAfter))
	switch {
	case sent.StatusCode == 410: // Standard Webhooks, "Operational considerations"
		p.Disable = hookglass.DisabledGone
	case p.Failures >= disableFailures && now.Sub(p.FailingFrom) >= disableAfter:
		p.Disable = hookglass.DisabledFailing
	}
	refused := sent.unfit || sent.StatusCode >= 400 && sent.StatusCode < 500 && sent.StatusCode != 408 && sent.StatusCode != 425 && sent.StatusCode != 429
	if refused && p.Tries >= maxRefusals {
		p.Tries = 0
		return true
	}
	return false
}

// withdrawn reports whether nothing was attempted: there was no turn for it, or the node stops.
func withdrawn(s Sent) bool {
	return s.Failure != nil && outbound.Code(s.Failure.Code).Withheld()
}

func (s Sent) problem() string {
	if s.Failure != nil {
		return s.Failure.Message
	}
	return fmt.Sprintf("The channel answered %d.", s.StatusCode)
}

// try is send with a panic turned into a failure of that message: otherwise it would crash every node that takes it.
func (s *Service) try(ctx context.Context, c hookglass.Channel, m hookglass.Message) (sent Sent, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.Log.Error("panic in a notification", "channel", c.ID, "message", m.ID, "panic", r, "stack", string(debug.Stack()))
			sent = Sent{Failure: &hookglass.Failure{Code: "internal", Message: "A message could not be built; the reason is in the service's log."}, unfit: true}
			err = nil
		}
	}()
	return s.send(ctx, c, m)
}

// send makes one attempt to deliver a message to a channel. Its error is internal, or unavailable when the storage does
// not answer.
func (s *Service) send(ctx context.Context, c hookglass.Channel, m hookglass.Message) (sent Sent, err error) {
	config, err := s.open(c)
	if err != nil {
		return sent, err
	}
	hops, looped, err := s.hop(ctx, m)
	if err != nil || looped != nil {
		sent.Failure, sent.looped = looped, err == nil
		return sent, err
	}
	if c.Kind == hookglass.ChannelEmail {
		if s.Mailer == nil {
			sent.Failure = &hookglass.Failure{Code: string(hookglass.CodeUnavailable), Message: noRelay}
			return sent, nil
		}
		if err := s.Mailer.send(ctx, config.To, m, hops); err != nil {
			sent.Failure = mailFailure(err)
			sent.Delivered = errors.As(err, new(partly)) // a retry would send it twice to those who have it
			if ctx.Err() != nil && !sent.Delivered {
				sent.Failure.Code = string(outbound.CodeCanceled)
			}
			return sent, nil
		}
		sent.Delivered = true
		return sent, nil
	}
	r, err := compose(c.Kind, config, s.Telegram, m, s.Now())
	if err != nil {
		return sent, err
	}
	if hops > 0 {
		r.headers = append(r.headers, hookglass.Header{Name: outbound.HopHeader, Value: strconv.Itoa(hops)})
	}
	res, err := s.Client.Do(ctx, outbound.Request{
		Method: "POST", URL: r.url, Headers: r.headers, Body: r.body, Timeout: sendTimeout, MaxResponseBytes: 4 << 10,
		Key: "channels of account " + strconv.FormatInt(c.AccountID, 10),
	})
	if err != nil {
		sent.Failure = &hookglass.Failure{Code: "unknown_error", Message: "The request failed."}
		if f, ok := errors.AsType[*outbound.Failure](err); ok {
			sent.Failure = &hookglass.Failure{Code: string(f.Code), Message: f.Message}
		}
		return sent, nil
	}
	sent.StatusCode = res.Status
	sent.Delivered = res.Status >= 200 && res.Status <= 299
	if !sent.Delivered {
		sent.retryAfter = outbound.RetryAfter(res.Headers, s.Now(), maxAsked)
	}
	return sent, nil
}

// hop returns how many hops a message about an event has: one more than the event was captured with. A channel may lead
// back to the endpoint that captured the event, and each message would cause the next, for ever; after too many hops it
// returns a failure.
func (s *Service) hop(ctx context.Context, m hookglass.Message) (hops int, looped *hookglass.Failure, err error) {
	if m.EventID == "" {
		return 0, nil, nil
	}
	var headers hookglass.Headers
	err = s.db.Glance(ctx, hookglass.System, func(v *store.View) (err error) {
		headers, err = v.EventHeaders(m.EventID)
		return err
	})
	if err != nil && !hookglass.Is(err, hookglass.CodeNotFound) { // deleted meanwhile
		return 0, nil, err
	}
	hops = outbound.Hops(headers)
	if hops >= outbound.MaxHops {
		return 0, &hookglass.Failure{Code: string(outbound.CodeLoopDetected), Message: "A message was not sent: its event was caused by messages of this service, which looks like a loop."}, nil
	}
	return hops + 1, nil, nil
}
