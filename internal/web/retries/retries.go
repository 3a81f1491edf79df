// Package retries renders the page of how an endpoint's senders retry. Each delivery is drawn as a timeline and listed
// as a table of attempts, so that nothing is shown by position or colour alone.
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

// Files holds the style.
//
//go:embed retries.css
var Files embed.FS

// Model is the content of the page.
type Model struct {
	layout.Frame
	Of      hookglass.Endpoint
	Script  string // as stored, or as typed
	Seen    string // the mark of the stored script
	Stale   bool   // it changed while it was edited
	Fault   string // what is wrong with the typed script
	Notice  string
	Profile api.RetryProfile
}

func (m Model) path() string { return "/endpoints/" + string(m.Of.ID) + "/retries" }

// example returns a script that fits the endpoint's kind.
func (m Model) example() string {
	if m.Of.Kind == hookglass.KindEmail {
		return "451*2 4.7.1 Greylisted,250"
	}
	return "500*3,timeout,200"
}

// retried returns the deliveries with more than one attempt.
func retried(p api.RetryProfile) (groups []api.AttemptGroup) {
	for _, g := range p.Groups {
		if g.AttemptCount > 1 {
			groups = append(groups, g)
		}
	}
	return groups
}

// The size of a timeline, in its own units.
const (
	lineWidth = 1000
	margin    = 14
)

// mark is an attempt on a timeline.
type mark struct {
	X     string
	Class string
	Title string
}

// marks places the attempts of a delivery on its timeline.
func marks(g api.AttemptGroup) []mark {
	first, last := g.Attempts[0].ReceivedAt.Time, g.Attempts[len(g.Attempts)-1].ReceivedAt.Time
	all := make([]mark, len(g.Attempts))
	for i, a := range g.Attempts {
		x := float64(margin)
		if whole := last.Sub(first); whole > 0 {
			x += (lineWidth - 2*margin) * min(max(float64(a.ReceivedAt.Sub(first))/float64(whole), 0), 1) // the clock may have been set between two attempts
		}
		all[i] = mark{strconv.FormatFloat(x, 'f', 1, 64), class(a), fmt.Sprintf("Attempt %d: %s after %s", i+1, a.Answer, lasting(a.ReceivedAt.Sub(first).Milliseconds()))}
	}
	return all
}

// class returns the outcome of an attempt: taken, refused, or no response.
func class(a api.RetryAttempt) string {
	switch {
	case a.Status == nil:
		return "retry-none"
	case *a.Status >= 200 && *a.Status <= 299:
		return "retry-taken"
	}
	return "retry-refused"
}

// attempts formats a range of numbers of attempts.
func attempts(r api.AttemptRange) string {
	most := show.Plural(int64(r.Max), "attempt")
	if r.Min == r.Max {
		return most
	}
	return strconv.Itoa(r.Min) + " to " + most
}

// told describes a timeline in a sentence, for readers who do not see it.
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

// changed names the parts in which an attempt differs from the previous one.
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

// renewed lists, in a fixed order, the parts for which it is known whether they change between attempts.
func renewed(s api.RetrySummary) (all []string) {
	for _, part := range []string{"signature", "timestamp", "delivery_id", "event_id", "body"} {
		if r := s.Renewed[part]; r != "" && r != string(hookglass.RenewalAbsent) {
			all = append(all, strings.ReplaceAll(part, "_", " ")+" "+r)
		}
	}
	return all
}

func percent(f float64) string { return strconv.FormatFloat(100*f, 'f', 0, 64) + "%" }

// lasting formats a duration.
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
