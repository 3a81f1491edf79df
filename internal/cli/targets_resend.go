package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/server"
)

// TargetsResendCmd is `hookglass targets resend`.
type TargetsResendCmd struct {
	Target     string   `arg:"" help:"Its id or name."`
	Deliveries []string `arg:"" optional:"" help:"The deliveries, by their ids or those of their events; without any, all that failed."`
	Since      ago      `placeholder:"TIME" help:"Of all, only those that were made after this time: ISO 8601, or a duration as 2h that counts back from now."`
	Until      ago      `placeholder:"TIME" help:"Of all, only those that were made before this time."`
}

// Help implements kong.HelpProvider.
func (*TargetsResendCmd) Help() string {
	return `These deliveries are pending again, with all their retries, and keep their earlier attempts. What waits already, and what arrived, is not sent again. While the target is paused, they wait until
"hookglass targets resume".`
}

func (r *TargetsResendCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	if len(r.Deliveries) > 0 && (r.Since != "" || r.Until != "") {
		return outcome{exitUsage, "--since and --until choose among all that failed: name no deliveries with them"}
	}
	at, target, err := c.target(ctx, r.Target)
	if err != nil {
		return err
	}
	if len(r.Deliveries) == 0 {
		put, err := at.ResendFailed(ctx, c.Endpoint, target, string(r.Since), string(r.Until))
		if err != nil {
			return err
		}
		text := "Sending again: %d.\n"
		if put.PausedAt != nil {
			text = "Waiting for the target, which is paused, to be resumed: %d.\n"
		}
		return c.say(t, api.One[api.ResentDeliveries]{Data: put}, text, put.Resent)
	}
	put := make([]api.Delivery, len(r.Deliveries))
	for i, id := range r.Deliveries {
		if !strings.HasPrefix(id, "dlv_") {
			id = api.DeliveryID(hookglass.EventID(id), target)
		}
		if put[i], err = at.ResendDelivery(ctx, c.Endpoint, target, id); err != nil {
			if i > 0 {
				fmt.Fprintf(t.Err, "Done with %s, and no more:\n", plural(i, "delivery", "deliveries"))
			}
			return fmt.Errorf("%s: %w", visible(r.Deliveries[i]), err)
		}
	}
	return c.print(t, api.List[api.Delivery]{Data: put}, func(w io.Writer) {
		for _, d := range put {
			fmt.Fprintf(w, "%s is %s.\n", d.EventID, d.Status)
		}
	})
}
