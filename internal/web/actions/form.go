package actions

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/jsondoc"
	"hookglass/internal/web/show"
)

// Form is an action as typed: what a browser sends and gets back, with or without scripts. Its fields are named like
// faults below endpoint_action.
type Form struct {
	Name          string
	Enabled       bool
	FailurePolicy string
	Conditions    []Condition
	Steps         []Step
	Event         string // that it is tried on; empty: none
	Query         string // of the back-test
	Limit         string
	Focus         string // the field that an edit brought
	Seen          string // the mark of what was stored when the form was first shown; empty: nothing
	Faults        []Fault
}

// Condition is a trigger condition as it is typed.
type Condition struct{ Field, Operator, Value string }

// Step is a step as it is typed.
type Step struct {
	Type          string
	Key           string
	Kept          bool // it is stored: its key does not change
	Name          string
	FailurePolicy string            // empty: the action's
	Config        map[string]string // by the name in the configuration; headers are lines
	Operations    []Operation       // of a transform
	Conditions    []StepCondition
}

// StepCondition is a condition of a step as it is typed. Value is JSON, or a text that is none.
type StepCondition struct{ Source, Path, Operator, Value string }

// Operation is an operation of a transform as it is typed.
type Operation struct {
	Op       string
	Path     string
	From, To string // rename
	Kind     string // set: value, from or template
	Value    string // set
	Fields   string // pick: lines
	Key      string // wrap
}

// stepOrder is the types in the order in which they are offered.
var stepOrder = []hookglass.StepType{
	hookglass.StepForward, hookglass.StepRequest, hookglass.StepTransform, hookglass.StepNotify, hookglass.StepTag, hookglass.StepIgnore,
}

// operationOrder is the operations in the order in which they are offered.
var operationOrder = []string{"select", "set", "remove", "rename", "pick", "wrap"}

// firstField is where a new operation is filled in first.
var firstField = map[string]string{"select": "path", "set": "path", "remove": "path", "rename": "from", "pick": "fields", "wrap": "key"}

// NewForm returns the form of a new action.
func NewForm() Form {
	return Form{Enabled: true, FailurePolicy: string(hookglass.FailureContinue)}
}

func newStep(kind string) Step {
	s := Step{Type: kind, Config: map[string]string{}}
	switch hookglass.StepType(kind) {
	case hookglass.StepForward:
		s.Config["timeout_seconds"], s.Config["retry_count"] = "30", "3"
	case hookglass.StepIgnore:
		s.Config["reason"] = hookglass.IgnoreReasons[0]
	case hookglass.StepTransform:
		s.Config["source"] = "request"
	case hookglass.StepRequest:
		s.Config["method"], s.Config["timeout_seconds"] = "POST", "10"
	}
	return s
}

// FormOf returns the form of an existing action.
func FormOf(a hookglass.Action) Form {
	f := Form{Name: a.Name, Enabled: a.Enabled, FailurePolicy: string(a.FailurePolicy), Seen: Mark(a)}
	for _, c := range a.Conditions {
		f.Conditions = append(f.Conditions, Condition(c))
	}
	for _, st := range a.Steps {
		s := Step{Type: string(st.Type), Key: st.ReferenceKey, Kept: true, Name: st.Name, FailurePolicy: string(st.FailurePolicy), Config: map[string]string{}}
		config, err := jsondoc.Parse(st.Config, jsondoc.Wide())
		if err == nil {
			s.read(config)
		}
		for _, c := range st.Conditions {
			s.Conditions = append(s.Conditions, StepCondition{c.Source, c.Path, c.Operator, typed(c.Value)})
		}
		f.Steps = append(f.Steps, s)
	}
	return f
}

// Bounds of a form, each above the limits of an action, so that one too many is still reported. Rendering the page
// takes a hundred times the size of the form.
const (
	readSteps      = 40
	readConditions = hookglass.MaxConditions + 1
	readOperations = jsondoc.MaxOperations + 1
)

// Mark identifies the stored version of an action.
func Mark(a hookglass.Action) string { return strconv.FormatInt(a.UpdatedAt.UnixMicro(), 10) }

