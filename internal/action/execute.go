package action

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/delivery"
	"hookglass/internal/jsondoc"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

// execute runs a step by its type.
func (r *run) execute(ctx context.Context, st *step) outcome {
	switch st.Type {
	case hookglass.StepForward:
		return r.forward(ctx, st)
	case hookglass.StepNotify:
		return r.notify(ctx, st)
	case hookglass.StepTag:
		return r.tag(st)
	case hookglass.StepIgnore:
		return r.ignore(st)
	case hookglass.StepTransform:
		return r.transform(st)
	case hookglass.StepRequest:
		return r.request(ctx, st)
	}
	return failed(hookglass.FailureInternal, "The step is of a type that is not known.")
}

// tenant is the key under which the requests of an account are bounded together.
func (sc *scene) tenant() string { return fmt.Sprintf("actions of account %d", sc.endpoint.AccountID) }

// turn waits for the turn of a request. The requests of an account are bounded together, and an endpoint whose targets
// do not answer leaves turns to the others. ok is false when no turn came in time, or the process stops.
func (r *run) turn(ctx context.Context) (turn *outbound.Turn, ok bool) {
	r.s.saver.away(func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		var err error
		turn, err = r.s.Client.Turn(ctx, r.tenant(), r.endpoint.Num)
		ok = err == nil
	})
	return turn, ok
}

// deadline is when the run has taken as long as it may.
func (r *run) deadline() time.Time { return r.held.StartedAt.Add(r.s.deadline) }

// left cuts a timeout to what remains until the run's deadline, but not below a second.
func (r *run) left(most time.Duration) time.Duration {
	return max(time.Second, min(most, r.deadline().Sub(r.s.db.Now())))
}

// tooLong is the failure of a step that the deadline of its run ended.
func tooLong() *hookglass.Failure {
	return &hookglass.Failure{Code: hookglass.FailureDeadline, Message: "The action took longer than 10 minutes."}
}

// blame returns the failure of a step whose request failed. Where the request had less than its step's timeout, and no
// answer came in time, the run's deadline is why.
func blame(f *hookglass.Failure, timeout, most time.Duration) *hookglass.Failure {
	if f.Code == string(outbound.CodeTimeout) && timeout < most {
		return tooLong()
	}
	return f
}

// tag marks the event. A tag that it has already changes nothing.
func (r *run) tag(st *step) outcome {
	tag := st.tag.Tag
	if at, found := slices.BinarySearch(r.event.Tags, tag); !found {
		if len(r.event.Tags) >= hookglass.MaxEventTags {
			return failed(string(hookglass.CodeValidationFailed), fmt.Sprintf("The event has %d tags already.", hookglass.MaxEventTags))
		}
		r.event.Tags = slices.Insert(slices.Clone(r.event.Tags), at, tag) // what the conditions of later actions see
	}
	r.tags = append(r.tags, tag)
	return completed(sum(named("tag", jsondoc.Text(tag))))
}

func (r *run) ignore(st *step) outcome {
	reason := st.ignore.Reason
	r.event.Ignored = reason
	r.ignored = reason
	return completed(sum(named("reason", jsondoc.Text(reason))))
}

// notify queues a message in the transaction that stores the run, so exactly once. Whether the channel then delivers it
// does not affect the step.
func (r *run) notify(ctx context.Context, st *step) outcome {
	var channel hookglass.Channel
	var err error
	r.s.saver.away(func() {
		err = r.s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
			channel, err = v.ChannelIn(r.endpoint.WorkspaceID, st.notify.Channel)
			return err
		})
	})
	switch {
	case hookglass.Is(err, hookglass.CodeNotFound):
		return failed(hookglass.FailureChannelMissing, "The workspace has no such notification channel.")
	case err != nil:
		return outcome{err: err}
	case channel.Disabled():
		return failed(hookglass.FailureNotify, "The notification channel is disabled.")
	}
	text, err := st.message.RenderMessage(r.event, &r.endpoint)
	if err != nil {
		return failed(hookglass.FailureTemplate, sentence(err))
	}
	key := r.held.ID + "/" + st.ReferenceKey
	r.afterwards(func(tx *store.Tx) error {
		return tx.Notify(channel.Num, key, hookglass.Message{
			ID: hookglass.NewSortableID(hookglass.PrefixMessage, tx.Now), Type: hookglass.MessageAction, At: tx.Now, EndpointID: r.endpoint.ID, EventID: r.event.ID,
			Title: r.endpoint.Name, Text: text,
			Data: map[string]any{"action_id": r.held.ActionID, "run_id": r.held.ID, "step": st.ReferenceKey},
		})
	})
	return completed(sum(named("channel_id", jsondoc.Text(channel.ID)), named("characters", jsondoc.Int(int64(utf8.RuneCountInString(text))))))
}

