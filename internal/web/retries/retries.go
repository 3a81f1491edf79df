// Package retries is the page of how an endpoint's senders retry. Each delivery is drawn as a line in time, and has its
// attempts beside it as a table: nothing is told by a place or a mark alone.
package retries

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files is the style.
//
//go:embed retries.css
var Files embed.FS

// Model is what the page shows.
type Model struct {
	layout.Frame
	Of      hookglass.Endpoint
	Script  string // as it is, or as it was typed
	Fault   string // what is wrong with what was typed
	Notice  string
	Profile api.RetryProfile
}

func (m Model) path(below string) string {
	return "/endpoints/" + string(m.Of.ID) + "/retries" + below
}

// retried are the deliveries with more than one attempt.
func retried(p api.RetryProfile) (groups []api.AttemptGroup) {
	for _, g := range p.Groups {
		if g.AttemptCount > 1 {
			groups = append(groups, g)
		}
	}
	return groups
}

// The picture of a delivery, in its own units.
const (
	lineWidth = 1000
	margin    = 14
)

// mark is an attempt in the picture.
type mark struct {
	X     string
	Class string
	Title string
}

// marks places the attempts of a delivery on its line.
func marks(g api.AttemptGroup) []mark {
	first, last := g.Attempts[0].ReceivedAt.Time, g.Attempts[len(g.Attempts)-1].ReceivedAt.Time
	all := make([]mark, len(g.Attempts))
	for i, a := range g.Attempts {
		x := float64(margin)
		if whole := last.Sub(first); whole > 0 {
			x += (lineWidth - 2*margin) * min(max(float64(a.ReceivedAt.Sub(first))/float64(whole), 0), 1) // the clock may have been set between two
		}
		all[i] = mark{strconv.FormatFloat(x, 'f', 1, 64), class(a), fmt.Sprintf("Attempt %d: %s after %s", i+1, a.Answer, lasting(a.ReceivedAt.Sub(first).Milliseconds()))}
	}
	return all
}

// class is what became of an attempt: taken, refused, or without an answer.
func class(a api.RetryAttempt) string {
	switch {
	case a.Status == nil:
		return "retry-none"
	case *a.Status >= 200 && *a.Status <= 299:
		return "retry-taken"
	}
	return "retry-refused"
}

// attempts is a number of them over several deliveries.
func attempts(r api.AttemptRange) string {
	most := show.Plural(int64(r.Max), "attempt")
	if r.Min == r.Max {
		return most
	}
	return strconv.Itoa(r.Min) + " to " + most
}

// told is a delivery in a sentence, for who does not see the picture.
func told(g api.AttemptGroup) string {
	answers := make([]string, len(g.Attempts))
	for i, a := range g.Attempts {
		answers[i] = a.Answer
	}
	return fmt.Sprintf("%s within %s, responses %s", show.Plural(int64(g.AttemptCount), "attempt"), span(g), strings.Join(answers, ", "))
}

func span(g api.AttemptGroup) string {
	return lasting(g.Attempts[len(g.Attempts)-1].ReceivedAt.Sub(g.Attempts[0].ReceivedAt.Time).Milliseconds())
}

func state(g api.AttemptGroup) (word, class string) {
	switch g.State {
	case string(hookglass.GroupDelivered):
		return "delivered", "badge good"
	case string(hookglass.GroupGivenUp):
		return "given up", "badge bad"
	}
	return "waiting", "badge"
}

// changed names the parts in which an attempt differs from the one before.
func changed(a api.RetryAttempt) string {
	var names []string
	for _, c := range a.Changes {
		text := c.Part
		if c.Name != nil {
			text = *c.Name
		}
		if c.Kind != "changed" {
			text += " (" + c.Kind + ")"
		}
		names = append(names, text)
	}
	if a.MoreChanges {
		names = append(names, "and more")
	}
	return strings.Join(names, ", ")
}

func gap(a api.RetryAttempt) string {
	if a.GapMS == nil {
		return "–"
	}
	return lasting(*a.GapMS)
}

func documented(s api.RetryStep) string {
	if s.DocumentedMS == nil {
		return "–"
	}
	return lasting(*s.DocumentedMS)
}

// renewed are the parts whose renewal is known, in their order.
func renewed(s api.RetrySummary) (all []string) {
	for _, part := range []string{"signature", "timestamp", "delivery_id", "event_id", "body"} {
		if r := s.Renewed[part]; r != "" && r != string(hookglass.RenewalAbsent) {
			all = append(all, strings.ReplaceAll(part, "_", " ")+" "+r)
		}
	}
	return all
}

func percent(f float64) string { return strconv.FormatFloat(100*f, 'f', 0, 64) + "%" }

// lasting is a duration as people say it.
func lasting(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}
