package cli

import (
	"context"
	"fmt"
	"io"

	"hookglass/api"
	"hookglass/internal/server"
)

// RequestsDiagnoseCmd is `hookglass requests diagnose`.
type RequestsDiagnoseCmd struct {
	Event string `arg:"" help:"The event's id, latest, or latest and an event type."`
}

func (c *RequestsDiagnoseCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	from, event, err := r.event(ctx, c.Event)
	if err != nil {
		return err
	}
	d, err := from.Diagnosis(ctx, r.Endpoint, event)
	if err != nil {
		return err
	}
	rows := make([][]string, len(d.Findings))
	for i, f := range d.Findings {
		rows[i] = []string{f.Severity, f.Area, f.Code, f.Message}
	}
	return r.print(t, api.One[api.Diagnosis]{Data: d}, func(w io.Writer) {
		table([]string{"SEVERITY", "OF", "CODE", "FINDING"}, rows)(w)
		for _, step := range d.NextSteps {
			fmt.Fprintf(w, "- %s\n", visible(step))
		}
	})
}
