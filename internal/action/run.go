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
	"hookglass/internal/store"
)

// scene is an event with what its runs need.
type scene struct {
	endpoint hookglass.Endpoint
	rights   hookglass.Entitlements
	event    *hookglass.Event // with its payload
	base     *Context         // shared by its runs, one after another
}

// run is one run under way. It serves one goroutine.
//
// Nothing of a run is written down before it has ended, except ahead of a request that must not be sent twice, and where it waits or the
// process stops: then the checkpoint says how to go on. What tags, ignores and messages change is written in the transaction that
// writes the run, so that a run which is done again after a crash changes nothing twice.
type run struct {
	*scene
	s       *Service
	held    store.HeldRun
	stored  bool // there is a row
	policy  hookglass.FailurePolicy
	steps   []step
	next    int // the step at work
	sent    bool
	tries   []hookglass.ForwardAttempt // of the forward step at work
	done    []outcomeOf                // of the steps before it
	doc     *Context
	secrets map[string]hookglass.ActionSecret
	values  map[string]string // of the secrets
	masks   *Redactor
	effects []func(*store.Tx) error
	tags    []string // to be put on the event
	ignored string   // the reason to hide it for; empty: none
}

// outcomeOf is what later steps see of a step.
type outcomeOf struct {
	Key    string
	Status hookglass.StepStatus
	Output json.RawMessage `json:",omitempty"`
}

// checkpoint is what it takes to go on with a run. It is sealed: outputs are not redacted.
type checkpoint struct {
	Policy hookglass.FailurePolicy
	Steps  []hookglass.Step
	Next   int
	Sent   bool
	Tries  []hookglass.ForwardAttempt `json:",omitempty"`
	Done   []outcomeOf
}

func checkpointOf(runID string) string { return "action_runs:checkpoint:" + runID }

// errElsewhere says that somebody else has the run, or that it has ended.
var errElsewhere = errors.New("the run is somebody else's")

const (
	// holdSlack is how long a held run may take beyond the time of its step.
	holdSlack = 25 * time.Second
	// again is when a step is tried again that nobody had a turn for.
	again = time.Second
)

// outcome is what became of a step.
type outcome struct {
	status    hookglass.StepStatus
	reason    string
	output    jsondoc.Value
	hasOutput bool
	summary   []byte // redacted and bounded
	truncated bool
	failure   *hookglass.Failure
	wait      time.Duration // above 0: it is to be tried again then, and has not ended
	err       error         // of the storage, or errElsewhere: the run can not go on now
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
	var coded *hookglass.Error
	if errors.As(err, &coded) {
		return failed(string(coded.Code), coded.Message)
	}
	return failed(hookglass.FailureInternal, "The step failed inside the service.")
}

// start makes a run of a program on an event. It is not stored yet.
func (s *Service) start(sc *scene, p *program, trigger hookglass.TriggerResult) *run {
	now := time.Now().UTC().Truncate(time.Microsecond)
	r := &run{scene: sc, s: s, policy: p.FailurePolicy, steps: p.steps, doc: sc.base.Fresh()}
	r.held.ActionRun = hookglass.ActionRun{
		ID: hookglass.NewSortableID(hookglass.PrefixActionRun, now), EndpointNum: sc.endpoint.Num, EndpointID: sc.endpoint.ID, ActionNum: p.Num, ActionID: p.ID,
		EventSeq: sc.event.Seq, EventID: sc.event.ID, Status: hookglass.ActionRunRunning, StartedAt: now,
	}
	r.held.Trigger = trigger
	return r
}