func (r *run) transform(st *step) outcome {
	r.use(st)
	output, failure := st.transform.Run(r.inputs())
	if failure != nil {
		return r.failedWith(failure)
	}
	o := completed(sum(named("output_type", jsondoc.Text(kindOf(output))), named("output_bytes", jsondoc.Int(int64(output.Size())))))
	o.output = &output
	return o
}

// failedWith returns the outcome of a failure, with secrets redacted from its message.
func (r *run) failedWith(f *hookglass.Failure) outcome {
	return failed(f.Code, r.redactor().Text(f.Message))
}

// kindOf names the type of a JSON value.
func kindOf(v jsondoc.Value) string {
	switch v.Kind() {
	case jsondoc.Object:
		return "object"
	case jsondoc.Array:
		return "array"
	case jsondoc.String:
		return "string"
	case jsondoc.Number:
		return "number"
	case jsondoc.True, jsondoc.False:
		return "boolean"
	}
	return "null"
}

// useEvery is the precision to which the last use of a secret is stored.
const useEvery = time.Minute

// use notes that the secrets of a step were used.
func (r *run) use(st *step) {
	now := r.s.db.Now()
	for _, name := range st.secrets {
		if secret, ok := r.secrets[name]; ok && now.Sub(secret.LastUsedAt) > useEvery {
			secret.LastUsedAt = now
			r.secrets[name] = secret
			r.afterwards(func(tx *store.Tx) error { return tx.UseActionSecret(secret.Num, now) })
		}
	}
}

// forwardURL is where a forward step sends its event. It fails where the event's path would lead out of the target's.
func (st *step) forwardURL(e *hookglass.Event) (string, *hookglass.Failure) {
	if e.Type == hookglass.EventEmail {
		return st.forward.URL, nil // a mail's path is an address
	}
	path, query := "", ""
	if st.forward.AppendPath {
		path = e.Path
	}
	for segment := range strings.SplitSeq(path, "/") {
		if dotSegment(segment) {
			return "", &hookglass.Failure{Code: hookglass.FailureTemplate, Message: "The path of the request holds a segment . or .., which would lead elsewhere."}
		}
	}
	if st.forward.AppendQuery {
		query = e.RawQuery
	}
	return delivery.AppendPath(st.forward.URL, path, query), nil
}

// forward sends the event on, at least once. An attempt that is to be made again waits in the table.
func (r *run) forward(ctx context.Context, st *step) outcome {
	target, failure := st.forwardURL(r.event)
	if failure != nil {
		return failed(failure.Code, failure.Message)
	}
	if err := r.s.settled(ctx, r.scene, nil); err != nil {
		return outcome{err: err}
	}
	turn, ok := r.turn(ctx)
	if !ok {
		return outcome{wait: again}
	}
	defer turn.End()
	most := time.Duration(st.forward.TimeoutSeconds) * time.Second
	timeout := r.left(most)
	if r.stored {
		if err := r.save(ctx, timeout+holdSlack); err != nil {
			return outcome{err: err}
		}
	}
	forwarding := delivery.Forwarding{
		Event: r.event, URL: target, Proxied: r.s.Proxied, Timeout: timeout, Key: r.tenant(), Turn: turn,
		Redact: func(answer string) string { return r.echoes().Body(answer) }, Now: r.s.db.Now,
	}
	var a hookglass.ForwardAttempt
	var retryAfter time.Duration
	var made bool
	r.s.saver.away(func() { a, retryAfter, made = delivery.ForwardOnce(ctx, r.s.Client, forwarding) })
	if !made {
		return outcome{wait: again}
	}
	r.tries = append(r.tries, a)
	state, wait := delivery.JudgeForward(a, len(r.tries), st.forward.RetryCount, retryAfter, r.s.Delay)
	retry := state == hookglass.ForwardPending && r.s.db.Now().Add(wait).Before(r.deadline())
	if state == hookglass.ForwardPending && !retry {
		state = hookglass.ForwardFailed
	}
	counted := delivery.OutcomeOf(hookglass.OutcomeStep, r.endpoint.Num, r.event.Seq, r.tries, state)
	r.afterwards(func(tx *store.Tx) error { return tx.AddOutcomes(counted) })
	if retry {
		return outcome{wait: max(wait, time.Millisecond)}
	}
	switch {
	case state == hookglass.ForwardDelivered:
		return completed(r.forwardSummary(st))
	case a.Failure == nil:
		return r.givenUp(st, failed(hookglass.FailureHTTPStatus, fmt.Sprintf("The target answered %d.", a.StatusCode)))
	}
	return r.givenUp(st, outcome{status: hookglass.StepFailed, failure: blame(a.Failure, timeout, most)})
}

