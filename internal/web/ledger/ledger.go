// Package ledger renders the page that accounts for all requests of an endpoint in a window: the totals, whether they
// balance, and the events, which it also exports as a file.
package ledger

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files holds the style.
//
//go:embed ledger.css
var Files embed.FS

// Model is the content of the page.
type Model struct {
	layout.Frame
	Asked  Asked
	Cursor string // of the requested page of events; empty: the first
	Fault  string // what is wrong with the requested window
	Failed string // why there are no totals for a valid window
	Summed bool   // the fields below are set; otherwise the page fetches them later
	Ledger hookglass.Ledger
	Lines  []hookglass.LedgerLine
	Next   string // of the next page of events; empty: none
}

// Asked is the requested window, as written: two times or durations that count back, as in the API. Not both are empty.
type Asked struct{ From, To string }

// back returns how far back a window begins that ends now, or "" for one that is described by [Asked.span].
func (a Asked) back() string {
	if a.To != "" || dated(a.From) {
		return ""
	}
	return a.From
}

func (a Asked) span() string {
	switch {
	case a.back() != "":
		return ""
	case a.To == "":
		return "Since " + a.From
	case a.From == "":
		return "The hour up to " + at(a.To)
	}
	return "From " + at(a.From) + " to " + at(a.To)
}

// dated reports whether a bound is a time, not a duration.
func dated(bound string) bool { return strings.Contains(bound, "-") }

func at(bound string) string {
	if dated(bound) {
		return bound
	}
	return bound + " ago"
}

// DefaultFrom is where a window starts if the address names none.
const DefaultFrom = "1h"

// windows lists the windows to choose from.
var windows = []layout.Window{
	{Value: "1h", Name: "1 hour"}, {Value: "24h", Name: "24 hours"},
	{Value: "7d", Name: "7 days"}, {Value: "31d", Name: "31 days"},
}

func (m Model) path(below string, more ...string) string {
	q := url.Values{}
	for pair := range slices.Chunk(append([]string{"from", m.Asked.From, "to", m.Asked.To}, more...), 2) {
		if pair[1] != "" {
			q.Set(pair[0], pair[1])
		}
	}
	return "/endpoints/" + string(m.Endpoint.ID) + "/ledger" + below + "?" + q.Encode()
}

// count is a line of the table of arrivals.
type count struct {
	what  string
	n     int64
	under bool   // a part of the one above
	of    string // the breakdown
}

// counts returns the totals of arrivals.
func counts(l hookglass.Ledger) []count {
	return []count{
		{what: "received", n: l.Received()},
		{what: "refused", n: l.Received() - l.Stored, under: true, of: parts(l.Refused)},
		{what: "stored", n: l.Stored, under: true},
		{what: "kept", n: l.Kept, under: true, of: parts(l.Answers)},
		{what: "deleted", n: l.Deleted, under: true},
	}
}

// parts says how many there are of each: a status that was answered, or a word for what became of them.
func parts(of map[string]int64) string {
	all := make([]string, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		word := name
		if _, err := strconv.Atoi(name); err == nil {
			word = "answered " + name
		}
		all = append(all, show.Count(of[name])+" "+word)
	}
	return strings.Join(all, ", ")
}

var kinds = map[hookglass.ConsumerKind]string{
	hookglass.ConsumerTarget: "forwarding target", hookglass.ConsumerAction: "action", hookglass.ConsumerTunnel: "tunnel", hookglass.ConsumerVerdict: "mail verdict",
}

func consumer(c hookglass.LedgerConsumer) string {
	name := cmp.Or(c.Name, c.ID)
	if c.Gone {
		name += " (deleted)"
	}
	return strings.TrimSpace(kinds[c.Kind] + " " + name)
}

// answer returns what the sender was answered.
func answer(l hookglass.LedgerLine) string {
	switch {
	case l.Event.Status != 0:
		return strconv.Itoa(l.Event.Status)
	case l.Event.Type == hookglass.EventEmail && l.Source == "": // no script answered it
		return hookglass.AnswerAccepted
	}
	return hookglass.AnswerNone
}

// called returns the name of a consumer of the window.
func (m Model) called(kind hookglass.ConsumerKind, id string) string {
	for _, c := range m.Ledger.Consumers {
		if c.Kind == kind && c.ID == id && c.Name != "" {
			return show.Line(c.Name)
		}
	}
	return id
}

// byID names a consumer in the file, by its id because names change.
func byID(_ hookglass.ConsumerKind, id string) string { return id }

// became describes the outcome of an event for each consumer.
func became(l hookglass.LedgerLine, called func(kind hookglass.ConsumerKind, id string) string) (all []string) {
	for _, f := range l.Forwards {
		name := called(hookglass.ConsumerTarget, strconv.FormatInt(f.TargetID, 10))
		all = append(all, fmt.Sprintf("target %s %s (%s)", name, f.State, show.Plural(int64(len(f.Attempts)), "attempt")))
	}
	for _, r := range l.Runs {
		word := "action"
		if r.Rerun {
			word = "rerun of action"
		}
		all = append(all, fmt.Sprintf("%s %s %s", word, called(hookglass.ConsumerAction, r.ActionID), r.Status))
	}
	if l.Waiting {
		all = append(all, "actions pending")
	}
	if len(l.Reports) > 0 || l.Tunnel != "" && l.Tunnel != hookglass.StateSkipped {
		all = append(all, "tunnel "+string(l.Tunnel))
	}
	if l.Verdict != "" {
		all = append(all, "verdict "+string(l.Verdict))
	}
	for _, r := range l.Replays {
		state := "failed"
		if r.Delivered {
			state = "delivered"
		}
		all = append(all, "replay "+state)
	}
	return all
}

// outcome describes the outcome of an event in a cell of the page.
func outcome(l hookglass.LedgerLine, called func(kind hookglass.ConsumerKind, id string) string) string {
	if all := became(l, called); len(all) > 0 {
		return strings.Join(all, ", ")
	}
	return "–"
}

// Head lists the columns of the file.
var Head = []string{"received_at", "id", "type", "size", "body_sha256", "ignored", "answer", "became"}

// Record returns an event as a line of the file. It contains no text that a sender wrote.
func Record(l hookglass.LedgerLine) []string {
	e := l.Event
	return []string{
		e.ReceivedAt.UTC().Format(hookglass.TimeLayout), string(e.ID), string(e.Type), strconv.FormatInt(e.Size, 10), l.SHA256,
		strconv.FormatBool(e.Ignored != ""), answer(l), strings.Join(became(l, byID), "; "),
	}
}
