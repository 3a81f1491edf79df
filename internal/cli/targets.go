package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"hookglass"
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
	Update     TargetsUpdateCmd     `cmd:"" help:"Change a forwarding target."`
	Delete     TargetsDeleteCmd     `cmd:"" help:"Delete a forwarding target; what waits for it is not sent."`
	Deliveries TargetsDeliveriesCmd `cmd:"" help:"List what was delivered to a forwarding target, newest first, and what was not."`
	Pause      TargetsPauseCmd      `cmd:"" help:"Pause a forwarding target: what comes for it waits until it is resumed."`
	Resume     TargetsResumeCmd     `cmd:"" help:"Resume a forwarding target that was paused, or that is disabled."`
	Resend     TargetsResendCmd     `cmd:"" help:"Send again, through a forwarding target, what failed to be delivered to it."`
}

// TargetsListCmd is `hookglass targets list`.
type TargetsListCmd struct{}

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
		rows[i] = []string{strconv.FormatInt(one.ID, 10), one.Name, targetState(one), maxRate(one), gets(one), adds(one), pending(one), strconv.Itoa(one.Failures), one.URL}
	}
	return c.print(t, api.List[api.ForwardingTarget]{Data: all}, table([]string{"ID", "NAME", "STATE", "AT MOST", "GETS", "ADDS", "PENDING", "FAILURES", "URL"}, rows))
}

// targetState returns a target's state in a word.
func targetState(t api.ForwardingTarget) string {
	switch {
	case !t.Enabled:
		return "disabled"
	case t.PausedAt != nil:
		return "paused"
	}
	return "enabled"
}

// targetRate is a rate limit as users type it.
type targetRate struct {
	limit  int64 // 0: none
	period string
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *targetRate) UnmarshalText(text []byte) (err error) {
	if *r = (targetRate{}); string(text) == "none" {
		return nil
	}
	number, unit, _ := strings.Cut(string(text), "/")
	switch unit {
	case "s", "sec", "second":
		r.period = "second"
	case "m", "min", "minute":
		r.period = "minute"
	}
	if r.limit, err = strconv.ParseInt(number, 10, 64); err != nil || r.limit < 1 || r.period == "" {
		return errors.New("must be a number a second or a minute, such as 5/s or 30/m, or none")
	}
	return nil
}

// fields returns the target's fields for the rate; a nil rate leaves them out.
func (r *targetRate) fields() (limit api.Optional[int64], period api.Optional[string]) {
	switch {
	case r == nil:
		return limit, period
	case r.limit == 0:
		return api.Null[int64](), period
	}
	return api.Some(r.limit), api.Some(r.period)
}

// maxRate formats a target's rate limit.
func maxRate(t api.ForwardingTarget) string {
	if t.RateLimit == nil || t.RatePeriod == nil {
		return "-"
	}
	return strconv.Itoa(*t.RateLimit) + " a " + *t.RatePeriod
}

// dedupeFields returns the target's fields for duplicates; nil leaves one out.
func dedupeFields(by *string, within *time.Duration) (what api.Optional[string], seconds api.Optional[int64]) {
	if what = api.Maybe(by); by != nil && *by == "none" {
		what = api.Null[string]()
	}
	if within != nil {
		seconds = api.Some(int64(*within / time.Second))
	}
	return what, seconds
}

// sendsOnce formats what a target does with duplicates.
func sendsOnce(t api.ForwardingTarget) string {
	if t.DedupeBy == nil || t.DedupeSeconds == nil {
		return "-"
	}
	return visible(*t.DedupeBy) + " within " + (time.Duration(*t.DedupeSeconds) * time.Second).String()
}

// gets describes which events a target gets.
func gets(t api.ForwardingTarget) string {
	if t.When == nil {
		return "all"
	}
	return *t.When
}

// pending returns how many deliveries wait for a target, which servers of earlier versions do not report.
func pending(t api.ForwardingTarget) string {
	switch {
	case t.Pending == nil:
		return "-"
	case *t.Pending >= hookglass.MostPending:
		return strconv.Itoa(*t.Pending) + "+"
	}
	return strconv.Itoa(*t.Pending)
}

