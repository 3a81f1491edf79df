package actions

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/jsondoc"
)

// Form is an action as it is typed: what a browser sends and gets back, with or without scripts. Its fields bear the names that faults
// have below endpoint_action.
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

// Fault is what is wrong with a field of the form.
type Fault struct{ Field, Label, Text string }

// stepOrder is the types in the order in which they are offered.
var stepOrder = []hookglass.StepType{
	hookglass.StepForward, hookglass.StepRequest, hookglass.StepTransform, hookglass.StepNotify, hookglass.StepTag, hookglass.StepIgnore,
}

// configFields are the fields of a configuration, in their order, but for operations.
var configFields = map[hookglass.StepType][]string{
	hookglass.StepForward:   {"url", "timeout_seconds", "retry_count", "append_path", "append_query"},
	hookglass.StepNotify:    {"channel", "message"},
	hookglass.StepTag:       {"tag"},
	hookglass.StepIgnore:    {"reason"},
	hookglass.StepTransform: {"source"},
	hookglass.StepRequest:   {"method", "url", "headers", "body", "timeout_seconds"},
}

// operationOrder is the operations in the order in which they are offered.
var operationOrder = []string{"select", "set", "remove", "rename", "pick", "wrap"}

// firstField is where a new operation is filled in first.
var firstField = map[string]string{"select": "path", "set": "path", "remove": "path", "rename": "from", "pick": "fields", "wrap": "key"}

// NewForm is the form of an action that does not exist yet.
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

// FormOf is the form of an action as it stands.
func FormOf(a hookglass.Action) Form {
	f := Form{Name: a.Name, Enabled: a.Enabled, FailurePolicy: string(a.FailurePolicy)}
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

func (s *Step) read(config jsondoc.Value) {
	for name, v := range config.All() {
		switch {
		case name == "headers" && v.Kind() == jsondoc.Object:
			s.Config[name] = pairs(v)
		case name == "operations" && v.Kind() == jsondoc.Array:
			for _, o := range v.All() {
				s.Operations = append(s.Operations, operationOf(o))
			}
		case v.Kind() == jsondoc.String:
			s.Config[name] = v.Text()
		default:
			s.Config[name] = string(v.Bytes())
		}
	}
}

// pairs writes an object of strings as lines.
func pairs(v jsondoc.Value) string {
	var b strings.Builder
	for name, value := range v.All() {
		b.WriteString(name + ": " + value.Text() + "\n")
	}
	return b.String()
}

func operationOf(v jsondoc.Value) (o Operation) {
	text := func(name string) string {
		m, _ := v.Member(name)
		return m.Text()
	}
	o.Op, o.Path, o.To, o.Key = text("op"), text("path"), text("to"), text("key")
	if o.Op == "rename" {
		o.From = text("from")
	}
	if m, ok := v.Member("fields"); ok && m.Kind() == jsondoc.Object {
		o.Fields = pairs(m)
	}
	if o.Op == "set" {
		for _, kind := range []string{"value", "from", "template"} {
			if m, ok := v.Member(kind); ok {
				if o.Kind, o.Value = kind, m.Text(); kind == "value" {
					o.Value = typed(m.Bytes())
				}
			}
		}
	}
	return o
}

// typed is a JSON value as a person types it: a text without quotes, unless it would be taken for something else.
func typed(text []byte) string {
	v, err := jsondoc.Parse(text, jsondoc.Wide())
	if err != nil || v.Kind() != jsondoc.String {
		return string(text)
	}
	plain := v.Text()
	if plain == "" || strings.TrimSpace(plain) != plain || strings.ContainsAny(plain, "\r\n") || jsondoc.Check([]byte(plain)) == nil {
		return string(text)
	}
	return plain
}

// literal reads what a person typed: JSON, or else a text.
func literal(text string) []byte {
	trimmed := strings.TrimSpace(text)
	if jsondoc.Check([]byte(trimmed)) == nil {
		return []byte(trimmed)
	}
	return jsondoc.Text(text).Bytes()
}

// ReadForm reads what a browser sends.
func ReadForm(v url.Values) Form {
	text := func(name string) string { return strings.ReplaceAll(v.Get(name), "\r\n", "\n") }
	f := Form{
		Name: v.Get("name"), Enabled: v.Get("enabled") == "true", FailurePolicy: v.Get("failure_policy"), Event: v.Get("event"), Query: v.Get("q"), Limit: v.Get("limit"),
	}
	for i := 0; v.Has(fmt.Sprintf("conditions[%d].field", i)); i++ {
		at := fmt.Sprintf("conditions[%d].", i)
		f.Conditions = append(f.Conditions, Condition{v.Get(at + "field"), v.Get(at + "operator"), v.Get(at + "value")})
	}
	for i := 0; v.Has(fmt.Sprintf("steps[%d].step_type", i)); i++ {
		at := fmt.Sprintf("steps[%d].", i)
		s := Step{
			Type: v.Get(at + "step_type"), Key: strings.TrimSpace(v.Get(at + "reference_key")), Kept: v.Get(at+"kept") == "true", Name: v.Get(at + "name"),
			FailurePolicy: v.Get(at + "failure_policy"), Config: map[string]string{},
		}
		for _, name := range configFields[hookglass.StepType(s.Type)] {
			s.Config[name] = text(at + "config." + name)
		}
		for j := 0; v.Has(fmt.Sprintf("%sconfig.operations[%d].op", at, j)); j++ {
			in := fmt.Sprintf("%sconfig.operations[%d].", at, j)
			s.Operations = append(s.Operations, Operation{
				Op: v.Get(in + "op"), Path: v.Get(in + "path"), From: v.Get(in + "from"), To: v.Get(in + "to"), Kind: v.Get(in + "kind"), Value: text(in + "value"),
				Fields: text(in + "fields"), Key: v.Get(in + "key"),
			})
		}
		for j := 0; v.Has(fmt.Sprintf("%sconditions[%d].source", at, j)); j++ {
			in := fmt.Sprintf("%sconditions[%d].", at, j)
			s.Conditions = append(s.Conditions, StepCondition{v.Get(in + "source"), v.Get(in + "path"), v.Get(in + "operator"), v.Get(in + "value")})
		}
		f.Steps = append(f.Steps, s)
	}
	return f
}

// Keep ends the lines of texts as they end in the action: a browser ends those of a form with CR LF, whatever ended them in the page, and a
// body in parts needs its own.
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

// lines is a text whose lines end with LF.
func lines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// Edit does what a button of the builder says: add, remove or move a condition, step or operation. It reports false for a word that is
// none of these.
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
		return &Step{} // a button of another page: what it does is lost
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

// swap exchanges two places, where there are both, and returns where the first went.
func swap[T any](all []T, i, j int) int {
	if i < 0 || j < 0 || i >= len(all) || j >= len(all) {
		return i
	}
	all[i], all[j] = all[j], all[i]
	return j
}

// Draft is what the form asks of the action.
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
		if name := cmp.Or(strings.TrimSpace(s.Name), title(s.Type)); name != "" {
			d.Name = &name
		}
		if s.Key != "" {
			d.ReferenceKey = &s.Key
		}
		if s.FailurePolicy != "" {
			d.FailurePolicy = &s.FailurePolicy
		}
		for _, c := range s.Conditions {
			condition := action.StepConditionDraft{Source: strings.TrimSpace(c.Source), Path: c.Path, Operator: c.Operator}
			if !valueless(c.Operator) && c.Value != "" {
				condition.Value = literal(c.Value)
			}
			d.Conditions = append(d.Conditions, condition)
		}
		steps[i] = d
	}
	return action.Draft{Name: &f.Name, Enabled: &f.Enabled, FailurePolicy: &f.FailurePolicy, Conditions: &conditions, Steps: &steps}
}