// givenUp completes the outcome of a step that failed: if it is a forward step with attempts behind it, also one that
// may not be tried again, its summary tells of them, and a line of the feed says that it failed.
func (r *run) givenUp(st *step, o outcome) outcome {
	if len(r.tries) == 0 {
		return o
	}
	o.summary, o.truncated = r.forwardSummary(st).bytes()
	line := r.forwardFailed(st, r.tries[len(r.tries)-1])
	r.afterwards(func(tx *store.Tx) error { return tx.AddActivity(line) })
	return o
}

// forwardFailed is the line of the feed about a step whose last attempt failed.
func (r *run) forwardFailed(st *step, last hookglass.ForwardAttempt) hookglass.Activity {
	data := map[string]any{
		"action_id": r.held.ActionID, "run_id": r.held.ID, "step": st.ReferenceKey, "url_host": hostOf(st.forward.URL),
		"status_code": nil, "error": nil, "attempts": len(r.tries),
	}
	if last.Failure != nil {
		data["error"] = map[string]any{"code": last.Failure.Code, "message": last.Failure.Message}
	} else {
		data["status_code"] = last.StatusCode
	}
	return hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: last.At, EndpointID: r.endpoint.ID, EventID: r.event.ID, Data: data}
}

// forwardSummary tells of each attempt, and the beginning of the last answer.
func (r *run) forwardSummary(st *step) summary {
	var attempts []jsondoc.Value
	for _, a := range r.tries {
		members := []jsondoc.Member{
			named("at", jsondoc.Text(a.At.UTC().Format(hookglass.TimeLayout))), named("status_code", jsondoc.Value{}), named("error", jsondoc.Value{}),
			named("duration_ms", jsondoc.Int(a.Duration.Milliseconds())),
		}
		if a.Failure != nil {
			members[2].Value = jsondoc.Members(named("code", jsondoc.Text(a.Failure.Code)), named("message", jsondoc.Text(a.Failure.Message)))
		} else {
			members[1].Value = jsondoc.Int(int64(a.StatusCode))
		}
		attempts = append(attempts, jsondoc.Members(members...))
	}
	s := sum(named("url_host", jsondoc.Text(hostOf(st.forward.URL))), named("attempts", jsondoc.List(attempts...)))
	if last := r.tries[len(r.tries)-1]; last.Failure == nil {
		s.members = append(s.members, named("status_code", jsondoc.Int(int64(last.StatusCode))))
		s.name, s.text, s.cut = "response_body", last.Body, last.Truncated
	}
	return s
}

func hostOf(raw string) string {
	if u, err := url.Parse(raw); err == nil {
		return u.Host
	}
	return ""
}

// rendered is an http_request with its templates rendered.
type rendered struct {
	method  string
	url     Rendered
	headers []Rendered // in the order of the step's
	body    Rendered
}

// render renders the templates of a request. Nothing is sent when it fails.
func (st *step) render(v Values) (q rendered, err error) {
	q.method = st.request.Method
	if q.url, err = st.url.Render(v); err != nil {
		return q, fmt.Errorf("url: %w", err)
	}
	for i, t := range st.headers {
		h, err := t.Render(v)
		if err != nil {
			return q, fmt.Errorf("header %s: %w", st.request.Headers[i].Name, err)
		}
		q.headers = append(q.headers, h)
	}
	if q.body, err = st.body.Render(v); err != nil {
		return q, fmt.Errorf("body: %w", err)
	}
	return q, nil
}

