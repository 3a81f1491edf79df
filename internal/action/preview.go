package action

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/delivery"
	"hookglass/internal/jsondoc"
	"hookglass/internal/outbound"
	"hookglass/internal/redact"
	"hookglass/internal/store"
)

// maxShown bounds what is shown of one step, in bytes of JSON. Of a request that is larger, the body is cut to maxPart
// bytes and each header to a hundredth of that, so that what is shown is still a request.
const (
	maxShown = 64 << 10
	maxPart  = 24 << 10
)

// PreviewResult is what an action would do with an event. Secrets in it are placeholders.
type PreviewResult struct {
	EventID    hookglass.EventID
	ReceivedAt time.Time
	Trigger    hookglass.TriggerResult
	Steps      []PreviewedStep
	Sensitive  []SensitiveField
}

// PreviewedStep is what one step would do: the JSON value that a transform puts out, or what any other step renders.
type PreviewedStep struct {
	hookglass.Step
	Status    hookglass.StepStatus
	Reason    string
	Output    []byte // JSON; nil: none
	Rendered  []byte // JSON; nil: none
	Truncated bool
	Failure   *hookglass.Failure

	shown jsondoc.Value
}

// SensitiveField is a place in the result of a step that is redacted.
type SensitiveField struct{ Step, Path string }

// rehearsalTimes is how much memory an event takes while steps are rendered on it, in multiples of its size: as
// received, and as decoded and parsed.
const rehearsalTimes = 4

// Preview renders an action's steps on an event. Nothing is sent, and nothing is stored. It answers not_found,
// plan_required and, where there is no room for a large event, unavailable.
func (s *Service) Preview(ctx context.Context, who hookglass.Principal, ref, actionID, eventID string) (p PreviewResult, err error) {
	if err := who.MayManage(); err != nil {
		return p, err
	}
	var a hookglass.Action
	var pl plan
	ctx, done := context.WithCancel(ctx)
	defer done()
	event, err := s.Hold(ctx, who, rehearsalTimes, func(v *store.View) (_ *hookglass.Event, err error) {
		if a, err = v.Action(ref, actionID); err != nil {
			return nil, err
		}
		if pl.endpoint, pl.rights, err = permitted(v, ref); err != nil {
			return nil, err
		}
		return v.Event(ref, eventID)
	})
	if err != nil {
		return p, err
	}
	program, err := compile(a)
	if err != nil {
		return p, err
	}
	return s.rehearse(pl.scene(event), program), nil
}

// rehearse is a run whose steps render and do nothing.
func (s *Service) rehearse(sc *scene, program *program) PreviewResult {
	doc := sc.base.Fresh()
	p := PreviewResult{EventID: sc.event.ID, ReceivedAt: sc.event.ReceivedAt, Trigger: program.trigger.Evaluate(doc)}
	secret, masks := standIns(program.secrets)
	redactor := redact.New(append(masks, sc.captured()...)...)
	for i := range p.Trigger.Conditions {
		c := &p.Trigger.Conditions[i]
		c.Actual = redactor.Text(c.Actual)
	}
	halted := false
	for i := range program.steps {
		st := &program.steps[i]
		shown := PreviewedStep{Step: st.Step, Status: hookglass.StepStopped}
		var output *jsondoc.Value
		if !halted {
			var paths []string
			doc.missed = false
			output, paths = s.rehearseStep(sc, st, Values{Context: doc, Secret: secret}, redactor, &shown)
			switch {
			case doc.missed: // the result tells nothing: the step read what is known only once a request is sent
				shown, paths = PreviewedStep{Step: st.Step, Status: hookglass.StepSkipped, Reason: hookglass.ReasonNotSent}, nil
				doc.setUnsent(st.ReferenceKey, true)
			case st.Type == hookglass.StepRequest && shown.Status == hookglass.StepCompleted:
				doc.setUnsent(st.ReferenceKey, false)
			}
			for _, path := range paths {
				p.Sensitive = append(p.Sensitive, SensitiveField{st.ReferenceKey, path})
			}
			halted = shown.Status == hookglass.StepFailed && st.policy == hookglass.FailureStop
		}
		doc.SetStep(st.ReferenceKey, shown.Status, output)
		p.Steps = append(p.Steps, shown)
	}
	return p
}