// TargetsCreateCmd is `hookglass targets create`.
type TargetsCreateCmd struct {
	Name    string         `arg:"" help:"A label for people."`
	URL     string         `arg:"" help:"Where events go: an http or https address that the server can reach."`
	Timeout *int64         `placeholder:"SECONDS" help:"For one attempt, 1 to 300; default 30."`
	Retries *int64         `placeholder:"N" help:"Attempts after the first, 0 to 5; default 3."`
	MaxRate *targetRate    `placeholder:"N/s" help:"Send at most so many requests a second (5/s) or a minute (30/m); more waits."`
	When    *string        `type:"query" placeholder:"QUERY" help:"Send only what this search means: 'event:invoice.*'."`
	Dedupe  *string        `placeholder:"BY" help:"Send a webhook only once when its sender repeats it, recognised by BY: id, the sender's own; header.NAME; a JSON Pointer, such as /data/id; or body."`
	Within  *time.Duration `placeholder:"TIME" help:"With --dedupe: how long after the first a repetition counts, 1s to 168h; default 24h."`
	Header  []string       `sep:"none" placeholder:"'N: V'" help:"Send this header with every request, in the place of one of the same name; may be repeated. - reads such lines from standard input, since other users can see flags."`
}

func (r *TargetsCreateCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	wanted := api.NewForwardingTarget{Name: api.Some(r.Name), URL: api.Some(r.URL), TimeoutSeconds: api.Maybe(r.Timeout), RetryCount: api.Maybe(r.Retries), When: api.Maybe(r.When)}
	wanted.RateLimit, wanted.RatePeriod = r.MaxRate.fields()
	wanted.DedupeBy, wanted.DedupeSeconds = dedupeFields(r.Dedupe, r.Within)
	if wanted.Headers, err = targetHeaders(t, r.Header, nil); err != nil {
		return err
	}
	made, err := to.CreateForwardingTarget(ctx, c.Endpoint, wanted)
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.ForwardingTarget]{Data: made}, "Created target %d: %s\n", made.ID, visible(made.URL))
}

// TargetsGetCmd is `hookglass targets get`.
type TargetsGetCmd struct {
	Target string `arg:"" help:"Its id or name."`
}

func (r *TargetsGetCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	from, id, err := c.target(ctx, r.Target)
	if err != nil {
		return err
	}
	one, err := from.ForwardingTarget(ctx, c.Endpoint, id)
	if err != nil {
		return err
	}
	return c.print(t, api.One[api.ForwardingTarget]{Data: one}, table([]string{"Id", strconv.FormatInt(one.ID, 10)}, [][]string{
		{"Name", one.Name}, {"URL", one.URL}, {"State", targetState(one)}, {"Paused", clock(one.PausedAt)}, {"Because", orDash(one.PauseReason)},
		{"Failures in a row", strconv.Itoa(one.Failures)}, {"Timeout", strconv.Itoa(one.TimeoutSeconds) + " s"}, {"Retries", strconv.Itoa(one.RetryCount)}, {"Max rate", maxRate(one)}, {"Gets", gets(one)},
		{"Once by", sendsOnce(one)},
		{"Adds", adds(one)},
		{"Pending", pending(one)}, {"Pending until", clock(one.PendingUntil)}, {"Created", clock(&one.CreatedAt)},
	}))
}

// TargetsUpdateCmd is `hookglass targets update`.
type TargetsUpdateCmd struct {
	Target  string         `arg:"" help:"Its id or name."`
	Name    *string        `placeholder:"NAME" help:"A label for people."`
	URL     *string        `placeholder:"URL" help:"Where events go."`
	Timeout *int64         `placeholder:"SECONDS" help:"For one attempt, 1 to 300."`
	Retries *int64         `placeholder:"N" help:"Attempts after the first, 0 to 5."`
	MaxRate *targetRate    `placeholder:"N/s" help:"Send at most so many requests a second (5/s) or a minute (30/m); none for no limit."`
	When    *string        `type:"query" placeholder:"QUERY" help:"Send only what this search means; empty for all."`
	Dedupe  *string        `placeholder:"BY" help:"Send a webhook only once when its sender repeats it, recognised by BY: id, header.NAME, a JSON Pointer or body; none sends every request."`
	Within  *time.Duration `placeholder:"TIME" help:"How long after the first a repetition counts, 1s to 168h."`
	Header  []string       `sep:"none" placeholder:"'N: V'" help:"Send this header with every request, too; 'N:' takes it away; may be repeated. - reads such lines from standard input, since other users can see flags."`
	Enable  bool           `xor:"on" help:"Send what comes from now on."`
	Disable bool           `xor:"on" help:"Send nothing: what waits is skipped. \"targets pause\" has it wait."`
}

