package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/jsondoc"
	"hookglass/internal/redact"
	"hookglass/internal/store"
)

// scene is an event with everything its runs need.
type scene struct {
	endpoint hookglass.Endpoint
	rights   hookglass.Entitlements
	actions  []*program       // enabled, by position
	event    *hookglass.Event // with its payload
	base     *Context         // shared by its runs, one after another
	secrets  *redact.Redactor // of all secrets of the workspace
	had      []string         // the event's tags when it was read
	ended    []*store.RunSave // runs that have ended and are not stored yet
}

// run is one run under way. It serves one goroutine.
//
// A run is stored when it has ended. Before that it is stored only ahead of a request that must not be sent twice, and
// when it waits or the process stops; then its checkpoint says how to resume. Tags, the ignored mark and messages are
// written in the same transaction as the run, so a run that is repeated after a crash applies them once.
type run struct {
	*scene
	s       *Service
	held    store.HeldRun
	stored  bool // there is a row
	policy  hookglass.FailurePolicy
	steps   []step
	gone    *hookglass.Failure // why it begins no step and tries none again: the action was deleted or disabled; nil: it was not
	next    int                // the step at work
	sent    bool
	tries   []hookglass.ForwardAttempt // of the forward step at work
	done    []outcomeOf                // of the steps before it
	doc     *Context
	secrets map[string]hookglass.ActionSecret
	values  map[string]string // of the secrets
	given   []redact.Mask     // secrets from before the run waited: they may have been replaced since
	masks   *redact.Redactor
	answers *redact.Redactor
	effects []func(*store.Tx) error
	tags    []string // to be put on the event
	ignored string   // the reason to ignore the event; empty: none
}

// outcomeOf is the outcome of a step as later steps see it.
type outcomeOf struct {
	Key    string
	Status hookglass.StepStatus
	Output json.RawMessage `json:",omitempty"`
}

// checkpoint is what is needed to resume a run. It is sealed, because outputs are not redacted.
type checkpoint struct {
	Policy hookglass.FailurePolicy
	Steps  []hookglass.Step
	Next   int
	Sent   bool
	Tries  []hookglass.ForwardAttempt `json:",omitempty"`
	Done   []outcomeOf
	Given  []redact.Mask `json:",omitempty"` // secrets already sent: targets may still answer with them
}

func checkpointOf(runID string) string { return "action_runs:checkpoint:" + runID }

// errElsewhere says that another worker has the run, or that the run has ended.
var errElsewhere = errors.New("the run is somebody else's")

const (
	// holdSlack is how much longer than its step's timeout a run is held.
	holdSlack = 25 * time.Second
	// patience is how long a step waits for its turn to send. It is shorter than holdSlack, so the run is still held
	// then. The wait does not count against the step's timeout.
	patience = 15 * time.Second
	// again is how soon a step is retried that got no turn.
	again = time.Second
)

// outcome is what became of a step.
type outcome struct {
	status    hookglass.StepStatus
	reason    string
	output    *jsondoc.Value // nil: it made none
	summary   []byte         // redacted and bounded
	truncated bool
	failure   *hookglass.Failure
	wait      time.Duration // above 0: the step has not ended; try it again after that
	err       error         // of the storage, or errElsewhere: the run cannot go on now
}

func completed(summary summary) outcome {
	o := outcome{status: hookglass.StepCompleted}
	o.summary, o.truncated = summary.bytes()
	return o
}

func failed(code, message string) outcome {
	return outcome{status: hookglass.StepFailed, failure: &hookglass.Failure{Code: code, Message: message}}
}

func failedBy(err error) outcome {
	if coded, ok := errors.AsType[*hookglass.Error](err); ok {
		return failed(string(coded.Code), coded.Message)
	}
	return failed(hookglass.FailureInternal, "The step failed inside the service.")
}

// start makes a run of a program on an event, without storing it. doc is the context in which its trigger was
// evaluated: both share one time budget for patterns.
func (s *Service) start(sc *scene, p *program, doc *Context, trigger hookglass.TriggerResult) *run {
	now := s.db.Now()
	r := &run{scene: sc, s: s, policy: p.FailurePolicy, steps: p.steps, doc: doc}
	r.held.ActionRun = hookglass.ActionRun{
		ID: hookglass.NewSortableID(hookglass.PrefixActionRun, now), EndpointNum: sc.endpoint.Num, EndpointID: sc.endpoint.ID, ActionNum: p.Num, ActionID: p.ID,
		EventSeq: sc.event.Seq, EventID: sc.event.ID, Status: hookglass.ActionRunRunning, StartedAt: now,
	}
	r.held.Trigger = trigger
	return r
}

