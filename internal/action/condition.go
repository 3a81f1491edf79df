package action

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/email"
	"hookglass/internal/jsondoc"
)

// Trigger decides whether an action runs on an event: all its conditions must match. It is safe for concurrent use.
type Trigger struct {
	conditions []hookglass.Condition
	patterns   []pattern // of matches, by the place of the condition
}

// maxActual is how much of a value a result shows, in bytes.
const maxActual = 512

// NewTrigger checks trigger conditions (spec, "Trigger conditions"; spec: decisions, section 13). The faults name
// conditions.0.operator and the like; a trigger with faults is not to be used.
func NewTrigger(conditions []hookglass.Condition) (*Trigger, []hookglass.FieldError) {
	t := &Trigger{conditions, make([]pattern, len(conditions))}
	faults := tooMany(len(conditions))
	for i, c := range conditions {
		fault := func(field, message string) {
			faults = append(faults, hookglass.FieldError{Field: fmt.Sprintf("conditions.%d.%s", i, field), Message: message})
		}
		if !slices.Contains(hookglass.ConditionFields, c.Field) {
			fault("field", "must be one of "+strings.Join(hookglass.ConditionFields, ", "))
		}
		if !checkOperator(c.Operator, c.Value != "", fault) {
			continue
		}
		t.patterns[i] = checkValue(c.Operator, c.Value, fault)
	}
	return t, faults
}

func tooMany(n int) []hookglass.FieldError {
	if n <= hookglass.MaxConditions {
		return nil
	}
	return []hookglass.FieldError{{Field: "conditions", Message: fmt.Sprintf("may hold %d conditions at most", hookglass.MaxConditions)}}
}

// checkOperator faults an unknown operator, and a value that is missing or not allowed. It reports whether there is a
// value left to check.
func checkOperator(operator string, given bool, fault func(field, message string)) bool {
	if takesNoValue(operator) {
		if given {
			fault("value", "must not be given with "+operator)
		}
		return false
	}
	if !slices.Contains(hookglass.ConditionOperators, operator) {
		fault("operator", "must be one of "+strings.Join(hookglass.ConditionOperators, ", "))
		return false
	}
	if !given {
		fault("value", "must be given with "+operator)
	}
	return given
}

func checkValue(operator, value string, fault func(field, message string)) (p pattern) {
	if utf8.RuneCountInString(value) > hookglass.MaxConditionValue {
		fault("value", fmt.Sprintf("may have %d characters at most", hookglass.MaxConditionValue))
		return p
	}
	if operator == hookglass.OperatorMatches {
		var err error
		if p, err = compilePattern(value); err != nil {
			fault("value", err.Error())
		}
	}
	return p
}

// Evaluate decides for the event of a context. Every condition is evaluated and recorded.
func (t *Trigger) Evaluate(c *Context) hookglass.TriggerResult {
	result := hookglass.TriggerResult{Matched: true, Conditions: make([]hookglass.ConditionResult, len(t.conditions))}
	for i, condition := range t.conditions {
		r := &result.Conditions[i]
		r.Condition = condition
		values := fieldValues(c.event.ev, condition.Field)
		r.Absent = len(values) == 0
		shown := strings.Join(values, ", ")
		if condition.Field == "sender" {
			shown = c.event.ev.From
		}
		r.Actual, _ = cut(hookglass.Readable(shown), maxActual)
		if condition.Field == "provider" && c.event.ev.Provider == hookglass.UnknownProvider && takesNoValue(condition.Operator) {
			values, r.Absent = nil, true // an unrecognised provider does not exist, though it can be compared by name
		}
		var err error
		r.Matched, err = holds(condition.Operator, values, condition.Value, t.patterns[i], &c.patterns)
		if err != nil {
			r.Failure = &hookglass.Failure{Code: hookglass.FailureCondition, Message: sentence(err)}
		}
		result.Matched = result.Matched && r.Matched
	}
	return result
}

func takesNoValue(operator string) bool {
	return operator == hookglass.OperatorExists || operator == hookglass.OperatorNotExists
}

// fieldValues returns the values of an event's field that conditions compare, as displayed: none when the field is
// absent, several for senders and tags.
func fieldValues(ev *hookglass.Event, field string) []string {
	value := ""
	switch field {
	case "provider":
		value = ev.Provider
	case "event_type":
		value = ev.EventType
	case "signature_status":
		value = string(ev.SignatureStatus)
	case "http_method":
		value = ev.Method
	case "request_path":
		value = hookglass.Readable(ev.Path)
	case "content_type":
		value = hookglass.Readable(ev.ContentType)
	case "sender":
		return senders(ev.From)
	case "email_subject":
		value = ev.Subject
	case "has_tag":
		return ev.Tags
	}
	if value == "" {
		return nil
	}
	return []string{value}
}

// senders returns what a condition on the sender compares: the From header as written, and each bare address in it,
// which is what people type.
func senders(from string) []string {
	if from == "" {
		return nil
	}
	values := []string{from}
	for _, a := range email.Addresses(from) {
		if a.Address != from {
			values = append(values, a.Address)
		}
	}
	return values
}