// Validate says what is wrong with the flags together.
func (r *TargetsUpdateCmd) Validate() error {
	if r.Name == nil && r.URL == nil && r.Timeout == nil && r.Retries == nil && r.MaxRate == nil && r.When == nil && r.Dedupe == nil && r.Within == nil && len(r.Header) == 0 && !r.Enable && !r.Disable {
		return errors.New("say what to change")
	}
	return nil
}

func (r *TargetsUpdateCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	change := api.ForwardingTargetChange{Name: api.Maybe(r.Name), URL: api.Maybe(r.URL), TimeoutSeconds: api.Maybe(r.Timeout), RetryCount: api.Maybe(r.Retries), When: api.Maybe(r.When)}
	change.RateLimit, change.RatePeriod = r.MaxRate.fields()
	change.DedupeBy, change.DedupeSeconds = dedupeFields(r.Dedupe, r.Within)
	if r.Enable || r.Disable {
		change.Enabled = api.Some(r.Enable)
	}
	at, id, err := c.target(ctx, r.Target)
	if err != nil {
		return err
	}
	if len(r.Header) > 0 {
		there, err := at.ForwardingTarget(ctx, c.Endpoint, id)
		if err != nil {
			return err
		}
		if change.Headers, err = targetHeaders(t, r.Header, there.Headers); err != nil {
			return err
		}
	}
	now, err := at.UpdateForwardingTarget(ctx, c.Endpoint, id, change)
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.ForwardingTarget]{Data: now}, "Changed target %d, which is %s: %s\n", now.ID, targetState(now), visible(now.URL))
}

// TargetsDeleteCmd is `hookglass targets delete`.
type TargetsDeleteCmd struct {
	Target string `arg:"" help:"Its id or name."`
}

func (r *TargetsDeleteCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	at, id, err := c.target(ctx, r.Target)
	if err != nil {
		return err
	}
	if err := at.DeleteForwardingTarget(ctx, c.Endpoint, id); err != nil {
		return err
	}
	return c.say(t, api.One[api.DeletedNumber]{Data: api.DeletedNumber{ID: id, Deleted: true}}, "Deleted target %d.\n", id)
}

// TargetsPauseCmd is `hookglass targets pause`.
type TargetsPauseCmd struct {
	Target string `arg:"" help:"Its id or name."`
}

func (r *TargetsPauseCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	return c.turn(ctx, t, r.Target, api.ForwardingTargetChange{Paused: api.Some(true)}, "what comes for it waits until \"hookglass targets resume\"")
}

// TargetsResumeCmd is `hookglass targets resume`.
type TargetsResumeCmd struct {
	Target string `arg:"" help:"Its id or name."`
}

func (r *TargetsResumeCmd) Run(ctx context.Context, t *server.Terminal, c *TargetsCmd) error {
	return c.turn(ctx, t, r.Target, api.ForwardingTargetChange{Enabled: api.Some(true)}, "what waits for it is sent")
}

// turn pauses or resumes a target, and says what follows.
func (c *TargetsCmd) turn(ctx context.Context, t *server.Terminal, word string, change api.ForwardingTargetChange, then string) error {
	at, id, err := c.target(ctx, word)
	if err != nil {
		return err
	}
	now, err := at.UpdateForwardingTarget(ctx, c.Endpoint, id, change)
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.ForwardingTarget]{Data: now}, "Target %d is %s; %s.\n", now.ID, targetState(now), then)
}