// standIns makes stand-ins for secrets: rendering inserts random words that nobody can have written, and a redactor of
// the masks shows each as {{secrets.NAME}}. So text of the event that looks like a placeholder is not taken for one.
func standIns(names []string) (secret func(name string) (string, bool), masks []redact.Mask) {
	words := make(map[string]string, len(names))
	for _, name := range names {
		words[name] = strings.ToLower(rand.Text())
		masks = append(masks, redact.Mask{Value: words[name], Shown: placeholder(name)})
	}
	return func(name string) (string, bool) {
		word, ok := words[name]
		return word, ok
	}, masks
}

// rehearseStep renders one step. It returns its output as later steps see it (nil: none), and the places that are
// redacted in what is shown.
func (s *Service) rehearseStep(sc *scene, st *step, in Values, redactor *redact.Redactor, shown *PreviewedStep) (output *jsondoc.Value, sensitive []string) {
	fail := func(f *hookglass.Failure) {
		shown.Status, shown.Failure = hookglass.StepFailed, &hookglass.Failure{Code: f.Code, Message: redactor.Text(f.Message)}
	}
	matched, failure := st.guard.Evaluate(in.Context)
	switch {
	case failure != nil:
		fail(failure)
		return nil, nil
	case !matched:
		shown.Status, shown.Reason = hookglass.StepSkipped, hookglass.ReasonConditionFalse
		return nil, nil
	}
	if err := mayRun(sc.rights, st.Step); err != nil {
		fail(failedBy(err).failure)
		return nil, nil
	}
	shown.Status = hookglass.StepCompleted
	r := s.renderStep(sc, st, in, redactor)
	if r.failure != nil {
		fail(r.failure)
		return nil, nil
	}
	if f := s.refused(r.target, r.targetShown); f != nil {
		fail(f) // what would have been sent is shown all the same
	}
	shown.shown, shown.Truncated = r.shown, r.truncated
	text := r.shown.Bytes()
	if len(text) > maxShown {
		part, _ := cut(string(text), maxShown)
		text, shown.Truncated = jsondoc.Text(part).Bytes(), true
	}
	if st.Type == hookglass.StepTransform {
		shown.Output = text
	} else {
		shown.Rendered = text
	}
	return r.output, r.sensitive
}

// renderedStep is what a step would do.
type renderedStep struct {
	shown               jsondoc.Value
	truncated           bool
	output              *jsondoc.Value // as later steps see it; nil: it has none
	target, targetShown string         // "": it sends nothing
	sensitive           []string       // the places that are redacted in what is shown
	failure             *hookglass.Failure
}

func (s *Service) renderStep(sc *scene, st *step, in Values, redactor *redact.Redactor) (r renderedStep) {
	switch st.Type {
	case hookglass.StepForward:
		r.shown, r.target, r.sensitive, r.failure = s.rehearseForward(sc, st, redactor)
		r.targetShown = r.target // no secret can be in it
	case hookglass.StepNotify:
		text, err := st.message.RenderMessage(sc.event, &sc.endpoint)
		if err != nil {
			r.failure = &hookglass.Failure{Code: hookglass.FailureTemplate, Message: sentence(err)}
			break
		}
		r.shown = jsondoc.Members(named("channel", jsondoc.Text(st.notify.Channel)), named("message", jsondoc.Text(text)))
	case hookglass.StepTag:
		r.shown = jsondoc.Members(named("tag", jsondoc.Text(st.tag.Tag)))
	case hookglass.StepIgnore:
		r.shown = jsondoc.Members(named("reason", jsondoc.Text(st.ignore.Reason)))
	case hookglass.StepTransform:
		var made jsondoc.Value
		if made, r.failure = st.transform.Run(in); r.failure == nil {
			r.output = &made
			r.shown, r.sensitive = redactor.Value(made)
		}
	case hookglass.StepRequest:
		if r.shown, r.target, r.sensitive, r.failure = rehearseRequest(st, in, redactor, 100*MaxRendered); r.failure == nil && r.shown.Size() > maxShown {
			r.shown, r.target, r.sensitive, r.failure = rehearseRequest(st, in, redactor, maxPart)
			r.truncated = true
		}
		r.targetShown = redactor.Secrets(r.target)
	}
	return r
}