// resume makes a run of what is stored of it.
func (s *Service) resume(sc *scene, h store.HeldRun) (*run, error) {
	plain, err := s.Sealer.Open(h.Checkpoint, checkpointOf(h.ID))
	if err != nil {
		return nil, fmt.Errorf("the checkpoint of %s: %w", h.ID, err)
	}
	var c checkpoint
	if err := json.Unmarshal(plain, &c); err != nil {
		return nil, fmt.Errorf("the checkpoint of %s can not be read", h.ID) // without the cause, which may quote what was sealed
	}
	r := &run{scene: sc, s: s, held: h, stored: true, policy: c.Policy, next: c.Next, sent: c.Sent, tries: c.Tries, done: c.Done, doc: sc.base.Fresh()}
	if r.steps, err = readSteps(c.Steps, c.Policy); err != nil {
		return nil, err
	}
	if r.next > len(r.steps) {
		return nil, fmt.Errorf("the checkpoint of %s is of another action", h.ID)
	}
	for _, d := range c.Done {
		var output jsondoc.Value
		if d.Output != nil {
			if output, err = jsondoc.Parse(d.Output, jsondoc.Bounds{Bytes: 16 << 20, Depth: 2 * jsondoc.MaxDepth}); err != nil {
				return nil, fmt.Errorf("the checkpoint of %s can not be read", h.ID)
			}
		}
		r.doc.SetStep(d.Key, d.Status, output)
	}
	return r, nil
}

// loadSecrets reads the secrets that the steps name.
func (r *run) loadSecrets(v *store.View) error {
	var names []string
	for i := range r.steps {
		names = append(names, r.steps[i].secrets...)
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	found, err := v.NamedActionSecrets(r.endpoint.WorkspaceID, slices.Compact(names))
	if err != nil {
		return err
	}
	r.secrets, r.values = make(map[string]hookglass.ActionSecret), make(map[string]string)
	for _, secret := range found {
		plain, err := r.s.Sealer.Open(secret.Sealed, valueOf(secret.ID))
		if err != nil {
			r.s.Log.Error("an action secret can not be opened", "secret", secret.ID, "error", err)
			continue
		}
		r.secrets[secret.Name], r.values[secret.Name] = secret, string(plain)
	}
	return nil
}

// redactor blots out the secrets that the steps name, and the credentials that came with the event.
func (r *run) redactor() *Redactor {
	if r.masks == nil {
		var masks []Mask
		for name, value := range r.values {
			masks = append(masks, Mask{Value: value, Shown: Placeholder(name)})
		}
		r.masks = NewRedactor(append(masks, credentials(r.event)...)...)
	}
	return r.masks
}

// credentials are the values of an event's headers that tell of one.
func credentials(e *hookglass.Event) (masks []Mask) {
	if e.Payload == nil {
		return nil
	}
	for _, h := range e.Headers {
		if SensitiveHeader(h.Name) && len(h.Value) >= 8 {
			masks = append(masks, Mask{Value: h.Value})
		}
	}
	return masks
}

func (r *run) secret(name string) (string, bool) {
	value, ok := r.values[name]
	return value, ok
}

func (r *run) inputs() Values { return Values{Context: r.doc, Secret: r.secret} }

// proceed goes on until the run has ended, or for now: then it returns how long to wait.
func (r *run) proceed(ctx context.Context) (wait time.Duration, err error) {
	halted := false
	for r.next < len(r.steps) && !halted {
		st := &r.steps[r.next]
		result := r.begin(st)
		out := r.try(ctx, st)
		switch {
		case out.err != nil:
			return 0, out.err
		case out.wait > 0:
			return out.wait, r.park(out.wait)
		}
		halted = r.settle(st, result, out)
		r.next++
		r.sent, r.tries = false, nil
	}
	return 0, r.finish()
}

// begin notes that a step is at work, unless it was already.
func (r *run) begin(st *step) *hookglass.StepResult {
	if len(r.held.Steps) <= r.next {
		r.held.Steps = append(r.held.Steps, hookglass.StepResult{
			ReferenceKey: st.ReferenceKey, Type: st.Type, Name: st.Name, Status: hookglass.StepRunning, StartedAt: time.Now().UTC().Truncate(time.Microsecond),
		})
	}
	return &r.held.Steps[r.next]
}

// settle notes what became of a step, and reports whether the rest does not run.
func (r *run) settle(st *step, result *hookglass.StepResult, out outcome) (halted bool) {
	result.Status, result.Reason, result.Summary, result.Truncated, result.Failure = out.status, out.reason, out.summary, out.truncated, out.failure
	result.Duration = time.Since(result.StartedAt)
	r.doc.SetStep(st.ReferenceKey, out.status, out.output)
	done := outcomeOf{Key: st.ReferenceKey, Status: out.status}
	if out.hasOutput {
		if keys, all := needs(r.steps[r.next+1:]); all || slices.Contains(keys, st.ReferenceKey) {
			done.Output = out.output.Bytes()
		}
	}
	r.done = append(r.done, done)
	if out.status != hookglass.StepFailed {
		return false
	}
	return st.policy == hookglass.FailureStop || out.failure.Code == hookglass.FailureDeadline
}

// try does a step, whatever goes wrong in it.
func (r *run) try(ctx context.Context, st *step) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			r.s.Log.Error("panic in a step of an action", "run", r.held.ID, "step", st.ReferenceKey, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			out = failed(hookglass.FailureInternal, "The step failed inside the service.")
		}
	}()
	if time.Now().After(r.held.StartedAt.Add(hookglass.ActionDeadline)) {
		return failed(hookglass.FailureDeadline, "The action took longer than 10 minutes.")
	}
	if len(r.tries) == 0 && !r.sent { // otherwise they were evaluated already
		matched, failure := st.guard.Evaluate(r.doc)
		switch {
		case failure != nil:
			return outcome{status: hookglass.StepFailed, failure: failure}
		case !matched:
			return outcome{status: hookglass.StepSkipped, reason: hookglass.ReasonConditionFalse}
		}
	}
	if err := mayRun(r.rights, st.Type); err != nil {
		return failedBy(err)
	}
	return r.execute(ctx, st)
}

