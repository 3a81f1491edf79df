package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// FlowCmd is `hookglass flow`.
type FlowCmd struct {
	remote

	Run    FlowRunCmd    `cmd:"" help:"Begin the flow of a file and wait for its end: exit 0 passed, 1 an expectation was not met, 3 the token is refused, 2 anything else."`
	List   FlowListCmd   `cmd:"" help:"List flows, newest first."`
	Get    FlowGetCmd    `cmd:"" help:"Show a flow with its steps."`
	Delete FlowDeleteCmd `cmd:"" help:"Delete a flow; one that goes on ends without a result."`
}

// FlowRunCmd is `hookglass flow run`.
type FlowRunCmd struct {
	File    string        `arg:"" help:"A YAML or JSON file with name, timeout_seconds, order and steps; - is standard input."`
	Timeout time.Duration `placeholder:"DURATION" help:"For all of it, whatever the file says."`
	Since   ago           `placeholder:"TIME" help:"Count events that were received since then, for example 30s."`
	Key     string        `placeholder:"KEY" help:"Idempotency key: the same key gives the same flow again."`
	JUnit   string        `name:"junit" placeholder:"FILE" help:"Write the steps as JUnit XML."`
}

const (
	maxFlowFile = 1 << 20     // bytes
	waitOnce    = 30          // seconds that one call waits for a change
	lostFor     = time.Minute // how long the server may be unreachable
	again       = time.Second // the longest wait between calls
)

// Run implements the command. An error other than the flow's own result says nothing about the expectations, so it has
// its own exit code.
func (r *FlowRunCmd) Run(ctx context.Context, t *server.Terminal, c *FlowCmd) error {
	err := r.run(ctx, t, c)
	if own := (outcome{}); err == nil || errors.As(err, &own) || exitCode(err) == exitRefused {
		return err
	}
	return noResult{err}
}

// noResult is the error of a command that ends without the result of its flow.
type noResult struct{ error }

// Unwrap lets errors.As find the cause.
func (n noResult) Unwrap() error { return n.error }

func (r *FlowRunCmd) run(ctx context.Context, t *server.Terminal, c *FlowCmd) error {
	plan, err := r.read(t)
	if err != nil {
		return err
	}
	if err := canReport(r.JUnit); err != nil {
		return err
	}
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	f, err := to.CreateFlow(ctx, plan, r.Key)
	if err != nil {
		return err
	}
	out := &minding{to: t.Out}
	if c.JSON {
		out = &minding{to: t.Err} // the result goes to standard output
	}
	fmt.Fprintf(out, "%s begins, until %s\n", f.ID, clock(&f.DeadlineAt))
	if f, err = watchFlow(ctx, to, f, out); err != nil {
		return err
	}
	if r.JUnit != "" {
		if err := writeJUnit(r.JUnit, f); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := c.print(t, api.One[api.Flow]{Data: f}, nil); err != nil {
			return err
		}
	}
	if f.State != string(hookglass.FlowPassed) {
		return outcome{exitFailed, "the flow " + f.State + ": " + visible(deref(f.Message))}
	}
	fmt.Fprintf(out, "passed in %s\n", took(f.DurationMS))
	if out.err != nil && !c.JSON {
		return fmt.Errorf("the flow passed, but not all of that was printed: %w", out.err)
	}
	return nil
}

// watchFlow waits for the end of a flow, prints progress of its steps, and returns the finished flow. It keeps trying
// an unreachable server for lostFor.
func watchFlow(ctx context.Context, to *client.Client, f api.Flow, out io.Writer) (api.Flow, error) {
	told := make([]string, len(f.Steps))
	tellSteps(out, f, told)
	var server reach
	for f.State == string(hookglass.FlowPending) {
		fresh, err := to.WaitFlow(ctx, f.ID, f.Version, waitOnce)
		lost := server.lost(err)
		if err == nil {
			f = fresh
			tellSteps(out, f, told)
			continue
		}
		if isFinal(err) {
			return f, err
		}
		if lost {
			return f, fmt.Errorf("the server is out of reach: %s", visible(err.Error()))
		}
		select {
		case <-time.After(again):
		case <-ctx.Done(): // usually WaitFlow was interrupted and returned an error
			return f, errors.New("stopped; the flow goes on: hookglass flow get " + f.ID)
		}
	}
	return f, nil
}

// reach records since when a server has been unreachable.
type reach struct{ since time.Time } // zero while it answers

// lost records the result of a call, and reports whether the server has been unreachable for too long.
func (r *reach) lost(err error) bool {
	switch {
	case err == nil:
		r.since = time.Time{}
		return false
	case r.since.IsZero():
		r.since = time.Now()
	}
	return time.Since(r.since) > lostFor
}

// isFinal reports whether repeating a refused call is useless: any 4xx except 429.
func isFinal(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status >= 400 && refused.Status < 500 && refused.Status != 429
}

