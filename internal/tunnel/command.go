package tunnel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

const (
	// answerSlack is left for a client to report the result of a request that took all its time.
	answerSlack = 3 * time.Second
	// takeTime is how long a session has to take a command before it is offered to another. It includes the round trip
	// that checks whether its client is still there.
	takeTime = 2 * time.Second
	// nearTime is how recently a client must have been heard from to be given a command without such a check.
	nearTime = time.Second
)

// Failures of a request that a client was to make.
var (
	noAnswer = hookglass.Failure{Code: "tunnel_timeout", Message: "The connected machine did not report the result of the request."}
	notTaken = hookglass.Failure{Code: hookglass.NoTunnel.Code, Message: "The connected machine went away, or did not respond, before it was given the request."}
)

// Send has one of the connected clients of the event's endpoint make a request, and waits for the result that the
// client reports, for the timeout at most. The command is offered to one session after another until one takes it; from
// then on nobody else gets it.
func (s *Service) Send(ctx context.Context, of *hookglass.Event, runID string, request hookglass.SentRequest, timeout time.Duration) hookglass.TunnelOutcome {
	began, at := time.Now(), s.db.Now()
	c := hookglass.TunnelCommand{
		ID: hookglass.NewSortableID(hookglass.PrefixTunnelCommand, at), EndpointNum: of.EndpointNum, RunID: runID, Request: request,
		Provider: of.Provider, EventType: of.EventType,
		Timeout: timeout - answerSlack, ExpiresAt: at.Add(timeout),
	}
	heard := s.db.Listen(store.TopicTunnel(of.EndpointNum))
	defer heard.Close()
	out := hookglass.TunnelOutcome{Failure: &hookglass.NoTunnel, Blocked: true}
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.CreateTunnelCommand(&c, s.signSince(tx.Now)) })
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return out
	}
	if err != nil { // it may have been stored, and a client may have it by now
		out.Failure = &hookglass.Failure{Code: string(hookglass.CodeOf(err)), Message: "The request could not be handed to the connected machine."}
		out.Blocked = s.withdraw(ctx, c)
		out.MaySent = !out.Blocked
		return out
	}
	result, unsent := s.await(ctx, c, began.Add(timeout), heard)
	out.Duration = time.Since(began)
	switch {
	case unsent:
		out.Failure = &notTaken
	case result == nil:
		out.Failure, out.Blocked, out.MaySent = &noAnswer, false, true
	default:
		out = outcome(result, out.Duration)
	}
	return out
}

// await waits for the result of a command until the deadline by this machine's clock, and offers the command to the
// next session when one does not take it. Without a result it withdraws the command; unsent says that no client can
// have it.
func (s *Service) await(ctx context.Context, c hookglass.TunnelCommand, deadline time.Time, heard *store.Subscription) (result *hookglass.TunnelResult, unsent bool) {
	until, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	offered, at := []int64{c.SessionNum}, time.Now()
	for waiting := true; waiting; {
		var sent, held bool
		err := s.db.View(until, hookglass.System, func(v *store.View) (err error) {
			sent, held, result, err = v.TunnelCommandState(c.Num)
			return err
		})
		if err == nil && result != nil {
			return result, false
		}
		if err == nil && !sent && (!held || time.Since(at) >= takeTime) {
			offered, err = s.offerOn(until, c, offered)
			if hookglass.Is(err, hookglass.CodeNotFound) && !held {
				break // no session is left
			}
			at = time.Now() // an error of the storage is retried then
		}
		select {
		case <-heard.C:
		case <-look.C:
		case <-until.Done():
			waiting = false
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopFor)
	defer cancel()
	err := s.db.Update(last, hookglass.System, func(tx *store.Tx) (err error) {
		if _, _, result, err = tx.TunnelCommandState(c.Num); err != nil || result != nil {
			return err
		}
		unsent, err = tx.WithdrawTunnelCommand(c.ID)
		return err
	})
	return result, err == nil && unsent && result == nil
}

// offerOn offers a command to the next session, and returns those that it was offered to. When all have been asked it
// starts over, since one may only have been busy. It answers not_found when there is no other session.
func (s *Service) offerOn(ctx context.Context, c hookglass.TunnelCommand, offered []int64) ([]int64, error) {
	var next int64
	var again bool
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		next, err = tx.OfferTunnelCommand(c.Num, offered, s.signSince(tx.Now))
		if again = hookglass.Is(err, hookglass.CodeNotFound) && len(offered) > 1; again {
			next, err = tx.OfferTunnelCommand(c.Num, offered[len(offered)-1:], s.signSince(tx.Now))
		}
		return err
	})
	if err != nil || next == 0 {
		return offered, err
	}
	if again {
		offered = offered[len(offered)-1:]
	}
	return append(offered, next), nil
}

// signSince returns the time since when a node must have renewed its lease to count as alive. A node renews it five
// times within its length.
func (s *Service) signSince(now time.Time) time.Time { return now.Add(-s.lease / 2) }

// withdraw withdraws a command that may or may not have been stored. unsent is true when no client can have got it.
func (s *Service) withdraw(ctx context.Context, c hookglass.TunnelCommand) (unsent bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopFor)
	defer cancel()
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		unsent, err = tx.WithdrawTunnelCommand(c.ID)
		return err
	})
	return err == nil && unsent
}