// resume rebuilds a run from what is stored of it.
func (s *Service) resume(sc *scene, h store.HeldRun) (*run, error) {
	plain, err := s.Sealer.Open(h.Checkpoint, checkpointOf(h.ID))
	if err != nil {
		return nil, fmt.Errorf("the checkpoint of %s: %w", h.ID, err)
	}
	var c checkpoint
	if err := json.Unmarshal(plain, &c); err != nil {
		return nil, fmt.Errorf("the checkpoint of %s cannot be read", h.ID) // without the cause, which may quote what was sealed
	}
	r := &run{scene: sc, s: s, held: h, stored: true, policy: c.Policy, next: c.Next, sent: c.Sent, tries: c.Tries, done: c.Done, given: c.Given, doc: sc.base.Fresh()}
	if r.steps, err = readSteps(c.Steps, c.Policy); err != nil {
		return nil, err
	}
	if r.next > len(r.steps) {
		return nil, fmt.Errorf("the checkpoint of %s is of another action", h.ID)
	}
	for _, d := range c.Done {
		var output *jsondoc.Value
		if d.Output != nil {
			value, err := jsondoc.Parse(d.Output, jsondoc.Bounds{Bytes: 16 << 20, Depth: 2 * jsondoc.MaxDepth})
			if err != nil {
				return nil, fmt.Errorf("the checkpoint of %s cannot be read", h.ID)
			}
			output = &value
		}
		r.doc.SetStep(d.Key, d.Status, output)
	}
	return r, nil
}

// loadSecrets reads the secrets of the given names.
func (r *run) loadSecrets(v *store.View, names []string) error {
	found, err := v.NamedActionSecrets(r.endpoint.WorkspaceID, names)
	if err != nil {
		return err
	}
	r.secrets, r.values = make(map[string]hookglass.ActionSecret), make(map[string]string)
	for _, secret := range found {
		plain, err := r.s.Sealer.Open(secret.Sealed, valueOf(secret.ID))
		if err != nil {
			r.s.Log.Error("an action secret cannot be opened", "secret", secret.ID, "error", err)
			continue
		}
		r.secrets[secret.Name], r.values[secret.Name] = secret, string(plain)
	}
	return nil
}

// redactor redacts the secrets of the workspace, and the credentials that came with the event.
func (r *run) redactor() *redact.Redactor {
	if r.masks == nil {
		r.masks = r.scene.secrets.With(append(r.named(), credentials(r.event)...)...)
	}
	return r.masks
}

// echoes returns the redactor for the answers of targets. A target may echo what it was sent, so it also knows the
// values under sensitive names in the event.
func (r *run) echoes() *redact.Redactor {
	if r.answers == nil {
		r.answers = r.scene.secrets.With(append(r.named(), r.captured()...)...)
	}
	return r.answers
}

// named returns the secrets that the steps name, with their values now and from before the run waited.
func (r *run) named() []redact.Mask {
	masks := slices.Clone(r.given)
	for name, value := range r.values {
		if mask := (redact.Mask{Value: value, Shown: placeholder(name)}); !slices.Contains(masks, mask) {
			masks = append(masks, mask)
		}
	}
	return masks
}

// captured returns the values of the event that must not be shown: its credentials, and values under sensitive names.
func (sc *scene) captured() []redact.Mask {
	masks := append(credentials(sc.event), redact.ValuesIn(sc.base.event.line())...)
	if body, err := sc.base.event.body(); err == nil {
		masks = append(masks, redact.ValuesIn(body)...)
	}
	return masks
}

// credentials returns the values of an event's headers that hold credentials.
func credentials(e *hookglass.Event) []redact.Mask {
	if e.Payload == nil {
		return nil
	}
	return redact.CredentialsOf(e.Headers)
}

func (r *run) secret(name string) (string, bool) {
	value, ok := r.values[name]
	return value, ok
}

func (r *run) inputs() Values { return Values{Context: r.doc, Secret: r.secret} }

// proceed executes steps until the run has ended or must wait; then it returns for how long.
func (r *run) proceed(ctx context.Context) (wait time.Duration, err error) {
	halted := false
	for r.next < len(r.steps) && !halted {
		st := &r.steps[r.next]
		if r.s.stopping.Load() && st.sends() {
			return again, r.save(ctx, again)
		}
		result := r.begin(st)
		out := r.try(ctx, st)
		switch {
		case out.err != nil:
			return 0, out.err
		case out.wait > 0:
			return out.wait, r.save(ctx, out.wait)
		}
		halted = r.settle(st, result, out)
		r.next++
		r.sent, r.tries = false, nil
	}
	r.finish()
	return 0, nil
}

// begin records that a step is running, unless that was recorded before the run waited.
func (r *run) begin(st *step) *hookglass.StepResult {
	if len(r.held.Steps) <= r.next {
		r.held.Steps = append(r.held.Steps, hookglass.StepResult{
			ReferenceKey: st.ReferenceKey, Type: st.Type, Name: st.Name, Status: hookglass.StepRunning, StartedAt: r.s.db.Now(),
		})
	}
	return &r.held.Steps[r.next]
}

