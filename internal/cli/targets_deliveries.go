package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// TargetsDeliveriesCmd is `hookglass targets deliveries`.
type TargetsDeliveriesCmd struct {
	Target string  `arg:"" help:"The target's id or name."`
	Status string  `enum:"pending,sending,delivered,failed,skipped," default:"" placeholder:"STATUS" help:"Only those that are: pending, sending, delivered, failed or skipped."`
	Since  ago     `placeholder:"TIME" help:"Only those that were made after this time: ISO 8601, or a duration as 2h that counts back from now."`
	Limit  howMany `default:"25" help:"How many at most, 1 to 1000."`
	IDs    bool    `name:"ids" help:"Print the ids of the events alone, oldest first, for \"hookglass replays run\"."`
}

// Help implements kong.HelpProvider.
func (r *TargetsDeliveriesCmd) Help() string {
	return `What failed while a target was away is sent to it again by "hookglass targets resend".

It can be sent elsewhere, too:

  hookglass replays run -e ep_… --to https://app.example.com/webhooks \
    $(hookglass targets deliveries staging -e ep_… --status failed --since 2h --limit 1000 --ids)`
}

// deliveriesAtOnce is the page size of the API.
const deliveriesAtOnce = 100

func (r *TargetsDeliveriesCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	if r.Limit > 1000 {
		return outcome{exitUsage, "--limit must be 1 to 1000"}
	}
	if r.IDs && c.JSON {
		return outcome{exitUsage, "--ids prints a line each, which is no JSON: leave --json out"}
	}
	from, id, err := c.target(ctx, r.Target)
	if err != nil {
		return err
	}
	found, err := r.find(ctx, from, c.Endpoint, id)
	if err != nil {
		return err
	}
	if r.IDs {
		out := &minding{to: t.Out}
		for _, d := range slices.Backward(found) {
			fmt.Fprintln(out, d.EventID)
		}
		return out.err
	}
	rows := make([][]string, len(found))
	for i, d := range found {
		status, trouble := "-", "-"
		if d.StatusCode != nil {
			status = strconv.Itoa(*d.StatusCode)
		}
		if n := len(d.Attempts); n > 0 && d.Attempts[n-1].Error != nil {
			trouble = d.Attempts[n-1].Error.Message
		}
		if d.SameAs != nil {
			trouble = "the same as " + *d.SameAs
		}
		rows[i] = []string{clock(&d.CreatedAt), d.EventID, d.Status, strconv.Itoa(len(d.Attempts)), status, clock(d.NextAttemptAt), trouble}
	}
	return c.print(t, api.List[api.Delivery]{Data: append([]api.Delivery{}, found...)}, table([]string{"TIME", "EVENT", "STATUS", "ATTEMPTS", "ANSWER", "NEXT", "TROUBLE"}, rows))
}

// find reads as many pages as needed.
func (r *TargetsDeliveriesCmd) find(ctx context.Context, from *client.Client, endpoint string, target int64) (found []api.Delivery, err error) {
	list := from.TargetDeliveries
	if r.Status == string(hookglass.ForwardFailed) {
		list = from.FailedTargetDeliveries
	}
	for cursor := ""; ; {
		page, err := list(ctx, endpoint, target, string(r.Since), client.Page{Limit: deliveriesAtOnce, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, d := range page.Data {
			if r.Status != "" && d.Status != r.Status {
				continue
			}
			if found = append(found, d); len(found) == int(r.Limit) {
				return found, nil
			}
		}
		if page.Meta.NextCursor == nil {
			return found, nil
		}
		cursor = *page.Meta.NextCursor
	}
}