func valueless(operator string) bool {
	return operator == hookglass.OperatorExists || operator == hookglass.OperatorNotExists
}

// config writes the configuration. What is left empty and has a default is left out.
func (s Step) config() []byte {
	var members []jsondoc.Member
	put := func(name string, v jsondoc.Value) { members = append(members, jsondoc.Member{Name: name, Value: v}) }
	for _, name := range configFields[hookglass.StepType(s.Type)] {
		value := s.Config[name]
		switch name {
		case "timeout_seconds", "retry_count":
			if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
				put(name, jsondoc.Int(n))
			} else if value != "" {
				put(name, jsondoc.Text(value)) // refused with the words of the service
			}
		case "append_path", "append_query":
			put(name, jsondoc.Bool(value == "true"))
		case "headers":
			put(name, object(value, cutHeader))
		case "url":
			if value = strings.TrimSpace(value); value != "" {
				put(name, jsondoc.Text(value))
			}
		default:
			if value != "" {
				put(name, jsondoc.Text(value))
			}
		}
	}
	if s.Type == string(hookglass.StepTransform) {
		operations := make([]jsondoc.Value, len(s.Operations))
		for i, o := range s.Operations {
			operations[i] = o.value()
		}
		put("operations", jsondoc.List(operations...))
	}
	return jsondoc.Members(members...).Bytes()
}

// object reads lines of names and texts.
func object(lines string, cut func(line string) (name, text string)) jsondoc.Value {
	var members []jsondoc.Member
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value := cut(line)
		members = append(members, jsondoc.Member{Name: strings.TrimSpace(name), Value: jsondoc.Text(strings.TrimSpace(value))})
	}
	return jsondoc.Members(members...)
}

