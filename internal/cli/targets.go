package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"hookglass/api"
	"hookglass/internal/server"
)

// TargetsCmd is `hookglass targets`.
type TargetsCmd struct {
	remote
	ofEndpoint

	List       TargetsListCmd       `cmd:"" help:"List forwarding targets, oldest first."`
	Create     TargetsCreateCmd     `cmd:"" help:"Create a forwarding target: events that are captured from now on go to it."`
	Get        TargetsGetCmd        `cmd:"" help:"Show a forwarding target."`
	Delete     TargetsDeleteCmd     `cmd:"" help:"Delete a forwarding target; what waits for it is not sent."`
	Deliveries TargetsDeliveriesCmd `cmd:"" help:"List what was delivered to a forwarding target, newest first, and what was not."`
	Resume     TargetsResumeCmd     `cmd:"" help:"Resume a forwarding target that was paused for failing, or that is disabled."`
	Resend     TargetsResendCmd     `cmd:"" help:"Send again, through a forwarding target, what failed to be delivered to it."`
}

// TargetsListCmd is `hookglass targets list`.
type TargetsListCmd struct{}

// Run implements the command.
func (*TargetsListCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	all, err := from.ForwardingTargets(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	rows := make([][]string, len(all))
	for i, one := range all {
		rows[i] = []string{strconv.FormatInt(one.ID, 10), one.Name, targetState(one), strconv.Itoa(one.Failures), one.URL}
	}
	return c.print(t, api.List[api.ForwardingTarget]{Data: all}, table([]string{"ID", "NAME", "STATE", "FAILURES", "URL"}, rows))
}

// targetState is a target's state in a word.
func targetState(t api.ForwardingTarget) string {
	switch {
	case !t.Enabled:
		return "disabled"
	case t.PausedAt != nil:
		return "paused"
	}
	return "enabled"
}

// TargetsCreateCmd is `hookglass targets create`.
type TargetsCreateCmd struct {
	Name    string `arg:"" help:"A label for people."`
	URL     string `arg:"" help:"Where events go: an http or https address that the server can reach."`
	Timeout *int64 `placeholder:"SECONDS" help:"For one attempt, 1 to 300; default 30."`
	Retries *int64 `placeholder:"N" help:"Attempts after the first, 0 to 5; default 3."`
}

// Run implements the command.
func (r *TargetsCreateCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	wanted := api.NewForwardingTarget{Name: api.Some(r.Name), URL: api.Some(r.URL), TimeoutSeconds: api.Maybe(r.Timeout), RetryCount: api.Maybe(r.Retries)}
	made, err := to.CreateForwardingTarget(ctx, c.Endpoint, wanted)
	if err != nil {
		return err
	}
	return c.print(t, api.One[api.ForwardingTarget]{Data: made}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Created target %d: %s\n", made.ID, visible(made.URL))
		return err
	})
}

// TargetsGetCmd is `hookglass targets get`.
type TargetsGetCmd struct {
	Target int64 `arg:"" help:"Its id."`
}

// Run implements the command.
func (r *TargetsGetCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	one, err := from.ForwardingTarget(ctx, c.Endpoint, r.Target)
	if err != nil {
		return err
	}
	return c.print(t, api.One[api.ForwardingTarget]{Data: one}, table([]string{"Id", strconv.FormatInt(one.ID, 10)}, [][]string{
		{"Name", one.Name}, {"URL", one.URL}, {"State", targetState(one)}, {"Paused", clock(one.PausedAt)}, {"Because", orDash(one.PauseReason)},
		{"Failures in a row", strconv.Itoa(one.Failures)}, {"Timeout", strconv.Itoa(one.TimeoutSeconds) + " s"}, {"Retries", strconv.Itoa(one.RetryCount)}, {"Created", clock(&one.CreatedAt)},
	}))
}

// TargetsDeleteCmd is `hookglass targets delete`.
type TargetsDeleteCmd struct {
	Target int64 `arg:"" help:"Its id."`
}

// Run implements the command.
func (r *TargetsDeleteCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	at, _, err := c.connect()
	if err != nil {
		return err
	}
	if err := at.DeleteForwardingTarget(ctx, c.Endpoint, r.Target); err != nil {
		return err
	}
	return c.print(t, api.One[api.DeletedNumber]{Data: api.DeletedNumber{ID: r.Target, Deleted: true}}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Deleted target %d.\n", r.Target)
		return err
	})
}

// TargetsResumeCmd is `hookglass targets resume`.
type TargetsResumeCmd struct {
	Target int64 `arg:"" help:"Its id."`
}

// Run implements the command.
func (r *TargetsResumeCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	at, _, err := c.connect()
	if err != nil {
		return err
	}
	now, err := at.UpdateForwardingTarget(ctx, c.Endpoint, r.Target, api.ForwardingTargetChange{Enabled: api.Some(true)})
	if err != nil {
		return err
	}
	return c.print(t, api.One[api.ForwardingTarget]{Data: now}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Target %d is %s; what waits for it is sent.\n", now.ID, targetState(now))
		return err
	})
}