// refused returns why sending to a target would be refused, judged by its spelling, without the network. It returns nil
// when it would not be, when there is no target, and when its host contains secrets, whose values a preview does not
// know.
func (s *Service) refused(target, shown string) *hookglass.Failure {
	_, authority, found := strings.Cut(shown, "://")
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority = authority[:end]
	}
	if target == "" || target != shown && (!found || strings.Contains(authority, "{{")) {
		return nil
	}
	refusal, found := errors.AsType[*hookglass.Error](s.Client.Check("url", target))
	if !found {
		return nil
	}
	f := &hookglass.Failure{Code: string(outbound.CodeInvalidRequest), Message: refusal.Message}
	if refusal.Code == hookglass.CodeTargetNotAllowed {
		f.Code = string(outbound.CodeTargetNotAllowed)
	}
	return f
}

func (s *Service) rehearseForward(sc *scene, st *step, redactor *redact.Redactor) (v jsondoc.Value, target string, sensitive []string, failure *hookglass.Failure) {
	if target, failure = st.forwardURL(sc.event); failure != nil {
		return v, "", nil, failure
	}
	r, failure := delivery.RenderForward(sc.event, target, s.Proxied)
	if failure != nil {
		return v, "", nil, failure
	}
	url := redactor.Text(r.URL)
	if url != r.URL {
		sensitive = append(sensitive, "/url")
	}
	var headers []jsondoc.Value
	for i, h := range redactor.Headers(r.Headers) {
		if h.Name != r.Headers[i].Name {
			sensitive = append(sensitive, fmt.Sprintf("/header_list/%d/0", i))
		}
		if h.Value != r.Headers[i].Value {
			sensitive = append(sensitive, fmt.Sprintf("/header_list/%d/1", i))
		}
		headers = append(headers, jsondoc.List(asShown(h.Name), asShown(h.Value)))
	}
	return jsondoc.Members(named("method", jsondoc.Text(r.Method)), named("url", asShown(url)), named("header_list", jsondoc.List(headers...)),
		named("body_bytes", jsondoc.Int(int64(len(r.Body)))), named("timeout_seconds", jsondoc.Int(int64(st.forward.TimeoutSeconds))),
		named("retry_count", jsondoc.Int(int64(st.forward.RetryCount)))), r.URL, sensitive, nil
}

// rehearseRequest renders a request. A header that holds a credential shows the names of its secrets when nothing else
// was rendered into it. most bounds what is shown of the body, and of all headers together.
func rehearseRequest(st *step, in Values, redactor *redact.Redactor, most int) (v jsondoc.Value, target string, sensitive []string, failure *hookglass.Failure) {
	q, err := st.render(in)
	if err != nil {
		return v, "", nil, &hookglass.Failure{Code: hookglass.FailureTemplate, Message: sentence(err)}
	}
	show := func(path string, text, shown string, most int) jsondoc.Value {
		if shown != text {
			sensitive = append(sensitive, path)
		}
		shown, _ = cut(shown, most)
		return jsondoc.Text(shown)
	}
	url := redactor.Text(q.url.Text)
	members := []jsondoc.Member{named("method", jsondoc.Text(q.method)), named("url", show("/url", q.url.Text, url, maxShown))}
	var headers []jsondoc.Member
	for i, h := range q.headers {
		name := st.request.Headers[i].Name
		shown := redactor.Headers(hookglass.Headers{{Name: name, Value: h.Text}})[0].Value
		if len(h.Spans) > 0 && len(h.Spans) == len(st.headers[i].parts) {
			shown = h.Masked()
		}
		headers = append(headers, named(name, show(jsondoc.PointerTo("headers", name).String(), h.Text, shown, most/100)))
	}
	members = append(members, named("headers", jsondoc.Members(headers...)), named("body", show("/body", q.body.Text, redactor.Body(q.body.Text), most)),
		named("timeout_seconds", jsondoc.Int(int64(st.request.TimeoutSeconds))))
	return jsondoc.Members(members...), q.url.Text, sensitive, nil
}
