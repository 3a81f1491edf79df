package flows

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/flow"
)

// Form is a flow as typed.
type Form struct {
	Name    string
	Timeout string // seconds
	Order   string // ordered or any
	Since   string // how far back events count; empty: from now on
	Steps   []Step
	Added   bool // the last step was just added and takes the focus
	Unsent  bool // it holds what was typed on the page before
	Faults  []hookglass.FieldError

	Endpoints []hookglass.Endpoint // for a step to choose from: the first ones
}

// Step is a step as typed.
type Step struct {
	Key, Endpoint, Provider, EventType, Subject, From, Query string

	Within  string // seconds
	How     string // at_least, exactly or never
	Count   string
	Where   string // lines: part = value, or part contains value
	Extract string // lines: name = part
}

// How a step counts events.
const (
	atLeast = "at_least"
	exactly = "exactly"
	never   = "never"
)

// sinces lists how far back events may count.
var sinces = []struct{ value, name string }{{"", "from now on"}, {"30s", "including the last 30 seconds"}, {"5m", "including the last 5 minutes"}, {"1h", "including the last hour"}}

// NewForm returns an empty form.
func NewForm() Form {
	return Form{Timeout: "300", Order: "ordered", Steps: []Step{{How: atLeast, Count: "1"}}}
}

// FormOf returns the form that starts a flow again.
func FormOf(p hookglass.FlowPlan) Form {
	f := Form{Name: p.Name, Timeout: seconds(p.Timeout), Order: "ordered"}
	if p.AnyTurn {
		f.Order = "any"
	}
	for _, s := range p.Steps {
		step := Step{
			Key: s.Key, Endpoint: string(s.EndpointID), Provider: s.Provider, EventType: s.EventType, Subject: s.Subject, From: s.From, Query: s.Query,
			Within: seconds(s.Within), How: atLeast, Count: strconv.Itoa(max(s.Count, 1)),
		}
		switch {
		case s.Never:
			step.How = never
		case s.Exactly:
			step.How = exactly
		}
		for _, w := range s.Where {
			sign := " = "
			if w.Contains {
				sign = contains
			}
			step.Where += w.Part + sign + w.Value + "\n"
		}
		for _, e := range s.Extract {
			step.Extract += e.Name + " = " + e.Source + "\n"
		}
		f.Steps = append(f.Steps, step)
	}
	return f
}

func seconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// ReadForm reads the form that a browser sends.
func ReadForm(v url.Values) Form {
	f := Form{Name: strings.TrimSpace(v.Get("name")), Timeout: strings.TrimSpace(v.Get("timeout_seconds")), Order: v.Get("order"), Since: v.Get("since")}
	for i := 0; i < hookglass.MaxFlowSteps && v.Has(field(i, "endpoint_id")); i++ {
		text := func(name string) string { return strings.TrimSpace(v.Get(field(i, name))) }
		lines := func(name string) string { return strings.ReplaceAll(text(name), "\r\n", "\n") }
		f.Steps = append(f.Steps, Step{
			Key: text("id"), Endpoint: text("endpoint_id"), Provider: text("provider"), EventType: text("event_type"), Subject: text("subject"), From: text("from"),
			Query: text("q"), Within: text("within_seconds"), How: text("how"), Count: text("count"), Where: lines("where"), Extract: lines("extract"),
		})
	}
	return f
}

// field returns the name of a step's field. Its faults have the same name after "flow.".
func field(step int, name string) string { return fmt.Sprintf("steps.%d.%s", step, name) }

// More returns the form with another step, up to the limit.
func (f Form) More() Form {
	f.Unsent = true
	if len(f.Steps) < hookglass.MaxFlowSteps {
		f.Steps, f.Added = append(f.Steps, Step{How: atLeast, Count: "1"}), true
	}
	return f
}

// Less returns the form without a step. The last step stays.
func (f Form) Less(step int) Form {
	f.Unsent = true
	if step >= 0 && step < len(f.Steps) && len(f.Steps) > 1 {
		f.Steps = append(f.Steps[:step:step], f.Steps[step+1:]...)
	}
	return f
}

