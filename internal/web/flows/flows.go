// Package flows renders the pages of flows: the list, one flow with the state of its steps, and the form that starts
// one.
package flows

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Files holds the style.
//
//go:embed flows.css
var Files embed.FS

// List is the part of the list page that refreshes.
type List struct {
	State hookglass.FlowState // only flows in this state; empty: all
	Flows []hookglass.Flow
	At    string // of this page; empty: the newest
	Older string // of the next page; empty: none
	Now   time.Time
}

// ListModel is the content of the list page.
type ListModel struct {
	layout.Frame
	List
	Notice string
}

// One is the part of a flow's page that refreshes.
type One struct {
	Flow  hookglass.Flow
	Names map[hookglass.EndpointID]string // of existing endpoints
	Now   time.Time
}

// Model is the content of the page of one flow.
type Model struct {
	layout.Frame
	One
}

// NewModel is the content of the page with the form.
type NewModel struct {
	layout.Frame
	Form
}

func path(f hookglass.Flow, below string) string { return "/flows/" + f.ID + below }

// States lists the filters of the list.
var States = []hookglass.FlowState{hookglass.FlowPending, hookglass.FlowPassed, hookglass.FlowFailed, hookglass.FlowExpired}

// name returns the name of a flow, or its id.
func name(f hookglass.Flow) string { return cmp.Or(f.Plan.Name, f.ID) }

// every returns how often a part refreshes, in milliseconds. It is "" once nothing will change.
func every(goesOn bool) string {
	if goesOn {
		return "1000"
	}
	return ""
}

func (l List) every() string {
	return every(slices.ContainsFunc(l.Flows, func(f hookglass.Flow) bool { return !f.State.Final() }))
}

// self returns the address of the part.
func (l List) self() string { return "/flows/rows?state=" + string(l.State) + "&cursor=" + l.At }

// tone returns the class of a state's badge.
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

// far returns how many steps have passed.
func far(f hookglass.Flow) string {
	passed := 0
	for _, s := range f.Progress.Steps {
		if s.State == hookglass.FlowStepPassed {
			passed++
		}
	}
	return fmt.Sprintf("%d of %d", passed, len(f.Plan.Steps))
}

// say describes the progress for screen readers.
func say(f hookglass.Flow) string {
	return fmt.Sprintf("%s: %s steps passed", f.State, far(f))
}

// lasting formats a duration.
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

// conditions returns what an event must match to count for a step.
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

// wants says how many events a step expects, and how soon.
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
