package cli

import (
	"context"
	"fmt"
	"io"

	"hookglass/api"
	"hookglass/internal/server"
)

// ReplayCmd is `hookglass replay`.
type ReplayCmd struct {
	remote
	Event     string `arg:"" help:"The event's id."`
	Endpoint  string `short:"e" required:"" placeholder:"EP" help:"The endpoint's id or custom id."`
	To        string `required:"" placeholder:"URL" help:"Where to send it, or the word tunnel."`
	Identity  string `enum:"original,regenerate" default:"original" help:"original or regenerate."`
	Signature string `enum:"preserve,strip,resign," default:"" help:"preserve (the default), strip or resign; with --time-shift resign where that is possible."`
	TimeShift string `placeholder:"SHIFT" help:"Move all times in the request: now, +3h, -2d, or milliseconds."`
	DryRun    bool   `help:"Send nothing; show what would be sent."`
}

// Run implements the command. It fails when no answer came.
func (c *ReplayCmd) Run(ctx context.Context, t *server.Terminal) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	r, err := to.Replay(ctx, c.Endpoint, c.Event, api.ReplayRequest{TargetURL: c.To, IdentityMode: c.Identity, SignatureMode: c.Signature, TimeShift: api.TimeShift(c.TimeShift), DryRun: c.DryRun})
	if err != nil {
		return err
	}
	err = c.print(t, api.One[api.Replay]{Data: r}, func(w io.Writer) error {
		if r.Delivered {
			fmt.Fprintf(w, "%d in %d ms", *r.StatusCode, r.DurationMS)
			if r.Verdict != nil {
				fmt.Fprintf(w, " (%s)", *r.Verdict)
			}
			fmt.Fprintln(w)
			if body := deref(r.ResponseBody); body != "" {
				fmt.Fprintln(w, visibleLines(body))
			}
		}
		if r.DryRun {
			fmt.Fprintf(w, "would send %s %s (signature: %s)\n", r.Method, visible(r.TargetURL), r.SignatureMode)
		}
		for _, c := range r.TimeChanges {
			where := c.Pointer
			if c.Header != "" {
				where = c.Header + ":"
			}
			fmt.Fprintf(w, "  %s %s -> %s\n", visible(where), visible(c.From), visible(c.To))
		}
		for _, warning := range r.Warnings {
			fmt.Fprintln(t.Err, "warning:", visible(warning))
		}
		return nil
	})
	if err == nil && !r.Delivered && !r.DryRun {
		err = fmt.Errorf("not delivered: %s", visible(r.Error.Message))
	}
	return err
}