// settle records the outcome of a step, and reports whether the remaining steps are stopped.
func (r *run) settle(st *step, result *hookglass.StepResult, out outcome) (halted bool) {
	result.Status, result.Reason, result.Summary, result.Truncated, result.Failure = out.status, out.reason, out.summary, out.truncated, out.failure
	result.Duration = max(0, r.s.db.Now().Sub(result.StartedAt))
	r.doc.SetStep(st.ReferenceKey, out.status, out.output)
	done := outcomeOf{Key: st.ReferenceKey, Status: out.status}
	if out.output != nil {
		if keys, all := needs(r.steps[r.next+1:]); all || slices.Contains(keys, st.ReferenceKey) {
			done.Output = out.output.Bytes()
		}
	}
	r.done = append(r.done, done)
	if out.status != hookglass.StepFailed {
		return false
	}
	return st.policy == hookglass.FailureStop || out.failure.Code == hookglass.FailureDeadline || out.failure == r.gone
}

// try runs a step; a panic becomes its failure.
func (r *run) try(ctx context.Context, st *step) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			r.s.Log.Error("panic in a step of an action", "run", r.held.ID, "step", st.ReferenceKey, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			out = failed(hookglass.FailureInternal, "The step failed inside the service.")
		}
	}()
	if r.s.db.Now().After(r.deadline()) {
		return r.givenUp(st, outcome{status: hookglass.StepFailed, failure: tooLong()})
	}
	if r.gone != nil && !r.sent { // what may have been sent says so itself
		return r.givenUp(st, outcome{status: hookglass.StepFailed, failure: r.gone})
	}
	if len(r.tries) == 0 && !r.sent { // otherwise the conditions were evaluated already
		matched, failure := st.guard.Evaluate(r.doc)
		switch {
		case failure != nil:
			return outcome{status: hookglass.StepFailed, failure: failure}
		case !matched:
			return outcome{status: hookglass.StepSkipped, reason: hookglass.ReasonConditionFalse}
		}
	}
	if err := mayRun(r.rights, st.Step); err != nil {
		return r.givenUp(st, failedBy(err))
	}
	return r.execute(ctx, st)
}

// finish records how the run ended. [Service.settled] stores it, together with other runs on the event.
func (r *run) finish() {
	r.held.Status = hookglass.ActionRunCompleted
	for _, st := range r.held.Steps {
		if st.Status == hookglass.StepFailed {
			r.held.Status = hookglass.ActionRunFailed
		}
	}
	for _, st := range r.steps[min(r.next, len(r.steps)):] {
		r.held.Status = hookglass.ActionRunStopped
		r.held.Steps = append(r.held.Steps, hookglass.StepResult{ReferenceKey: st.ReferenceKey, Type: st.Type, Name: st.Name, Status: hookglass.StepStopped})
	}
	if n := r.next; n > 0 && n == len(r.steps) && r.held.Steps[n-1].Status == hookglass.StepFailed && r.steps[n-1].policy == hookglass.FailureStop {
		r.held.Status = hookglass.ActionRunStopped // its last step halted it, though no step was left
	}
	r.held.FinishedAt = r.s.db.Now()
	r.ended = append(r.ended, r.toSave(0))
}

// toSave returns the run as it is, with the effects of its steps since it was last stored.
func (r *run) toSave(lease time.Duration) *store.RunSave {
	return &store.RunSave{
		HeldRun: &r.held, New: !r.stored, Lease: lease, Effects: r.effects,
		Mark: store.EventMark{Endpoint: r.endpoint, Seq: r.event.Seq, Had: r.had, Tags: r.tags, Ignore: r.ignored},
	}
}

// save stores a run that has not ended, with a checkpoint, and holds it for the lease.
func (r *run) save(ctx context.Context, lease time.Duration) error {
	c := checkpoint{Policy: r.policy, Next: r.next, Sent: r.sent, Tries: r.tries, Done: r.done, Given: r.named()}
	for i := range r.steps {
		c.Steps = append(c.Steps, r.steps[i].Step)
	}
	plain, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if r.held.Checkpoint, err = r.s.Sealer.Seal(plain, checkpointOf(r.held.ID)); err != nil {
		return err
	}
	if err := r.s.saver.save(ctx, nil, r.toSave(lease)); err != nil {
		return err
	}
	r.stored, r.effects, r.tags, r.ignored = true, nil, nil, ""
	return nil
}

// afterwards adds a change to the transaction that stores the run.
func (r *run) afterwards(effect func(*store.Tx) error) { r.effects = append(r.effects, effect) }

// settled stores the runs that have ended on an event, and the end of its task unless task is nil. It answers
// errElsewhere as [saver.save] does.
func (s *Service) settled(ctx context.Context, sc *scene, task *store.Task) error {
	ended := sc.ended
	if len(ended) == 0 {
		return nil
	}
	sc.ended = nil
	return s.saver.save(ctx, task, ended...)
}
