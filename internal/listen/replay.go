package listen

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
)

// Bounds of replays: a server may ask for any number of them.
const (
	replayWidth  = 64        // under way at once, for all endpoints
	replayLength = 1_000     // under way or waiting
	replayBytes  = 256 << 20 // and their bytes, beyond the first
)

// lastReport is how long the end of a listener may wait for the server to take the results of replays that it stops.
const lastReport = 2 * time.Second

// order accepts a replay command and carries it out in the background, even if the connection that it came on is lost:
// the server waits for its result by REST. If there are too many it is dropped: the server gets no result and reports
// that in the end.
func (a *lane) order(text json.RawMessage) {
	l := a.l
	var c api.TunnelReplayCommand
	if json.Unmarshal(text, &c) != nil || !nameable(c.CommandID) {
		return
	}
	weight := int64(len(text))
	l.mu.Lock()
	room := l.ordered < replayLength && (l.ordered == 0 || l.orderedBytes+weight <= replayBytes)
	fresh := room && l.commands.see(c.CommandID)
	if fresh {
		l.ordered++
		l.orderedBytes += weight
	}
	l.mu.Unlock()
	if !room {
		l.tell(Warning{"the server asks for more replays than can wait; one was dropped"})
	}
	if !fresh {
		return
	}
	l.work.Go(func() {
		defer func() {
			l.mu.Lock()
			l.ordered--
			l.orderedBytes -= weight
			l.mu.Unlock()
		}()
		select {
		case l.replays <- struct{}{}:
			defer func() { <-l.replays }()
			a.replay(l.life, c)
		case <-l.life.Done():
		}
	})
}

// replay sends the request of a replay command to the endpoint's target and nowhere else: the server chooses path,
// fields and body, not the machine. A target that is a command is run; it must expect any input in any case, because
// events come from strangers.
func (a *lane) replay(ctx context.Context, c api.TunnelReplayCommand) {
	l := a.l
	out, err := a.command(c)
	resolved, shown := "", c.URL // if it is not sent
	var got answer
	switch {
	case err != nil:
		got = answer{failure: api.FailureUnknown, problem: err.Error(), declared: -1}
	case !c.ExpiresAt.IsZero() && l.now().After(c.ExpiresAt.Time):
		got = answer{failure: api.FailureTimeout, problem: "the command came too late", declared: -1}
	default:
		got = a.carryReplay(ctx, out, c)
	}
	if err == nil {
		resolved, shown = out.url(), out.url()
	}
	result := resultOf(c, resolved, got)
	l.tell(Replayed{Method: c.Method, URL: shown, StatusCode: got.status, Took: got.took, Problem: got.problem})
	err = insist(ctx, func() error { return l.cfg.Client.ReportReplay(ctx, result) })
	switch {
	case err != nil && ctx.Err() != nil:
		// The listener ends. Whoever asked for the replay would wait for a result until the command expires.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastReport)
		defer cancel()
		_ = l.cfg.Client.ReportReplay(last, result)
	case err != nil:
		l.tell(Warning{"the server refused the result of a replay: " + err.Error()})
	}
}

// carryReplay makes the request of a replay, within the limits of the command.
func (a *lane) carryReplay(ctx context.Context, out outgoing, c api.TunnelReplayCommand) answer {
	limit, keep := a.l.cfg.limits.answer, a.l.evidenceLimit()
	if c.TimeoutMS > 0 {
		limit = time.Duration(min(c.TimeoutMS, int64(10*time.Minute/time.Millisecond))) * time.Millisecond
	}
	if c.EvidenceBodyLimit > 0 {
		keep = min(c.EvidenceBodyLimit, maxEvidence)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got := a.carry(ctx, out, limit, keep, func() {})
	a.l.noticed(out.to, got)
	return got.entire(ctx)
}

// resultOf converts the result of a replay.
func resultOf(c api.TunnelReplayCommand, resolved string, got answer) api.TunnelReplayResult {
	took, maySent := got.took.Milliseconds(), got.status != 0 || got.maySent
	return api.TunnelReplayResult{
		ResultToken: c.ResultToken, CommandID: c.CommandID, StatusCode: api.Some(int64(got.status)), ResponseTimeMS: &took,
		ResponseMessage: hookglass.Beginning(api.Text(got.reason), hookglass.MessageLimit), Error: hookglass.Beginning(got.problem, hookglass.MessageLimit), FailureCategory: got.failure,
		RequestMayHaveBeenSent: &maySent, TunnelEvidence: evidence(resolved, got),
	}
}

// command builds the request of a replay.
func (a *lane) command(c api.TunnelReplayCommand) (outgoing, error) {
	body, err := base64.StdEncoding.DecodeString(c.BodyBase64)
	if err != nil {
		return outgoing{}, fmt.Errorf("the body of the command is no base64")
	}
	to := a.endpoint.announced()
	if to == nil {
		return outgoing{}, fmt.Errorf("this listener shows events and has no target to send them to")
	}
	target, list := c.Wanted()
	if requested, ok := to.below(target); ok && c.DetectedProvider != "" { // older servers name none
		if to = a.endpoint.leads(c.DetectedProvider, eventType(c.ProviderEventData)); to == nil {
			return outgoing{}, fmt.Errorf("this listener has no target for events of this type")
		}
		target = requested
	}
	fields := fieldsOf(list, c.Headers)
	if to.Command != "" {
		path, query, _ := strings.Cut(strings.TrimPrefix(target, commandAddress), "?")
		f := facts{replay: c.CommandID, endpoint: a.endpoint.ID, method: c.Method, path: cmp.Or(path, "/"), query: query, provider: c.DetectedProvider, event: eventType(c.ProviderEventData)}
		return errand(*to, f, fields, a.endpoint.Headers, body), nil
	}
	if rest, whole := strings.CutPrefix(target, to.Scheme+"://"+to.Host); whole && (rest == "" || rest[0] == '/' || rest[0] == '?') {
		if target = rest; target == "" || target[0] == '?' {
			target = "/" + target
		}
		target = fit(target)
	} else if !strings.HasPrefix(target, "/") && strings.Contains(target, "://") {
		return outgoing{}, fmt.Errorf("the command names an address that is no target of this listener")
	} else {
		path, query, _ := strings.Cut(target, "?")
		target = to.requestTarget(path, query)
	}
	return outgoing{method: c.Method, to: *to, target: target, fields: fields, body: body}.write(a.endpoint.Headers, nil)
}

// insist repeats a call a few times while the connection or the server fails.
func insist(ctx context.Context, call func() error) (err error) {
	pause := newBackoff()
	for range 5 {
		if err = call(); err == nil || hopeless(err) {
			return err
		}
		select {
		case <-time.After(pause.next(false)):
		case <-ctx.Done():
			return err
		}
	}
	return err
}

// hopeless reports whether a call is refused however often it is repeated.
func hopeless(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Code != "" && refused.Status < 500 && refused.Status != http.StatusTooManyRequests
}