// Draft returns the flow that the form describes.
func (f Form) Draft(now time.Time) (d flow.Draft, faults []hookglass.FieldError) {
	fault := func(field, message string) {
		faults = append(faults, hookglass.FieldError{Field: "flow." + field, Message: message})
	}
	duration := func(field, text string) time.Duration {
		n, err := strconv.ParseFloat(text, 64)
		if text == "" {
			return 0
		}
		if err != nil || !(n >= 0.001 && n <= hookglass.MaxFlowTimeout.Seconds()) {
			fault(field, "must be above 0 and at most 86400")
			return 0
		}
		return time.Duration(n * float64(time.Second))
	}
	d = flow.Draft{Name: f.Name, AnyTurn: f.Order == "any", Timeout: duration("timeout_seconds", f.Timeout)}
	if back, err := time.ParseDuration(f.Since); err == nil {
		d.Since = now.Add(-back)
	}
	for i, s := range f.Steps {
		at := func(name string) string { return field(i, name) }
		step := flow.StepDraft{Endpoint: s.Endpoint}
		step.FlowStep = hookglass.FlowStep{
			Key: s.Key, Provider: s.Provider, EventType: s.EventType, Subject: s.Subject, From: s.From, Query: s.Query,
			Within: duration(at("within_seconds"), s.Within), Never: s.How == never, Exactly: s.How == exactly,
		}
		if s.Endpoint == "" {
			fault(at("endpoint_id"), "is required")
		}
		if !step.Never {
			var err error
			if step.Count, err = strconv.Atoi(s.Count); err != nil || step.Count < 1 || step.Count > hookglass.MaxFlowCount {
				fault(at("count"), "must be from 1 to 1000")
			}
		}
		for line := range lines(s.Where) {
			w, ok := where(line)
			if !ok {
				fault(at("where"), "has a line that is neither “part = value” nor “part contains value”")
				break
			}
			step.Where = append(step.Where, w)
		}
		for line := range lines(s.Extract) {
			name, source, ok := strings.Cut(line, "=")
			if !ok {
				fault(at("extract"), "has a line that is not “name = part”")
				break
			}
			step.Extract = append(step.Extract, hookglass.FlowExtract{Name: strings.TrimSpace(name), Source: strings.TrimSpace(source)})
		}
		d.Steps = append(d.Steps, step)
	}
	return d, faults
}

// lines returns the lines of a text that are not blank.
func lines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !yield(line) {
				return
			}
		}
	}
}

const contains = " contains "

// where parses a condition. The first of the two operators counts, since a value may contain the other.
func where(line string) (w hookglass.FlowWhere, ok bool) {
	equals, holds := strings.Index(line, "="), strings.Index(line, contains)
	var part, value string
	switch {
	case holds >= 0 && (equals < 0 || holds < equals):
		w.Contains = true
		part, value, ok = strings.Cut(line, contains)
	default:
		part, value, ok = strings.Cut(line, "=")
	}
	w.Part, w.Value = strings.TrimSpace(part), strings.TrimSpace(value)
	return w, ok && w.Part != "" && (w.Value != "" || !w.Contains)
}

// fault returns what is wrong with a field.
func (f Form) fault(field string) string {
	for _, fault := range f.Faults {
		if strings.TrimPrefix(fault.Field, "flow.") == field {
			return "This " + fault.Message + "."
		}
	}
	return ""
}

// unlisted reports whether a step has an endpoint that is not among those to choose from, or was deleted: a browser
// would choose another one in its place.
func (f Form) unlisted(endpoint string) bool {
	return endpoint != "" && !slices.ContainsFunc(f.Endpoints, func(e hookglass.Endpoint) bool { return string(e.ID) == endpoint })
}

// shown lists the fields of a step that show their fault.
var shown = []string{"endpoint_id", "id", "provider", "event_type", "subject", "from", "q", "within_seconds", "count", "where", "extract"}

// elsewhere returns the faults that no field shows.
func (f Form) elsewhere() (all []string) {
	known := map[string]bool{"flow.name": true, "flow.timeout_seconds": true, "flow.order": true}
	for i := range f.Steps {
		for _, name := range shown {
			known["flow."+field(i, name)] = true
		}
	}
	for _, fault := range f.Faults {
		if !known[fault.Field] {
			all = append(all, strings.TrimPrefix(fault.Field, "flow.")+" "+fault.Message+".")
		}
	}
	return all
}

// beyond reports whether a step uses any of the options that are folded otherwise.
func (f Form) beyond(i int) bool {
	s := f.Steps[i]
	open := s.Key+s.Provider+s.From+s.Query+s.Where+s.Extract != "" || s.How != atLeast && s.How != "" || s.Count != "1" && s.Count != ""
	for _, name := range []string{"id", "provider", "from", "q", "count", "where", "extract"} {
		open = open || f.fault(field(i, name)) != ""
	}
	return open
}