// holds applies an operator to the values of a field. A negated operator holds when no value matches, so also for an
// absent field.
func holds(operator string, values []string, want string, p pattern, b *budget) (bool, error) {
	switch operator {
	case hookglass.OperatorExists:
		return len(values) > 0, nil
	case hookglass.OperatorNotExists:
		return len(values) == 0, nil
	case hookglass.OperatorEquals:
		return slices.Contains(values, want), nil
	case hookglass.OperatorNotEquals:
		return !slices.Contains(values, want), nil
	case hookglass.OperatorContains:
		return slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, want) }), nil
	case hookglass.OperatorNotContains:
		return !slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, want) }), nil
	}
	for _, v := range values {
		if matched, err := b.match(p, v); matched || err != nil {
			return matched, err
		}
	}
	return false, nil
}

// Guard are the conditions of a step, all of which must match. It is safe for concurrent use.
type Guard struct{ conditions []guard }

type guard struct {
	source   string
	path     jsondoc.Pointer
	operator string
	value    jsondoc.Value
	pattern  pattern
}

// NewGuard checks the conditions of a step (spec: decisions, section 8). The faults name conditions.0.path and the
// like; a guard with faults is not to be used. The caller checks with [Guard.Steps] that the steps named in sources run
// earlier.
func NewGuard(conditions []hookglass.StepCondition) (*Guard, []hookglass.FieldError) {
	g := &Guard{make([]guard, len(conditions))}
	faults := tooMany(len(conditions))
	for i, c := range conditions {
		fault := func(field, message string) {
			faults = append(faults, hookglass.FieldError{Field: fmt.Sprintf("conditions.%d.%s", i, field), Message: message})
		}
		one := &g.conditions[i]
		one.source, one.operator = c.Source, c.Operator
		if !validSource(c.Source, "request", "provider", "email", "endpoint") {
			fault("source", "must be request, provider, email, endpoint or steps.<reference_key>")
		}
		var err error
		if one.path, err = jsondoc.ParsePointer(c.Path); err != nil {
			fault("path", err.Error())
		} else if utf8.RuneCountInString(c.Path) > hookglass.MaxConditionValue {
			fault("path", fmt.Sprintf("may have %d characters at most", hookglass.MaxConditionValue))
		}
		if !checkOperator(c.Operator, c.Value != nil, fault) {
			continue
		}
		if one.value, err = jsondoc.Parse(c.Value, jsondoc.Wide()); err != nil || !one.value.Scalar() {
			fault("value", "must be a string, a number, true, false or null")
			continue
		}
		if one.value.Kind() != jsondoc.String && c.Operator != hookglass.OperatorEquals && c.Operator != hookglass.OperatorNotEquals {
			fault("value", "must be a string with "+c.Operator)
			continue
		}
		one.pattern = checkValue(c.Operator, one.value.Text(), fault)
	}
	return g, faults
}

// validSource reports whether a source is one of the names or an earlier step's.
func validSource(source string, names ...string) bool {
	ref, step := strings.CutPrefix(source, "steps.")
	return step && ref != "" && !strings.ContainsAny(ref, "./") || slices.Contains(names, source)
}

// Steps returns the reference keys of the steps that the conditions read, each once.
func (g *Guard) Steps() []string {
	var keys []string
	for _, c := range g.conditions {
		if ref, ok := strings.CutPrefix(c.source, "steps."); ok && !slices.Contains(keys, ref) {
			keys = append(keys, ref)
		}
	}
	return keys
}

// Evaluate reports whether all conditions match. It fails on a source that the event or the run does not have, and on a
// pattern that takes too long (spec, "Failure handling rules"); then the rest is not evaluated.
func (g *Guard) Evaluate(c *Context) (bool, *hookglass.Failure) {
	for i := range g.conditions {
		matched, err := g.conditions[i].holds(c)
		if err != nil {
			return false, &hookglass.Failure{Code: hookglass.FailureCondition, Message: fmt.Sprintf("Condition %d: %s.", i+1, err)}
		}
		if !matched {
			return false, nil
		}
	}
	return true, nil
}

func (g *guard) holds(c *Context) (bool, error) {
	v, found, absent, err := c.lookUp(g.source, g.path)
	if err != nil {
		return false, fmt.Errorf("the source %s is not available: %w", g.source, err)
	}
	switch g.operator {
	case hookglass.OperatorExists:
		return !absent, nil
	case hookglass.OperatorNotExists:
		return absent, nil
	case hookglass.OperatorEquals:
		return found && g.equals(v), nil
	case hookglass.OperatorNotEquals:
		return !found || !g.equals(v), nil
	}
	var texts []string
	switch {
	case absent:
	case v.Scalar():
		texts = []string{v.Text()}
	case v.Kind() == jsondoc.Array && g.operator != hookglass.OperatorMatches:
		for _, element := range v.All() {
			if element.Scalar() && element.Text() == g.value.Text() {
				texts = []string{element.Text()} // an array contains its elements, not parts of them
			}
		}
	}
	return holds(g.operator, texts, g.value.Text(), g.pattern, &c.patterns)
}

// equals compares by value. A string also equals the number or boolean that it spells: trigger conditions, which users
// meet first, compare only text.
func (g *guard) equals(v jsondoc.Value) bool {
	if jsondoc.Same(v, g.value) {
		return true
	}
	return g.value.Kind() == jsondoc.String && v.Scalar() && v.Kind() != jsondoc.Null && v.Text() == g.value.Text()
}

// sentence turns an error's text into a sentence for the user.
func sentence(err error) string {
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
