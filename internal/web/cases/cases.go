// Package cases is the pages of an endpoint's replay cases: the list, and one case with its form, its runs and what
// each answer was judged to be.
package cases

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files are the style and the script.
//
//go:embed cases.css cases.js
var Files embed.FS

// Script is the module of the form.
const Script = "cases.js"

// List is the cases of an endpoint, a part that is kept fresh.
type List struct {
	Endpoint hookglass.EndpointID
	Cases    []hookglass.ReplayCase
	At       string // the cursor of this page; empty: the newest
	Older    string // the cursor of the rest; empty: none
	Now      time.Time
}

// ListModel is what the page of all cases shows.
type ListModel struct {
	layout.Frame
	List
	Notice string
	Recent []*hookglass.Event // to make a case of
}

// Runs is the history of a case, a part that is kept fresh.
type Runs struct {
	Endpoint hookglass.EndpointID
	Case     string
	Runs     []hookglass.ReplayCaseRun // newest first
	Open     *hookglass.ReplayCaseRun  // the one that is shown whole
	Older    string                    // the cursor of the rest; empty: none
	Asked    string                    // the query that chose the page and the open run
	Now      time.Time
}

// Model is what the page of one case shows.
type Model struct {
	layout.Frame
	Case    *hookglass.ReplayCase // nil: a new one
	Source  *hookglass.Event      // nil: deleted meanwhile
	Form    Form
	Check   Check
	Runs    Runs
	Key     string // the idempotency key of this page's Run
	Notice  string
	Problem string
	Stale   int64 // the version that the case has by now, where somebody else changed it; 0: nobody did
	Plan    string
}

// Check is what the assertions of a form make of the last answer.
type Check struct {
	Response *hookglass.TargetResponse // nil: there is none yet
	At       time.Time
	Results  []hookglass.AssertionResult
	Passed   bool
	Fault    string // why nothing could be judged
	Asked    bool   // a button asked for it, and gets it in sight
	Now      time.Time
}

func (l List) path(below string) string { return "/endpoints/" + string(l.Endpoint) + "/cases" + below }

// page returns an address with the cursor of a page.
func (l List) page(below, cursor string) string {
	if cursor != "" {
		below += "?cursor=" + cursor
	}
	return l.path(below)
}

func (r Runs) path(below string) string {
	return "/endpoints/" + string(r.Endpoint) + "/cases/" + r.Case + below
}

func (m Model) path(below string) string {
	path := "/endpoints/" + string(m.Endpoint.ID) + "/cases"
	if m.Case != nil {
		path += "/" + m.Case.ID
	}
	return path + below
}

// every is how often a part is made fresh, in milliseconds: often while something is under way.
func every(underWay bool) string {
	if underWay {
		return "700"
	}
	return "6000"
}

func (l List) underWay() bool {
	return slices.ContainsFunc(l.Cases, func(c hookglass.ReplayCase) bool { return c.LastRun != nil && !c.LastRun.State.Final() })
}

func (r Runs) underWay() bool {
	return slices.ContainsFunc(r.Runs, func(run hookglass.ReplayCaseRun) bool { return !run.State.Final() })
}

// key returns the idempotency key of Run in the list. It stays the same until the case or its last run changes, so that
// a double click runs once.
func key(c hookglass.ReplayCase) string {
	last := "first"
	if c.LastRun != nil {
		last = c.LastRun.ID
	}
	return fmt.Sprintf("web-%d-%s", c.LockVersion, last)
}

// word returns the name of a state for people.
func word(s hookglass.RunState) string { return strings.ReplaceAll(string(s), "_", " ") }

func tone(s hookglass.RunState) string {
	switch s {
	case hookglass.RunPassed:
		return "good"
	case hookglass.RunAssertionFailed, hookglass.RunTransportFailed:
		return "bad"
	case hookglass.RunBlocked, hookglass.RunUnknown:
		return "warn"
	}
	return "busy"
}

// meaning explains a state.
func meaning(s hookglass.RunState) string {
	switch s {
	case hookglass.RunQueued:
		return "Waiting for its turn."
	case hookglass.RunRunning:
		return "In progress."
	case hookglass.RunPassed:
		return "The response meets all assertions."
	case hookglass.RunAssertionFailed:
		return "The target responded, but an assertion failed."
	case hookglass.RunTransportFailed:
		return "The target could not be reached and received nothing."
	case hookglass.RunBlocked:
		return "Nothing was sent."
	case hookglass.RunUnknown:
		return "It is not known whether the target received the request, so it is not retried automatically."
	}
	return ""
}

func target(c hookglass.ReplayCaseConfig) string {
	if c.TargetURL == hookglass.TunnelTarget {
		return "the connected machine (tunnel)"
	}
	return show.Line(c.TargetURL)
}

func wanted(a hookglass.Assertions) string {
	var parts []string
	if a.StatusClass != "" {
		parts = append(parts, a.StatusClass)
	}
	if a.StatusCode != 0 {
		parts = append(parts, fmt.Sprintf("status %d", a.StatusCode))
	}
	if len(a.JSONSubset) > 0 {
		parts = append(parts, "JSON")
	}
	return strings.Join(parts, ", ")
}

// Title is an event in a line.
func Title(e *hookglass.Event) string {
	what := inspector.Title(e)
	if e.Type != hookglass.EventEmail {
		what = e.Method + " " + what
	}
	if e.EventType != "" && what != e.Method+" "+e.EventType {
		what += " · " + e.EventType
	}
	return show.Short(show.Line(what), 110)
}

// maxShownBody is how much of an answer a page shows.
const maxShownBody = 32 << 10

func body(r *hookglass.TargetResponse) string {
	text, cut := show.Cut(string(r.Body), maxShownBody)
	text = show.Text(text)
	if cut || r.Truncated {
		text += "\n…"
	}
	return text
}

func value(b []byte) string {
	if b == nil {
		return "(none)"
	}
	var line bytes.Buffer
	if json.Compact(&line, b) != nil { // line breaks of indentation would be shown as symbols
		return show.Line(string(b))
	}
	return show.Line(line.String())
}

func where(a hookglass.AssertionResult) string {
	switch {
	case a.Kind == "status":
		return "status"
	case a.Path == "":
		return "the whole body"
	}
	return show.Line(a.Path)
}
