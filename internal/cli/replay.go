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
	Signature string `enum:"preserve,strip,resign" default:"preserve" help:"preserve, strip or resign."`
}

// Run implements the command. It fails when no answer came.
func (c *ReplayCmd) Run(ctx context.Context, t *server.Terminal) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	r, err := to.Replay(ctx, c.Endpoint, c.Event, api.ReplayRequest{TargetURL: c.To, IdentityMode: c.Identity, SignatureMode: c.Signature})
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
		for _, warning := range r.Warnings {
			fmt.Fprintln(t.Err, "warning:", visible(warning))
		}
		return nil
	})
	if err == nil && !r.Delivered {
		err = fmt.Errorf("not delivered: %s", visible(r.Error.Message))
	}
	return err
}
