package action

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hookglass"
	"hookglass/internal/jsondoc"
)

// program is an action made ready to run. It is safe for concurrent use.
type program struct {
	hookglass.Action
	trigger *Trigger
	steps   []step
	secrets []string // that its templates name
}

// step is a step made ready to run.
type step struct {
	hookglass.Step
	policy  hookglass.FailurePolicy
	guard   *Guard
	uses    []string // reference keys of the steps that it looks at
	usesAll bool
	secrets []string

	forward   forwardConfig
	notify    notifyConfig
	message   *Template
	tag       tagConfig
	ignore    ignoreConfig
	transform *Transform
	request   requestConfig
	url, body *Template
	headers   []*Template
}

// sends reports whether the step makes requests.
func (st *step) sends() bool {
	return st.Type == hookglass.StepForward || st.Type == hookglass.StepRequest
}

// compile prepares a stored action to run. It fails only on a row that this program did not write.
func compile(a hookglass.Action) (*program, error) {
	p := &program{Action: a}
	var faults []hookglass.FieldError
	if p.trigger, faults = NewTrigger(a.Conditions); len(faults) > 0 {
		return nil, fmt.Errorf("action %s: %w", a.ID, hookglass.InvalidFields(faults))
	}
	var err error
	if p.steps, err = readSteps(a.Steps, a.FailurePolicy); err != nil {
		return nil, fmt.Errorf("action %s: %w", a.ID, err)
	}
	p.secrets = secretsOf(p.steps)
	return p, nil
}

// secretsOf returns the names of the secrets that steps use, each once.
func secretsOf(steps []step) (names []string) {
	for i := range steps {
		names = append(names, steps[i].secrets...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func readSteps(of []hookglass.Step, policy hookglass.FailurePolicy) ([]step, error) {
	steps := make([]step, len(of))
	for i := range of {
		var err error
		if steps[i], err = readStep(of[i], policy); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// readStep makes a stored step ready.
func readStep(of hookglass.Step, policy hookglass.FailurePolicy) (st step, err error) {
	st.Step, st.policy = of, policy
	switch {
	case of.FailurePolicy != "":
		st.policy = of.FailurePolicy
	case of.Type == hookglass.StepNotify:
		st.policy = hookglass.FailureContinue // spec, "Failure handling rules"
	}
	var faults []hookglass.FieldError
	st.guard, faults = NewGuard(of.Conditions)
	if len(faults) == 0 {
		switch of.Type {
		case hookglass.StepForward:
			err = json.Unmarshal(of.Config, &st.forward)
		case hookglass.StepNotify:
			if err = json.Unmarshal(of.Config, &st.notify); err == nil {
				st.message, err = ParseMessage(st.notify.Message)
			}
		case hookglass.StepTag:
			err = json.Unmarshal(of.Config, &st.tag)
		case hookglass.StepIgnore:
			err = json.Unmarshal(of.Config, &st.ignore)
		case hookglass.StepTransform:
			if st.transform, faults = ParseTransform(of.Config); len(faults) == 0 {
				st.uses, st.secrets = st.transform.Steps(), st.transform.Secrets()
				for _, p := range st.transform.operations.Reads() {
					tokens := p.Tokens()
					st.usesAll = st.usesAll || len(tokens) == 0 || len(tokens) == 1 && tokens[0] == "steps"
				}
			}
		case hookglass.StepRequest:
			err = st.readRequest()
		default:
			err = fmt.Errorf("the type %q is not known", of.Type)
		}
	}
	if len(faults) > 0 {
		err = hookglass.InvalidFields(faults)
	}
	if err != nil {
		return st, fmt.Errorf("step %s: %w", of.ReferenceKey, err)
	}
	st.uses = append(st.uses, st.guard.Steps()...)
	return st, nil
}

func (st *step) readRequest() error {
	v, err := jsondoc.Parse(st.Config, jsondoc.Bounds{Bytes: 2 * maxConfigBytes, Depth: maxConfigDepth})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(st.Config, &st.request); err != nil {
		return err
	}
	if st.url, err = ParseTemplate(st.request.URL, InURL); err != nil {
		return err
	}
	contentType := ""
	named, _ := v.Member("headers")
	for name, value := range named.All() {
		h := requestHeader{name, value.Text()}
		t, err := ParseTemplate(h.Value, InHeader)
		if err != nil {
			return err
		}
		if strings.EqualFold(name, "Content-Type") {
			contentType = h.Value
		}
		st.request.Headers, st.headers = append(st.request.Headers, h), append(st.headers, t)
	}
	place := BodyPlace(contentType, st.request.Body)
	if st.body, err = ParseTemplate(st.request.Body, place); err != nil {
		return err
	}
	if contentType == "" && place == InJSON && st.request.Body != "" {
		t, _ := ParseTemplate("application/json", InHeader)
		st.request.Headers, st.headers = append(st.request.Headers, requestHeader{"Content-Type", "application/json"}), append(st.headers, t)
	}
	for _, t := range append([]*Template{st.url, st.body}, st.headers...) {
		st.uses, st.secrets = append(st.uses, t.Steps()...), append(st.secrets, t.Secrets()...)
	}
	return nil
}

// needs returns the reference keys of the steps whose outcome the given steps read; all: they may read any.
func needs(steps []step) (keys []string, all bool) {
	for i := range steps {
		keys, all = append(keys, steps[i].uses...), all || steps[i].usesAll
	}
	return keys, all
}
