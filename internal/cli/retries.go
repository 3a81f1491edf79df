package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// RetriesCmd is `hookglass retries`.
type RetriesCmd struct {
	remote
	byWordOrFlag
	Endpoint string  `arg:"" optional:"" placeholder:"EP" help:"The endpoint's id or custom id."`
	Script   *string `placeholder:"SCRIPT" help:"First have the endpoint answer each delivery by this script, for example 500*3,timeout,200; none ends it."`
	Query    string  `short:"q" type:"query" placeholder:"QUERY" help:"Of which events, for example: provider:stripe after:2h."`
	Events   howMany `placeholder:"N" help:"How many of the newest events are looked at, 1 to 2000; default 500."`
	Limit    howMany `placeholder:"N" help:"How many deliveries are shown, 1 to 100; default 20."`
}

func (c *RetriesCmd) Run(ctx context.Context, t *server.Terminal) error {
	endpoint, err := c.endpoint(c.Endpoint)
	if err != nil {
		return err
	}
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	if c.Script != nil {
		e, err := from.UpdateEndpoint(ctx, endpoint, api.EndpointChange{ResponseScript: clearable(c.Script)})
		if err != nil {
			return err
		}
		if e.ResponseScript != nil {
			fmt.Fprintf(t.Err, "Each delivery to %q is now answered %s.\n", visible(e.Name), visible(*e.ResponseScript))
		} else {
			fmt.Fprintf(t.Err, "%q has no script any more.\n", visible(e.Name))
		}
	}
	p, err := from.RetryProfile(ctx, endpoint, client.Filter{Query: c.Query}, int(c.Events), int(c.Limit))
	if err != nil {
		return err
	}
	if p.Events == 0 {
		c.advise(t, c.Query)
	}
	return c.print(t, api.One[api.RetryProfile]{Data: p}, func(w io.Writer) { printProfile(w, p) })
}

func printProfile(w io.Writer, p api.RetryProfile) {
	s := p.Summary
	fmt.Fprintf(w, "%s, %s: %d delivered, %d waiting, %d given up; %d with more than one attempt.\n", plural(p.Events, "event", "events"), plural(s.Deliveries, "delivery", "deliveries"), s.Delivered, s.Waiting, s.GivenUp, s.Retried)
	for _, g := range p.Groups {
		if g.AttemptCount > 1 && len(g.Attempts) > 0 {
			printGroup(w, g)
		}
	}
	if s.Retried == 0 {
		fmt.Fprintln(w, "No sender has tried a delivery again yet. To make one retry, have the endpoint refuse: --script 500*3,200")
		return
	}
	rows := make([][]string, len(s.Schedule))
	for i, step := range s.Schedule {
		documented := "-"
		if step.DocumentedMS != nil {
			documented = lasting(*step.DocumentedMS)
		}
		rows[i] = []string{strconv.Itoa(step.Attempt), strconv.Itoa(step.Count), lasting(step.MedianMS), lasting(step.MinMS), lasting(step.MaxMS), fmt.Sprintf("%.0f%%", 100*step.Jitter), documented}
	}
	fmt.Fprintln(w)
	table([]string{"ATTEMPT", "DELIVERIES", "MEDIAN WAIT", "SHORTEST", "LONGEST", "JITTER", "DOCUMENTED"}, rows)(w)
	fmt.Fprintln(w)
	rows = make([][]string, len(s.Answers))
	for i, a := range s.Answers {
		rows[i] = []string{a.Answer, strconv.Itoa(a.Attempts), strconv.Itoa(a.Retried), strconv.Itoa(a.NotRetried)}
	}
	table([]string{"ANSWER", "ATTEMPTS", "RETRIED", "NOT RETRIED"}, rows)(w)
	fmt.Fprintln(w)
	printHabits(w, p)
}