// park stores the run to go on with it after a while.
func (r *run) park(wait time.Duration) error { return r.save(context.Background(), wait) }

// hold stores that the run is at work for a while, with the checkpoint as it is.
func (r *run) hold(ctx context.Context, lease time.Duration) error { return r.save(ctx, lease) }

// finish stores how the run ended.
func (r *run) finish() error {
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
		r.held.Status = hookglass.ActionRunStopped // the last step halted it, though nothing was behind it
	}
	r.held.FinishedAt = time.Now().UTC().Truncate(time.Microsecond)
	if err := r.save(context.Background(), 0); err != nil {
		return err
	}
	r.s.totals.add(&r.held.ActionRun)
	return nil
}

// save writes the run down with what its steps change, also when the process stops meanwhile.
func (r *run) save(ctx context.Context, lease time.Duration) error {
	if !r.held.Status.Final() {
		c := checkpoint{Policy: r.policy, Next: r.next, Sent: r.sent, Tries: r.tries, Done: r.done}
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
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	err := r.s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
		for _, effect := range r.effects {
			if err := effect(tx); err != nil {
				return err
			}
		}
		write := tx.SaveActionRun
		if !r.stored {
			write = tx.InsertActionRun
		}
		if ours, err := write(&r.held, lease); err != nil {
			return err
		} else if !ours {
			return errElsewhere
		}
		if len(r.tags) == 0 && r.ignored == "" {
			return nil
		}
		return tx.MarkEvent(r.endpoint, r.event.Seq, r.tags, r.ignored) // locks the counters, so last
	})
	if err != nil {
		return err
	}
	r.stored, r.effects, r.tags, r.ignored = true, nil, nil, ""
	return nil
}

// saveTimeout is for writing down what was sent.
const saveTimeout = 15 * time.Second

// afterwards adds a change that is written with the run.
func (r *run) afterwards(effect func(*store.Tx) error) { r.effects = append(r.effects, effect) }