// read parses the file and returns it as JSON.
func (r *FlowRunCmd) read(t *server.Terminal) (json.RawMessage, error) {
	text, err := readInput(t, r.File, maxFlowFile)
	if err != nil {
		return nil, err
	}
	var plan map[string]any
	var document yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	err = dec.Decode(&document)
	if err == nil {
		datesAreTexts(&document)
		err = document.Decode(&plan)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", r.File, err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) { // a second YAML document would be ignored
		return nil, fmt.Errorf("%s holds more than one document", r.File)
	}
	if len(plan) == 0 {
		return nil, fmt.Errorf("%s describes no flow", r.File)
	}
	if inner, wrapped := plan["flow"].(map[string]any); wrapped && len(plan) == 1 {
		plan = inner // the body of the API
	}
	if r.Timeout > 0 {
		plan["timeout_seconds"] = r.Timeout.Seconds()
	}
	if r.Since != "" {
		plan["since"] = r.Since
	}
	raw, err := json.Marshal(plan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.File, err)
	}
	return raw, nil
}

// datesAreTexts turns YAML dates into strings as written in the file, because dates in the JSON of events are strings.
func datesAreTexts(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, inner := range n.Content {
		datesAreTexts(inner)
	}
}

// tellSteps prints steps whose state has changed.
func tellSteps(w io.Writer, f api.Flow, told []string) {
	for i, s := range f.Steps {
		state := s.State
		if n := s.Received; state == string(hookglass.FlowStepWatching) && n > 0 {
			state = fmt.Sprintf("%d of %d", n, s.Count.AtLeast+s.Count.Exactly)
		}
		if state == told[i] || state == string(hookglass.FlowStepWaiting) {
			continue
		}
		told[i] = state
		fmt.Fprintln(w, "  "+stepLine(s, state))
		if s.Message != nil {
			fmt.Fprintln(w, "    "+visible(*s.Message))
		}
	}
}

func stepLine(s api.FlowStep, state string) string {
	line := fmt.Sprintf("%-9s %s", state, visible(s.ID))
	if n := len(s.Matched); n > 0 {
		line += "  " + s.Matched[n-1].RequestID
	}
	if s.TookMS != nil && len(s.Matched) > 0 {
		line += "  " + took(s.TookMS)
	}
	return line
}

func took(ms *int64) string {
	if ms == nil {
		return "-"
	}
	return (time.Duration(*ms) * time.Millisecond).String()
}

func writeJUnit(path string, f api.Flow) error {
	name := "hookglass flow"
	if f.Name != nil {
		name = *f.Name
	}
	report := suite{Name: name, Tests: len(f.Steps)}
	for _, s := range f.Steps {
		k := testCase{Name: s.ID, File: f.ID, Seconds: "0"}
		if s.TookMS != nil {
			k.Seconds = fmt.Sprintf("%.3f", float64(*s.TookMS)/1000)
		}
		switch hookglass.FlowStepState(s.State) {
		case hookglass.FlowStepFailed, hookglass.FlowStepExpired:
			report.Failures++
			k.Failure = &problem{Message: deref(s.Message), Type: s.State, Text: deref(f.Message)}
		case hookglass.FlowStepSkipped:
			report.Errors++
			k.Error = &problem{Message: "The flow ended before.", Type: s.State}
		}
		report.Cases = append(report.Cases, k)
	}
	return report.write(path)
}

// FlowListCmd is `hookglass flow list`.
type FlowListCmd struct {
	State string  `enum:",pending,passed,failed,expired" default:"" placeholder:"STATE" help:"Only flows of this state."`
	Limit howMany `default:"25" help:"How many at most, 1 to 100."`
}

func (l *FlowListCmd) Run(ctx context.Context, t *server.Terminal, c *FlowCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	page, err := from.Flows(ctx, l.State, client.Page{Limit: int(l.Limit)})
	if err != nil {
		return err
	}
	rows := make([][]string, len(page.Data))
	for i, f := range page.Data {
		done := 0
		for _, s := range f.Steps {
			if s.State == string(hookglass.FlowStepPassed) {
				done++
			}
		}
		rows[i] = []string{f.ID, deref(f.Name), f.State, fmt.Sprintf("%d/%d", done, len(f.Steps)), clock(&f.StartedAt), took(f.DurationMS)}
	}
	return c.print(t, page, table([]string{"ID", "NAME", "STATE", "STEPS", "STARTED", "TOOK"}, rows))
}

// FlowGetCmd is `hookglass flow get`.
type FlowGetCmd struct {
	ID string `arg:"" help:"The flow's id."`
}

func (g *FlowGetCmd) Run(ctx context.Context, t *server.Terminal, c *FlowCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	f, err := from.Flow(ctx, g.ID)
	if err != nil {
		return err
	}
	return c.print(t, api.One[api.Flow]{Data: f}, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s %s\n", f.ID, f.State, visible(deref(f.Name)))
		for _, s := range f.Steps {
			fmt.Fprintln(w, "  "+strings.TrimRight(stepLine(s, s.State), " "))
		}
		if f.Message != nil {
			fmt.Fprintln(w, visible(*f.Message))
		}
	})
}

// FlowDeleteCmd is `hookglass flow delete`.
type FlowDeleteCmd struct {
	ID string `arg:"" help:"The flow's id."`
}

func (d *FlowDeleteCmd) Run(ctx context.Context, t *server.Terminal, c *FlowCmd) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	if err := to.DeleteFlow(ctx, d.ID); err != nil {
		return err
	}
	return c.deleted(t, d.ID)
}