// outcome converts a client's result.
func outcome(r *hookglass.TunnelResult, took time.Duration) hookglass.TunnelOutcome {
	out := hookglass.TunnelOutcome{Duration: cmp.Or(r.ResponseTime, took)}
	if r.StatusCode != 0 {
		out.Response = responseOf(r.StatusCode, r.Evidence)
		return out
	}
	out.Failure = &hookglass.Failure{
		Code:    cmp.Or(r.FailureCategory, "connection_failed"),
		Message: cmp.Or(strings.TrimSpace(r.Error), strings.TrimSpace(r.Message), "The local machine gave no answer."),
	}
	out.MaySent = r.MaySent
	return out
}

// Finish stores a client's result of a command. The result token entitles to that, once. It answers unauthorized,
// conflict and validation_failed.
func (s *Service) Finish(ctx context.Context, in api.TunnelReplayResult) error {
	var f faults
	if in.CommandID == "" {
		f.add("command_id", "is required")
	}
	if in.ResultToken == "" {
		f.add("result_token", "is required")
	}
	f.category(in.FailureCategory)
	r := hookglass.TunnelResult{
		StatusCode: f.status(in.StatusCode, false), Message: beginning(in.ResponseMessage), Error: beginning(in.Error), FailureCategory: in.FailureCategory,
		MaySent: maySent(in), Evidence: f.evidence(in.TunnelEvidence),
		ResponseTime: time.Duration(f.number("response_time_ms", in.ResponseTimeMS, maxTime*1000)) * time.Millisecond,
	}
	if len(f) > 0 {
		return hookglass.InvalidFields(f)
	}
	if len(in.CommandID) > maxWord || len(in.ResultToken) > maxWord || strings.Contains(in.CommandID, "\x00") { // no id holds a NUL, nor does PostgreSQL
		return hookglass.Errorf(hookglass.CodeUnauthorized, "The result_token is not that of a command.")
	}
	return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.AnswerTunnelCommand(in.CommandID, digest(in.ResultToken), r) })
}

// maySent reports whether a request without an answer may have reached the local target. If the client does not say,
// only a failure from before the request proves that it was not sent.
func maySent(in api.TunnelReplayResult) bool {
	if in.RequestMayHaveBeenSent != nil {
		return *in.RequestMayHaveBeenSent
	}
	switch in.FailureCategory {
	case "connection_refused", "dns_error", "tls_error":
		return false
	}
	return true
}

// commandsAtOnce bounds the commands, with their bodies, that are read together.
const commandsAtOnce = 32

// sendCommands sends the client the commands that are offered to it.
func (x *Session) sendCommands(f *flow) error {
	defer x.stayAlive(f)()
	for after, more := int64(0), true; more; {
		waiting, err := aside(func() (waiting []hookglass.TunnelCommand, err error) {
			err = x.s.db.View(x.ctx, hookglass.System, func(v *store.View) (err error) {
				waiting, err = v.WaitingTunnelCommands(x.record.Num, after, commandsAtOnce, v.Now.Add(answerSlack))
				return err
			})
			return waiting, err
		})
		if err != nil {
			x.command.Store(true)
			return nil
		}
		for _, c := range waiting {
			if err := x.sendCommand(c); err != nil {
				return err
			}
			after = c.Num
		}
		more = len(waiting) == commandsAtOnce
	}
	return nil
}

// near reports whether the client was heard from recently. A command sent to a client that is gone cannot be offered
// to another.
func (x *Session) near() bool { return x.s.db.Now().Sub(time.UnixMicro(x.heard.Load())) < nearTime }

// sendCommand sends the client a command, unless another session has taken it. The marker is stored before: from then
// on the client may have the command.
func (x *Session) sendCommand(c hookglass.TunnelCommand) error {
	sub := x.subscribed(c.EndpointNum)
	if sub == nil {
		return nil
	}
	token := hookglass.NewRandomID(hookglass.PrefixResultToken)
	var mine bool
	err := x.s.db.Update(x.ctx, hookglass.System, func(tx *store.Tx) (err error) {
		mine, err = tx.SendTunnelCommand(c.Num, x.record.Num, digest(token), tx.Now.Add(answerSlack))
		return err
	})
	if err != nil {
		x.command.Store(true) // try again later
		return nil
	}
	left := c.ExpiresAt.Sub(x.s.db.Now()) - answerSlack
	if !mine || left <= 0 { // this process was suspended, and nobody waits any more
		return nil
	}
	c.Timeout = min(c.Timeout, left)
	message, err := json.Marshal(api.FromTunnelCommand(c, local(sub.TargetURL, c.Request.URL), token))
	if err != nil {
		return fmt.Errorf("command %s: %w", c.ID, err)
	}
	return x.conn.Deliver(x.ctx, sub.key, message)
}

func (x *Session) subscribed(endpointNum int64) *subscription {
	for _, sub := range x.list() {
		if sub.EndpointNum == endpointNum {
			return sub
		}
	}
	return nil
}

// local appends the path and query of a request to the client's target, as the client itself does with events: no path
// when nothing followed the endpoint, and the query after the target's own.
func local(target, requested string) string {
	if !absolute(target) {
		return requested
	}
	target, _, _ = strings.Cut(target, "#")
	base, own, _ := strings.Cut(target, "?")
	path, query, _ := strings.Cut(requested, "?")
	if path != "/" {
		base = strings.TrimSuffix(base, "/") + path
	}
	if own != "" && query != "" {
		own += "&"
	}
	if own += query; own != "" {
		base += "?" + own
	}
	return base
}
