package flow

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/store"
)

// Draft is a flow as a caller sends it. Zero fields were not given.
type Draft struct {
	Name    string
	AnyTurn bool
	Timeout time.Duration // 0: hookglass.DefaultFlowTime
	Since   time.Time     // count events received since then; zero: from now on
	Steps   []StepDraft
}

// StepDraft is one expectation. Endpoint is an id or a custom id.
type StepDraft struct {
	hookglass.FlowStep
	Endpoint string
}

// maxSince bounds how far back events count. A minute more is allowed for the time that a duration takes to arrive.
const maxSince = time.Hour

// name is the form of step ids and value names: both appear in references.
var name = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// plan validates a draft and finds its endpoints, which must be in one workspace. It answers validation_failed and
// not_found.
func (d Draft) plan(v *store.View, now time.Time) (p hookglass.FlowPlan, workspace hookglass.Endpoint, err error) {
	p = hookglass.FlowPlan{Name: d.Name, AnyTurn: d.AnyTurn, Timeout: cmp.Or(d.Timeout, hookglass.DefaultFlowTime)}
	if err := d.check(p, now); err != nil {
		return p, workspace, err
	}
	var faults []hookglass.FieldError
	for i, s := range d.Steps {
		e, err := v.Endpoint(s.Endpoint)
		if err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
			return p, workspace, err
		}
		if workspace.Num == 0 {
			workspace = e
		}
		switch at := fmt.Sprintf("flow.steps.%d.endpoint_id", i); {
		case err != nil:
			faults = append(faults, hookglass.FieldError{Field: at, Message: "names no endpoint"})
		case e.WorkspaceID == 0 || e.WorkspaceID != workspace.WorkspaceID:
			faults = append(faults, hookglass.FieldError{Field: at, Message: "must be of the same workspace as that of the other steps"})
		}
		step := s.FlowStep
		step.EndpointNum, step.EndpointID = e.Num, e.ID
		if step.Key == "" {
			step.Key = "step" + strconv.Itoa(i+1)
		}
		if step.Count == 0 && !step.Never {
			step.Count = 1
		}
		p.Steps = append(p.Steps, step)
	}
	return p, workspace, hookglass.Refusal(faults, checkSteps(&p, now))
}

func (d Draft) check(p hookglass.FlowPlan, now time.Time) error {
	var faults []hookglass.FieldError
	fault := func(field, format string, args ...any) {
		faults = append(faults, hookglass.FieldError{Field: "flow." + field, Message: fmt.Sprintf(format, args...)})
	}
	if utf8.RuneCountInString(d.Name) > hookglass.MaxFlowText {
		fault("name", "may have %d characters at most", hookglass.MaxFlowText)
	}
	if strings.ContainsFunc(d.Name, unicode.IsControl) {
		fault("name", "may not hold control characters")
	}
	if p.Timeout < hookglass.MinFlowTimeout || p.Timeout > hookglass.MaxFlowTimeout {
		fault("timeout_seconds", "must be from 0.1 to 86400")
	}
	if !d.Since.IsZero() && (d.Since.After(now) || now.Sub(d.Since) > maxSince+time.Minute) {
		fault("since", "must be within the last hour")
	}
	if n := len(d.Steps); n == 0 || n > hookglass.MaxFlowSteps {
		fault("steps", "must have 1 to %d entries", hookglass.MaxFlowSteps)
	}
	return hookglass.Refusal(faults, nil)
}

// checkSteps validates the steps, each and together. It reports one fault of each step.
func checkSteps(p *hookglass.FlowPlan, now time.Time) error {
	last := -1 // the last step that waits for an event
	for i, s := range p.Steps {
		if !s.Never {
			last = i
		}
	}
	var refused *hookglass.Error
	for i := range p.Steps {
		err := checkStep(p, i, last, now)
		var invalid *hookglass.Error
		switch {
		case err == nil:
		case !errors.As(err, &invalid) || invalid.Code != hookglass.CodeValidationFailed:
			return err
		case refused == nil:
			refused = invalid
		default: // the position within a query is reported for the first fault only
			all := hookglass.InvalidFields(append(slices.Clone(refused.Details), invalid.Details...))
			all.Extra, refused = refused.Extra, all
		}
	}
	if refused != nil {
		return refused
	}
	return nil
}

func checkStep(p *hookglass.FlowPlan, i, last int, now time.Time) error {
	if message, field := stepFault(p, i, last); message != "" {
		return hookglass.Invalid(fmt.Sprintf("flow.steps.%d.%s", i, field), "%s", message)
	}
	if slices.ContainsFunc(p.Steps[:i], func(other hookglass.FlowStep) bool { return other.Key == p.Steps[i].Key }) {
		return hookglass.Invalid(fmt.Sprintf("flow.steps.%d.id", i), "is that of another step")
	}
	compiled, err := compile(p, i, now)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(compiled.extracts, func(x extract) bool { return x.pattern != nil && x.pattern.size > maxPattern }) {
		return hookglass.Invalid(fmt.Sprintf("flow.steps.%d.extract", i), "has a pattern that is too large: repetitions count as often as they repeat")
	}
	return nil
}

func stepFault(p *hookglass.FlowPlan, i, last int) (message, field string) {
	s := &p.Steps[i]
	switch {
	case !name.MatchString(s.Key):
		return "must begin with a letter and have letters, digits, _ and - alone, 64 at most", "id"
	case s.Within < 0 || s.Within > hookglass.MaxFlowTimeout:
		return "must be above 0 and at most 86400", "within_seconds"
	case s.Never && s.Count != 0:
		return "does not go with never", "count"
	case s.Never && len(s.Extract) > 0:
		return "does not go with never", "extract"
	case s.Count < 0 || s.Count > hookglass.MaxFlowCount || !s.Never && s.Count == 0:
		return "must be from 1 to " + strconv.Itoa(hookglass.MaxFlowCount), "count"
	case !p.AnyTurn && s.Never && i > last && last >= 0 && s.Within == 0:
		return "is required where no step that waits for an event follows", "within_seconds"
	case !p.AnyTurn && s.Exactly && i == last && s.Within == 0:
		return "is required with count.exactly where no step that waits for an event follows", "within_seconds"
	case len(s.Where) > hookglass.MaxFlowNames:
		return "may have " + strconv.Itoa(hookglass.MaxFlowNames) + " members at most", "where"
	case len(s.Extract) > hookglass.MaxFlowNames:
		return "may have " + strconv.Itoa(hookglass.MaxFlowNames) + " members at most", "extract"
	}
	for _, named := range []struct{ field, text string }{{"provider", s.Provider}, {"event_type", s.EventType}, {"subject", s.Subject}, {"from", s.From}} {
		if fault := textFault(named.text); fault != "" {
			return fault, named.field
		}
	}
	for _, w := range s.Where {
		if fault := textFault(w.Part) + textFault(w.Value); fault != "" {
			return fault, "where"
		}
	}
	for _, x := range s.Extract {
		if !name.MatchString(x.Name) {
			return "takes names of letters, digits, _ and -, beginning with a letter, 64 at most", "extract"
		}
		if fault := textFault(x.Source); fault != "" {
			return fault, "extract"
		}
	}
	return "", ""
}

func textFault(text string) string {
	switch {
	case utf8.RuneCountInString(text) > hookglass.MaxFlowText:
		return "may have " + strconv.Itoa(hookglass.MaxFlowText) + " characters at most"
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "must be text"
	}
	return ""
}
