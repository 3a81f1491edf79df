// Package ledger is the page of what became of all that arrived at an endpoint in a window: the sums, whether they
// hold, and the events, also as a file.
package ledger

import (
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

// Files is the style.
//
//go:embed ledger.css
var Files embed.FS

// Model is what the page shows.
type Model struct {
	layout.Frame
	Asked  Asked
	Cursor string // the page of events that was asked for; empty: the first
	Fault  string // what is wrong with what was asked
	Failed string // why there are no sums, though what was asked is right
	Summed bool   // what follows is there; else it is fetched when the page is
	Ledger hookglass.Ledger
	Lines  []hookglass.LedgerLine
	Next   string // where the next page of events begins; empty: there is none
}

// Asked is the window as it was asked for.
type Asked struct{ From, To string }

// DefaultFrom is how far back a window begins where nothing is said.
const DefaultFrom = "1h"

// windows are what the page offers.
var windows = []struct{ from, name string }{{"1h", "Last hour"}, {"24h", "Last 24 hours"}, {"7d", "Last 7 days"}, {"31d", "Last 31 days"}}

func (m Model) offered() bool {
	for _, w := range windows {
		if w.from == m.Asked.From {
			return true
		}
	}
	return false
}

func (m Model) path(below string, more ...string) string {
	q := url.Values{"from": {m.Asked.From}}
	if m.Asked.To != "" {
		q.Set("to", m.Asked.To)
	}
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != "" {
			q.Set(more[i], more[i+1])
		}
	}
	return "/endpoints/" + string(m.Endpoint.ID) + "/ledger" + below + "?" + q.Encode()
}

// count is a number with what it is made of.
type count struct {
	what  string
	n     int64
	under bool   // a part of the one above
	of    string // what it is made of
}

// counts are the sums of arrivals.
func counts(l hookglass.Ledger) []count {
	return []count{
		{what: "received", n: l.Received()},
		{what: "refused", n: l.Received() - l.Stored, under: true, of: parts(l.Refused)},
		{what: "stored", n: l.Stored, under: true},
		{what: "kept", n: l.Kept, under: true, of: parts(l.Answers)},
		{what: "deleted", n: l.Deleted, under: true},
	}
}

func parts(of map[string]int64) string {
	all := make([]string, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, name+" × "+show.Count(of[name]))
	}
	return strings.Join(all, ", ")
}

var kinds = map[hookglass.ConsumerKind]string{
	hookglass.ConsumerTarget: "forwarding target", hookglass.ConsumerAction: "action", hookglass.ConsumerTunnel: "tunnel", hookglass.ConsumerVerdict: "mail verdict",
}

func consumer(c hookglass.LedgerConsumer) string {
	name := c.Name
	if name == "" {
		name = c.ID
	}
	if c.Gone {
		name += " (deleted)"
	}
	return strings.TrimSpace(kinds[c.Kind] + " " + name)
}

// answer is what a sender was answered.
func answer(l hookglass.LedgerLine) string {
	switch {
	case l.Event.Status != 0:
		return strconv.Itoa(l.Event.Status)
	case l.Event.Type == hookglass.EventEmail:
		return hookglass.AnswerAccepted
	}
	return hookglass.AnswerNone
}

// called is what the consumer with an id is called among those of the window.
func (m Model) called(kind hookglass.ConsumerKind, id string) string {
	for _, c := range m.Ledger.Consumers {
		if c.Kind == kind && c.ID == id && c.Name != "" {
			return show.Line(c.Name)
		}
	}
	return id
}

// byID is what a consumer is called in the file, where names that change tell nothing.
func byID(_ hookglass.ConsumerKind, id string) string { return id }

// became is what became of an event with whom it was for, in words.
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

// outcome is what became of an event, in a cell of the page.
func outcome(l hookglass.LedgerLine, called func(kind hookglass.ConsumerKind, id string) string) string {
	if all := became(l, called); len(all) > 0 {
		return strings.Join(all, ", ")
	}
	return "–"
}

// Head are the names of the columns of the file.
var Head = []string{"received_at", "id", "type", "size", "body_sha256", "ignored", "answer", "became"}

// Record is one event as a line of the file. Nothing in it is text that a sender wrote.
func Record(l hookglass.LedgerLine) []string {
	e := l.Event
	return []string{
		e.ReceivedAt.UTC().Format(hookglass.TimeLayout), string(e.ID), string(e.Type), strconv.FormatInt(e.Size, 10), l.SHA256,
		strconv.FormatBool(e.Ignored != ""), answer(l), strings.Join(became(l, byID), "; "),
	}
}