// ReadForm reads what a browser sends, within bounds.
func ReadForm(v url.Values) Form {
	text := func(name string) string { return strings.ReplaceAll(v.Get(name), "\r\n", "\n") }
	f := Form{
		Name: v.Get("name"), Enabled: v.Get("enabled") == "true", FailurePolicy: v.Get("failure_policy"), Event: v.Get("event"), Query: v.Get("q"), Limit: v.Get("limit"),
		Seen: v.Get("seen"),
	}
	for i := 0; i < readConditions && v.Has(fmt.Sprintf("conditions[%d].field", i)); i++ {
		at := fmt.Sprintf("conditions[%d].", i)
		f.Conditions = append(f.Conditions, Condition{v.Get(at + "field"), v.Get(at + "operator"), v.Get(at + "value")})
	}
	for i := 0; i < readSteps && v.Has(fmt.Sprintf("steps[%d].step_type", i)); i++ {
		at := fmt.Sprintf("steps[%d].", i)
		s := Step{
			Type: v.Get(at + "step_type"), Key: strings.TrimSpace(v.Get(at + "reference_key")), Kept: v.Get(at+"kept") == "true", Name: v.Get(at + "name"),
			FailurePolicy: v.Get(at + "failure_policy"), Config: map[string]string{},
		}
		for _, name := range configFields[hookglass.StepType(s.Type)] {
			s.Config[name] = text(at + "config." + name)
		}
		for j := 0; j < readOperations && v.Has(fmt.Sprintf("%sconfig.operations[%d].op", at, j)); j++ {
			in := fmt.Sprintf("%sconfig.operations[%d].", at, j)
			s.Operations = append(s.Operations, Operation{
				Op: v.Get(in + "op"), Path: v.Get(in + "path"), From: v.Get(in + "from"), To: v.Get(in + "to"), Kind: v.Get(in + "kind"), Value: text(in + "value"),
				Fields: text(in + "fields"), Key: v.Get(in + "key"),
			})
		}
		for j := 0; j < readConditions && v.Has(fmt.Sprintf("%sconditions[%d].source", at, j)); j++ {
			in := fmt.Sprintf("%sconditions[%d].", at, j)
			s.Conditions = append(s.Conditions, StepCondition{v.Get(in + "source"), v.Get(in + "path"), v.Get(in + "operator"), v.Get(in + "value")})
		}
		f.Steps = append(f.Steps, s)
	}
	return f
}

// Keep restores the line ends of unchanged texts: browsers send CR LF whatever the page had, and a multipart body needs
// its own.
func (f *Form) Keep(a hookglass.Action) {
	stored := FormOf(a)
	for _, s := range f.Steps {
		i := slices.IndexFunc(stored.Steps, func(old Step) bool { return old.Key == s.Key && old.Type == s.Type })
		if i < 0 {
			continue
		}
		for _, name := range []string{"body", "message"} {
			switch old, typed := stored.Steps[i].Config[name], lines(s.Config[name]); {
			case typed == lines(old):
				s.Config[name] = old
			case strings.Contains(old, "\r\n") && strings.ReplaceAll(lines(old), "\n", "\r\n") == old:
				s.Config[name] = strings.ReplaceAll(typed, "\n", "\r\n")
			}
		}
	}
}