func cutHeader(line string) (name, value string) {
	name, value, _ = strings.Cut(line, ":")
	return name, value
}

// cutField takes a line apart where its pointer begins: a name may hold colons, as those of namespaces do.
func cutField(line string) (name, pointer string) {
	if name, found := strings.CutSuffix(line, ":"); found {
		return name, "" // the pointer to the whole
	}
	for _, mark := range []string{": /", ":/"} {
		if i := strings.Index(line, mark); i >= 0 {
			return line[:i], line[i+1:]
		}
	}
	return cutHeader(line)
}

func (o Operation) value() jsondoc.Value {
	members := []jsondoc.Member{{Name: "op", Value: jsondoc.Text(o.Op)}}
	text := func(name, value string) {
		members = append(members, jsondoc.Member{Name: name, Value: jsondoc.Text(value)})
	}
	switch o.Op {
	case "select", "remove":
		text("path", o.Path)
	case "set":
		text("path", o.Path)
		switch o.Kind {
		case "from", "template":
			text(o.Kind, o.Value)
		default:
			v, err := jsondoc.Parse(literal(o.Value), jsondoc.Wide())
			if err != nil {
				v = jsondoc.Text(o.Value)
			}
			members = append(members, jsondoc.Member{Name: "value", Value: v})
		}
	case "rename":
		text("from", o.From)
		text("to", o.To)
	case "pick":
		members = append(members, jsondoc.Member{Name: "fields", Value: object(o.Fields, cutField)})
	case "wrap":
		text("key", o.Key)
	}
	return jsondoc.Members(members...)
}

// Refuse takes over what the service finds wrong. It reports false where the error is of another kind.
func (f *Form) Refuse(err error) bool {
	var e *hookglass.Error
	if !errors.As(err, &e) || len(e.Details) == 0 {
		return false
	}
	known := f.names()
	for _, d := range e.Details {
		field := strings.TrimPrefix(d.Field, "endpoint_action.")
		at := field
		for at != "" && known[at] == "" {
			at = at[:max(strings.LastIndexByte(at, '.'), 0)]
		}
		// What a set operation writes has one field, whatever its kind.
		if before, found := strings.CutSuffix(field, ".from"); found && known[before+".value"] != "" {
			at = before + ".value"
		} else if before, found := strings.CutSuffix(field, ".template"); found && known[before+".value"] != "" {
			at = before + ".value"
		}
		f.Faults = append(f.Faults, Fault{Field: at, Label: known[at], Text: strings.ToUpper(d.Message[:1]) + d.Message[1:] + "."})
	}
	return true
}

// names are the fields of the form with what they are called.
func (f Form) names() map[string]string {
	known := map[string]string{"name": "Name", "failure_policy": "When a step fails", "conditions": "Conditions", "steps": "Steps"}
	for i := range f.Conditions {
		for _, part := range []string{"field", "operator", "value"} {
			known[fmt.Sprintf("conditions[%d].%s", i, part)] = fmt.Sprintf("Condition %d, %s", i+1, part)
		}
	}
	for i, s := range f.Steps {
		in, label := fmt.Sprintf("steps[%d]", i), fmt.Sprintf("Step %d", i+1)
		known[in] = label
		for _, part := range []string{"name", "reference_key", "failure_policy"} {
			known[in+"."+part] = label + ", " + strings.ReplaceAll(part, "_", " ")
		}
		for _, name := range configFields[hookglass.StepType(s.Type)] {
			known[in+".config."+name] = label + ", " + configLabels[name]
		}
		for j := range s.Operations {
			for _, part := range []string{"path", "to", "value", "fields", "key"} {
				known[fmt.Sprintf("%s.config.operations[%d].%s", in, j, part)] = fmt.Sprintf("%s, operation %d, %s", label, j+1, part)
			}
			if s.Operations[j].Op == "rename" {
				at := fmt.Sprintf("%s.config.operations[%d].", in, j)
				delete(known, at+"value")
				known[at+"from"] = fmt.Sprintf("%s, operation %d, from", label, j+1)
			}
		}
		for j := range s.Conditions {
			for _, part := range []string{"source", "path", "operator", "value"} {
				known[fmt.Sprintf("%s.conditions[%d].%s", in, j, part)] = fmt.Sprintf("%s, condition %d, %s", label, j+1, part)
			}
		}
	}
	return known
}

// fault says what is wrong with a field.
func (f Form) fault(field string) string {
	for _, fault := range f.Faults {
		if fault.Field == field {
			return fault.Text
		}
	}
	return ""
}

var configLabels = map[string]string{
	"url": "URL", "timeout_seconds": "timeout", "retry_count": "retries", "append_path": "path", "append_query": "query", "channel": "channel", "message": "message", "tag": "tag",
	"reason": "reason", "source": "source", "method": "method", "headers": "headers", "body": "body",
}