// printHabits prints how the sender retried, and what it documents.
func printHabits(w io.Writer, p api.RetryProfile) {
	s := p.Summary
	if g := s.GaveUpAfter; g != nil {
		word := "attempts"
		if g.Max == 1 {
			word = "attempt"
		}
		fmt.Fprintf(w, "Gave up after %s %s.\n", between(g.Min, g.Max), word)
	}
	if r := s.RetryAfter; r.Given > 0 {
		fmt.Fprintf(w, "Retry-After: told %s, honoured %d, came early %d, not retried %d.\n", plural(r.Given, "time", "times"), r.Honoured, r.Early, r.NotRetried)
	}
	if s.AttemptsAfterSuccess > 0 {
		fmt.Fprintf(w, "%s came although an earlier one was answered with 2xx.\n", plural(s.AttemptsAfterSuccess, "attempt", "attempts"))
	}
	var habits []string
	for _, part := range []string{"signature", "timestamp", "delivery_id", "event_id", "body"} {
		if r := s.Renewed[part]; r != "absent" && r != "" {
			habits = append(habits, strings.ReplaceAll(part, "_", " ")+" "+r)
		}
	}
	if s.AttemptCounter != nil {
		habits = append(habits, "attempts counted in "+visible(*s.AttemptCounter))
	}
	if len(habits) > 0 {
		fmt.Fprintf(w, "From attempt to attempt: %s.\n", strings.Join(habits, ", "))
	}
	for _, d := range p.Providers {
		if d.Retries != nil {
			fmt.Fprintf(w, "%s documents: %s.\n", visible(d.Provider), visible(*d.Retries))
		}
	}
}

// chartWidth is the width of a delivery's timeline in characters.
const chartWidth = 60

// printGroup prints a delivery with its attempts on a timeline.
func printGroup(w io.Writer, g api.AttemptGroup) {
	name := g.Identity[:min(8, len(g.Identity))]
	if g.DeliveryID != nil {
		name = *g.DeliveryID
	}
	fmt.Fprintf(w, "\n%s %s %s: %s, %s\n", visible(g.Provider), visible(orDash(g.EventType)), visible(name), plural(g.AttemptCount, "attempt", "attempts"), strings.ReplaceAll(g.State, "_", " "))
	first, last := g.Attempts[0].ReceivedAt.Time, g.Attempts[len(g.Attempts)-1].ReceivedAt.Time
	line := []rune(strings.Repeat("─", chartWidth))
	for _, a := range g.Attempts {
		at := 0
		if whole := last.Sub(first); whole > 0 {
			at = int(float64(chartWidth-1) * float64(a.ReceivedAt.Sub(first)) / float64(whole))
			at = min(max(at, 0), chartWidth-1) // the clock may have been set in between
		}
		line[at] = markOf(a)
	}
	fmt.Fprintf(w, "  %s %s\n", string(line), lasting(last.Sub(first).Milliseconds()))
	for i, a := range g.Attempts {
		gap := "         -"
		if a.GapMS != nil {
			gap = fmt.Sprintf("%10s", "+"+lasting(*a.GapMS))
		}
		fmt.Fprintf(w, "  %2d %c %s %-12s %s %s\n", i+1, markOf(a), gap, a.Answer, clock(&a.ReceivedAt), changed(a))
	}
}

// markOf returns one character for an attempt: accepted, refused, or without an answer.
func markOf(a api.RetryAttempt) rune {
	switch {
	case a.Status == nil:
		return '○'
	case *a.Status >= 200 && *a.Status <= 299:
		return '●'
	}
	return '×'
}

// shownChanges bounds the printed changes of an attempt.
const shownChanges = 6

func changed(a api.RetryAttempt) string {
	var names []string
	for _, c := range a.Changes {
		sign := map[string]string{"added": "+", "removed": "-", "changed": "~"}[c.Kind]
		name := c.Part
		if c.Name != nil {
			name = *c.Name
		}
		names = append(names, sign+visible(name))
	}
	if len(names) > shownChanges {
		names = append(names[:shownChanges], fmt.Sprintf("and %d more", len(names)-shownChanges))
	}
	return strings.Join(names, " ")
}

func between(low, high int) string {
	if low == high {
		return strconv.Itoa(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

// lasting formats a duration for people.
func lasting(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