// Edit applies an edit button of the builder: add, remove or move a condition, step or operation. It reports false for
// another button.
func (f *Form) Edit(do string, v url.Values) bool {
	words := strings.Fields(do)
	if len(words) == 0 {
		return false
	}
	var at [2]int
	for i, w := range words[1:] {
		n, err := strconv.Atoi(w)
		if err != nil || i >= len(at) || n < 0 {
			return false
		}
		at[i] = n
	}
	step := func() *Step {
		if at[0] < len(f.Steps) {
			return &f.Steps[at[0]]
		}
		return &Step{} // not a button of this form: discard the edit
	}
	switch words[0] {
	case "add-condition":
		f.Focus = fmt.Sprintf("conditions[%d].field", len(f.Conditions))
		f.Conditions = append(f.Conditions, Condition{Field: "event_type", Operator: hookglass.OperatorEquals})
	case "remove-condition":
		f.Conditions = without(f.Conditions, at[0])
		f.Focus = "add-condition"
	case "add-step":
		kind := v.Get("add_step")
		if !slices.Contains(hookglass.StepTypes, hookglass.StepType(kind)) {
			return false
		}
		f.Focus = fmt.Sprintf("steps[%d].name", len(f.Steps))
		f.Steps = append(f.Steps, newStep(kind))
	case "remove-step":
		f.Steps = without(f.Steps, at[0])
		f.Focus = "add-step"
	case "up-step":
		f.Focus = fmt.Sprintf("steps[%d].name", swap(f.Steps, at[0], at[0]-1))
	case "down-step":
		f.Focus = fmt.Sprintf("steps[%d].name", swap(f.Steps, at[0], at[0]+1))
	case "add-step-condition":
		s := step()
		f.Focus = fmt.Sprintf("steps[%d].conditions[%d].path", at[0], len(s.Conditions))
		s.Conditions = append(s.Conditions, StepCondition{Source: "request", Operator: hookglass.OperatorEquals})
	case "remove-step-condition":
		s := step()
		s.Conditions = without(s.Conditions, at[1])
		f.Focus = fmt.Sprintf("steps[%d].name", at[0])
	case "add-operation":
		op := v.Get(fmt.Sprintf("steps[%d].add_operation", at[0]))
		if !slices.Contains(operationOrder, op) {
			return false
		}
		s := step()
		f.Focus = fmt.Sprintf("steps[%d].config.operations[%d].%s", at[0], len(s.Operations), firstField[op])
		s.Operations = append(s.Operations, Operation{Op: op, Kind: "value"})
	case "remove-operation":
		s := step()
		s.Operations = without(s.Operations, at[1])
		f.Focus = fmt.Sprintf("steps[%d].name", at[0])
	case "up-operation":
		swap(step().Operations, at[1], at[1]-1)
		f.Focus = fmt.Sprintf("steps[%d].name", at[0])
	default:
		return false
	}
	return true
}

func without[T any](all []T, i int) []T {
	if i >= len(all) {
		return all
	}
	return slices.Delete(all, i, i+1)
}

// swap swaps two elements, if both exist, and returns the new place of the first.
func swap[T any](all []T, i, j int) int {
	if i < 0 || j < 0 || i >= len(all) || j >= len(all) {
		return i
	}
	all[i], all[j] = all[j], all[i]
	return j
}

// Draft returns the change that the form asks for.
func (f Form) Draft() action.Draft {
	conditions := make([]action.ConditionDraft, len(f.Conditions))
	for i, c := range f.Conditions {
		conditions[i] = action.ConditionDraft{Field: c.Field, Operator: c.Operator}
		if !valueless(c.Operator) {
			conditions[i].Value = &c.Value
		}
	}
	steps := make([]action.StepDraft, len(f.Steps))
	for i, s := range f.Steps {
		d := action.StepDraft{Type: s.Type, Config: s.config()}
		if name := cmp.Or(strings.TrimSpace(s.Name), show.StepType(hookglass.StepType(s.Type))); name != "" {
			d.Name = &name
		}
		if s.Key != "" {
			d.ReferenceKey = &s.Key
		}
		if s.FailurePolicy != "" {
			d.FailurePolicy = &s.FailurePolicy
		}
		for _, c := range s.Conditions {
			condition := action.StepConditionDraft{Source: strings.TrimSpace(c.Source), Path: &c.Path, Operator: c.Operator}
			if !valueless(c.Operator) && c.Value != "" {
				condition.Value = literal(c.Value)
			}
			d.Conditions = append(d.Conditions, condition)
		}
		steps[i] = d
	}
	return action.Draft{Name: &f.Name, Enabled: &f.Enabled, FailurePolicy: &f.FailurePolicy, Conditions: &conditions, Steps: &steps}
}
