// Package actions is the pages of an endpoint's actions: the list, the builder, trying an action out, and its runs.
//
// The builder is a form whose buttons all work without scripts: the server applies the edit and answers with the form.
// With scripts, the answer replaces the form in the page, and errors are shown while the user types.
package actions

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files are the style and the script.
//
//go:embed actions.css actions.js
var Files embed.FS

// Script is the module of the builder.
const Script = "actions.js"

// ListModel is what the page of all actions shows.
type ListModel struct {
	layout.Frame
	Actions []hookglass.Action // by position
	Runs    Runs
	Plan    string // why the account may have none; empty: it may
	Notice  string
	Problem string
}

// Runs are runs of one action or of all, newest first: a part that is kept fresh.
type Runs struct {
	Endpoint hookglass.EndpointID
	Action   string            // empty: of all
	Names    map[string]string // of actions, by id
	Runs     []hookglass.ActionRun
	Open     *hookglass.ActionRun // the one that is shown whole
	Older    string               // the cursor of the rest; empty: none
	Asked    string               // the query that chose the page and the open run
	Now      time.Time
}

// Model is what the page of one action shows.
type Model struct {
	layout.Frame
	Action   *hookglass.Action // nil: a new one
	Form     Form
	Recent   []*hookglass.Event // to try it on
	Channels []hookglass.Channel
	Tags     []hookglass.Tag
	Secrets  []string // names
	Tried    Tried
	Backtest *action.Backtest // nil: not asked for
	Runs     Runs
	Notice   string
	Problem  string
	Stale    bool // the action was changed since the form was first shown
	Title    func(*hookglass.Event) string
	Now      time.Time
}

// Tried is the result of trying the form: its errors, or what it would do with an event.
type Tried struct {
	Asked   bool // by a button: the page comes back here
	Faults  []Fault
	Problem string
	Result  *action.PreviewResult // nil: no event was chosen
}

// landing makes the first line of the result the place where the page comes back. Of the whole result, which is taller
// than the screen, browsers would show the middle.
func (t Tried) landing() templ.Attributes {
	if !t.Asked {
		return nil
	}
	return templ.Attributes{"tabindex": "-1", "autofocus": true}
}

func (m ListModel) path(below string) string {
	return "/endpoints/" + string(m.Frame.Current) + "/actions" + below
}

func (m Model) base() string { return "/endpoints/" + string(m.Frame.Current) + "/actions" }

// self is the address of the builder.
func (m Model) self() string {
	if m.Action == nil {
		return m.base() + "/new"
	}
	return m.base() + "/" + m.Action.ID
}

// RunsPart is the fragment of the runs, which are below the description of the action.
const RunsPart = "#runs-title"

func (r Runs) path(below string) string {
	path := "/endpoints/" + string(r.Endpoint) + "/actions"
	if r.Action != "" {
		path += "/" + r.Action
	}
	return path + below
}

func (r Runs) every() string {
	if slices.ContainsFunc(r.Runs, func(run hookglass.ActionRun) bool { return !run.Status.Final() }) {
		return "700"
	}
	return "5000"
}

func (r Runs) name(id string) string { return cmp.Or(r.Names[id], "a deleted action") }

var means = map[string]string{
	"forward": "Sends the request on as it came in.", "http_request": "Sends a request of your own, built from templates.",
	"transform": "Builds a value for later steps.", "notify": "Sends a message to a channel.", "tag": "Adds a tag to the request.",
	"ignore": "Hides the request from lists, alerts and health figures.",
}

var fieldTitles = map[string]string{
	"provider": "Provider", "event_type": "Event type", "signature_status": "Signature status", "http_method": "HTTP method", "request_path": "Request path",
	"content_type": "Content type", "sender": "Sender (From)", "email_subject": "Email subject", "has_tag": "Has tag",
}

func operator(o string) string { return strings.ReplaceAll(o, "_", " ") }

// summary is an action's conditions in a line.
func summary(a hookglass.Action) string {
	if len(a.Conditions) == 0 {
		return "Runs on every request"
	}
	parts := make([]string, len(a.Conditions))
	for i, c := range a.Conditions {
		parts[i] = strings.TrimSpace(fieldTitles[c.Field] + " " + operator(c.Operator) + " " + c.Value)
	}
	return show.Short(show.Line("Runs when "+strings.Join(parts, " and ")), 170)
}

func runTone(s hookglass.RunStatus) string {
	switch s {
	case hookglass.ActionRunCompleted:
		return "good"
	case hookglass.ActionRunFailed, hookglass.ActionRunStopped:
		return "bad"
	}
	return "busy"
}

func stepTone(s hookglass.StepStatus) string {
	switch s {
	case hookglass.StepCompleted:
		return "good"
	case hookglass.StepFailed:
		return "bad"
	case hookglass.StepStopped:
		return "warn"
	case hookglass.StepRunning:
		return "busy"
	}
	return ""
}

func reason(text string) string { return strings.ReplaceAll(text, "_", " ") }

func duration(r hookglass.ActionRun) string {
	if r.StartedAt.IsZero() || r.FinishedAt.IsZero() {
		return ""
	}
	return show.Took(r.FinishedAt.Sub(r.StartedAt))
}

// maxShown is how much of a JSON text a page shows.
const maxShown = 24 << 10

// pretty indents JSON for a person.
func pretty(text []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		b.Reset()
		b.Write(text)
	}
	short, cut := show.Cut(show.Text(b.String()), maxShown)
	if cut {
		short += "\n…"
	}
	return short
}

// sources lists what a transform and a condition before a step may read.
func (f Form) sources(before int, also ...string) []string {
	all := slices.Clone(also)
	for i, s := range f.Steps {
		if i < before && s.Key != "" {
			all = append(all, "steps."+s.Key)
		}
	}
	return all
}

func matched(b *action.Backtest) (n, other int) {
	for _, e := range b.Events {
		if e.Stored.Trigger.Matched {
			n++
		}
		if e.Submitted != nil && e.Submitted.Trigger.Matched {
			other++
		}
	}
	return n, other
}

// verdict summarises a back-test in a sentence.
func verdict(b *action.Backtest) string {
	n, other := matched(b)
	text := fmt.Sprintf("%s: the saved action matches %d", show.Plural(int64(len(b.Events)), "request"), n)
	if compared(b) {
		text += fmt.Sprintf(", with your changes %d", other)
	}
	if !b.Complete {
		text += ". Time ran out before all requests were tried"
	}
	return text + "."
}

func compared(b *action.Backtest) bool { return len(b.Events) > 0 && b.Events[0].Submitted != nil }

func jsonOrNone(text []byte) string {
	if text == nil {
		return "(none)"
	}
	return show.Short(show.Line(string(text)), 300)
}

func channelChosen(c hookglass.Channel, value string) bool { return c.ID == value || c.Name == value }

func (m Model) foreignChannel(value string) bool {
	return value != "" && !slices.ContainsFunc(m.Channels, func(c hookglass.Channel) bool { return channelChosen(c, value) })
}