// outgoing is the request as it is sent.
func (st *step) outgoing(q rendered, e *hookglass.Event) (delivery.Request, error) {
	var out delivery.Request
	out.Method, out.URL, out.Body = q.method, q.url.Text, []byte(q.body.Text)
	for i, h := range q.headers {
		out.Headers = append(out.Headers, hookglass.Header{Name: st.request.Headers[i].Name, Value: h.Text})
	}
	if e.Payload != nil { // so that a loop of requests is detected like a loop of forwards
		for _, hops := range e.Headers.Values(outbound.HopHeader) {
			out.Headers = append(out.Headers, hookglass.Header{Name: outbound.HopHeader, Value: hops})
		}
	}
	var err error
	out.Headers, err = outbound.NextHop(out.Headers)
	return out, err
}

// request sends a request, at most once: the marker that it may have been sent is on disk before it is (spec, Actions
// rule 4).
func (r *run) request(ctx context.Context, st *step) outcome {
	if r.sent {
		return failed(hookglass.FailureOutcomeUnknown, "The process ended while the request may have been under way; it is not sent again.")
	}
	r.use(st)
	q, err := st.render(r.inputs())
	if err != nil {
		return r.failedWith(&hookglass.Failure{Code: hookglass.FailureTemplate, Message: sentence(err)})
	}
	message, err := st.outgoing(q, r.event)
	if err != nil {
		return failed(string(outbound.CodeLoopDetected), "The event came here by requests of actions too often already, so this looks like a loop.")
	}
	if err := r.s.settled(ctx, r.scene, nil); err != nil {
		return outcome{err: err}
	}
	var ok bool
	if message.Turn, ok = r.turn(ctx); !ok {
		return outcome{wait: again}
	}
	defer message.Turn.End()
	most := time.Duration(st.request.TimeoutSeconds) * time.Second
	timeout := r.left(most)
	r.sent = true
	if err := r.save(ctx, timeout+holdSlack); err != nil {
		return outcome{err: err}
	}
	var got delivery.Outcome
	r.s.saver.away(func() { got = delivery.Send(ctx, r.s.Client, r.tenant(), timeout, message) })
	host := r.echoes().Text(hostOf(q.url.Text)) // it may be made of what was captured
	s := sum(named("method", jsondoc.Text(q.method)), named("url_host", jsondoc.Text(host)), named("request_bytes", jsondoc.Int(int64(len(q.body.Text)))),
		named("duration_ms", jsondoc.Int(got.Duration.Milliseconds())))
	if f := got.Failure; f != nil {
		if got.Withheld() {
			r.sent = false
			return outcome{wait: again}
		}
		o := completed(s)
		o.status, o.failure = hookglass.StepFailed, blame(&hookglass.Failure{Code: f.Code, Message: r.redactor().Text(f.Message)}, timeout, most)
		return o
	}
	answer := got.Response
	s.members = append(s.members, named("status_code", jsondoc.Int(int64(answer.Status))), named("response_bytes", jsondoc.Int(int64(len(answer.Body)))),
		named("response_truncated", jsondoc.Bool(answer.Truncated)))
	o, output := completed(s), answered(answer)
	o.output = &output
	if answer.Status < 200 || answer.Status > 299 {
		o.status, o.failure = hookglass.StepFailed, &hookglass.Failure{Code: hookglass.FailureHTTPStatus, Message: fmt.Sprintf("The target answered %d.", answer.Status)}
	}
	return o
}

// answered is the output of a request: what later steps see (spec: decisions, section 13, "Forward").
func answered(res *hookglass.TargetResponse) jsondoc.Value {
	text, truncated := decoded(res.Body, res.Headers), res.Truncated
	if len(text) > jsondoc.MaxBytes {
		text, truncated = text[:jsondoc.MaxBytes], true
	}
	body := jsondoc.Text(string(text))
	if len(text) == 0 {
		body = jsondoc.Value{}
	} else if v, err := jsondoc.Parse(text, jsondoc.Wide()); err == nil && looksJSON(res.Headers.Get("Content-Type"), text) {
		body = v
	}
	return jsondoc.Members(named("status_code", jsondoc.Int(int64(res.Status))), named("headers", headerObject(res.Headers)),
		named("body", body), named("truncated", jsondoc.Bool(truncated)))
}
