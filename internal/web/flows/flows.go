// Package flows are the pages of expectations over webhooks and mail: the list, one with the state of its steps, and
// the form that begins one.
package flows

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Files is the style.
//
//go:embed flows.css
var Files embed.FS

// List is the part of the list's page that is kept fresh.
type List struct {
	State hookglass.FlowState // only flows of this one; empty: all
	Flows []hookglass.Flow
	At    string // where the page begins; empty: at the newest
	Older string // where the next page begins; empty: there is none
	Now   time.Time
}

// ListModel is what the list's page shows.
type ListModel struct {
	layout.Frame
	List
	Notice string
}

// One is the part of a flow's page that is kept fresh.
type One struct {
	Flow  hookglass.Flow
	Names map[hookglass.EndpointID]string // of endpoints that are there
	Now   time.Time
}

// Model is what the page of one flow shows.
type Model struct {
	layout.Frame
	One
}

// NewModel is what the page of the form shows.
type NewModel struct {
	layout.Frame
	Form
}

func path(f hookglass.Flow, below string) string { return "/flows/" + f.ID + below }

// states are what the list may be narrowed to.
var states = []hookglass.FlowState{hookglass.FlowPending, hookglass.FlowPassed, hookglass.FlowFailed, hookglass.FlowExpired}

// name is the name of a flow, or its id.
func name(f hookglass.Flow) string {
	if f.Plan.Name == "" {
		return f.ID
	}
	return f.Plan.Name
}

// every is how often a part is looked at again, in milliseconds; "" once nothing will change.
func every(goesOn bool) string {
	if goesOn {
		return "1000"
	}
	return ""
}

func (l List) every() string {
	for _, f := range l.Flows {
		if !f.State.Final() {
			return every(true)
		}
	}
	return ""
}

// self is where the part can be fetched again.
func (l List) self() string { return "/flows/rows?state=" + string(l.State) + "&cursor=" + l.At }

// tone is how the mark of a state looks.
func tone(state string) string {
	switch state {
	case "passed":
		return "good"
	case "failed", "expired":
		return "bad"
	case "watching", "holding", "pending":
		return "busy"
	}
	return ""
}

// far says how many steps have passed.
func far(f hookglass.Flow) string {
	passed := 0
	for _, s := range f.Progress.Steps {
		if s.State == hookglass.FlowStepPassed {
			passed++
		}
	}
	return fmt.Sprintf("%d of %d", passed, len(f.Plan.Steps))
}

// say is what changed, for who does not see it.
func say(f hookglass.Flow) string {
	return fmt.Sprintf("%s: %s steps passed", f.State, far(f))
}

// lasting is how long something took or may take.
func lasting(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
	}
	text := d.Round(100 * time.Millisecond).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// conditions are what an event must be to count for a step.
func conditions(s hookglass.FlowStep) (all []condition) {
	add := func(what, is string) {
		if is != "" {
			all = append(all, condition{what, is})
		}
	}
	add("provider", s.Provider)
	add("event type", s.EventType)
	add("subject", s.Subject)
	add("from", s.From)
	add("query", s.Query)
	for _, w := range s.Where {
		if w.Contains {
			add(w.Part, "contains "+w.Value)
		} else {
			add(w.Part, w.Value)
		}
	}
	for _, e := range s.Extract {
		add("extracts "+e.Name, e.Source)
	}
	return all
}

type condition struct{ what, is string }

// wants says how many events a step takes, and how soon.
func wants(s hookglass.FlowStep) string {
	var b strings.Builder
	switch {
	case s.Never:
		b.WriteString("none")
	case s.Exactly:
		b.WriteString("exactly " + strconv.Itoa(s.Count))
	case s.Count > 1:
		b.WriteString("at least " + strconv.Itoa(s.Count))
	default:
		b.WriteString("one")
	}
	if s.Within > 0 {
		b.WriteString(", within " + lasting(s.Within))
	}
	return b.String()
}
