package listen

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
)

// replay sends what a replay command holds to the endpoint's target, and nowhere else: the server chooses path, fields
// and body, not the machine. Where the target is a command it is run: it has to expect anything as it is, for events
// come from strangers.
func (a *lane) replay(ctx context.Context, text json.RawMessage) {
	l := a.l
	var c api.TunnelReplayCommand
	if json.Unmarshal(text, &c) != nil || c.CommandID == "" {
		return
	}
	l.mu.Lock()
	fresh := l.commands.see(c.CommandID)
	l.mu.Unlock()
	if !fresh {
		return
	}
	took := int64(0)
	result := api.TunnelReplayResult{ResultToken: c.ResultToken, CommandID: c.CommandID, StatusCode: api.Some(int64(0)), ResponseTimeMS: &took}
	out, err := a.command(c)
	var got answer
	switch {
	case err != nil:
		got = answer{failure: api.FailureUnknown, problem: err.Error(), declared: -1}
	case !c.ExpiresAt.IsZero() && l.now().After(c.ExpiresAt.Time):
		got = answer{failure: api.FailureTimeout, problem: "the command came too late", declared: -1}
	default:
		limit := localLimit
		if c.TimeoutMS > 0 {
			limit = time.Duration(min(c.TimeoutMS, int64(10*time.Minute/time.Millisecond))) * time.Millisecond
		}
		sending, cancel := context.WithTimeout(ctx, limit)
		keep := l.evidenceLimit()
		if c.EvidenceBodyLimit > 0 {
			keep = min(c.EvidenceBodyLimit, 16<<20)
		}
		got = a.carry(sending, out, limit, keep, func() {})
		l.noticed(out.to, got)
		got = got.entire(sending)
		cancel()
	}
	took = got.took.Milliseconds()
	result.StatusCode, result.ResponseMessage, result.Error, result.FailureCategory = api.Some(int64(got.status)), cut(api.Text(got.reason), hookglass.MessageLimit), cut(got.problem, hookglass.MessageLimit), got.failure
	maySent := got.status != 0 || got.maySent
	result.RequestMayHaveBeenSent = &maySent
	resolved, shown := "", c.URL // of one that is not sent
	if err == nil {
		resolved, shown = out.url(), out.url()
	}
	result.TunnelEvidence = evidence(resolved, got)
	l.tell(Replayed{Method: c.Method, URL: shown, StatusCode: got.status, Took: got.took, Problem: got.problem})
	if err := insist(ctx, func() error { return l.cfg.Client.ReportReplay(ctx, result) }); err != nil && ctx.Err() == nil {
		l.tell(Warning{"the result of a replay was not taken: " + err.Error()})
	}
}

// command makes the request of a replay.
func (a *lane) command(c api.TunnelReplayCommand) (outgoing, error) {
	body, err := base64.StdEncoding.DecodeString(c.BodyBase64)
	if err != nil {
		return outgoing{}, fmt.Errorf("the body of the command is no base64")
	}
	to := a.endpoint.Target
	for _, way := range a.endpoint.Routes {
		if to == nil || way.Target.Command == "" && strings.HasPrefix(c.URL, way.Target.Scheme+"://"+way.Target.Host+"/") {
			to = &way.Target
		}
	}
	if to == nil {
		return outgoing{}, fmt.Errorf("this listener shows events and has no target to send them to")
	}
	target, list := c.Wanted()
	fields := fieldsOf(list, c.Headers)
	if to.Command != "" {
		path, query, _ := strings.Cut(strings.TrimPrefix(target, commandAddress), "?")
		f := facts{replay: c.CommandID, endpoint: a.endpoint.ID, method: c.Method, path: cmp.Or(path, "/"), query: query}
		return errand(*to, f, fields, a.endpoint.Headers, body), nil
	}
	if rest, whole := strings.CutPrefix(target, to.Scheme+"://"+to.Host); whole && (rest == "" || rest[0] == '/' || rest[0] == '?') {
		if target = rest; target == "" || target[0] == '?' {
			target = "/" + target
		}
		target = fit(target)
	} else if strings.Contains(target, "://") {
		return outgoing{}, fmt.Errorf("the command names an address that is no target of this listener")
	} else {
		path, query, _ := strings.Cut(target, "?")
		target = to.requestTarget(path, query)
	}
	return write(c.Method, *to, target, fields, a.endpoint.Headers, nil, body)
}

// insist repeats a call that failed for want of a connection or of the server, a few times.
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

// hopeless reports whether a call will be refused however often it is made.
func hopeless(err error) bool {
	refused, ok := err.(*client.Error)
	return ok && refused.Code != "" && refused.Status < 500 && refused.Status != http.StatusTooManyRequests
}
