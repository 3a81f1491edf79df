package actions

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"hookglass"
)

// Fault is what is wrong with a field of the form.
type Fault struct{ Field, Label, Text string }

// numbered matches the indexes in a fault's field that form fields write in brackets.
var numbered = regexp.MustCompile(`\b(steps|conditions|operations)\.(\d+)`)

// Refuse adds the service's errors to the form. It reports false for an error of another kind.
func (f *Form) Refuse(err error) bool {
	var e *hookglass.Error
	if !errors.As(err, &e) || len(e.Details) == 0 {
		return false
	}
	known := f.names()
	for _, d := range e.Details {
		field := numbered.ReplaceAllString(strings.TrimPrefix(d.Field, "endpoint_action."), "$1[$2]")
		at := field
		for at != "" && known[at] == "" {
			at = at[:max(strings.LastIndexByte(at, '.'), 0)]
		}
		// A set operation has one form field for its value, whatever the kind.
		if before, found := strings.CutSuffix(field, ".from"); found && known[before+".value"] != "" {
			at = before + ".value"
		} else if before, found := strings.CutSuffix(field, ".template"); found && known[before+".value"] != "" {
			at = before + ".value"
		}
		f.Faults = append(f.Faults, Fault{Field: at, Label: known[at], Text: strings.ToUpper(d.Message[:1]) + d.Message[1:] + "."})
	}
	return true
}

// names maps the fields of the form to their labels.
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
