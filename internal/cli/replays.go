package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// ReplaysCmd is `hookglass replays`.
type ReplaysCmd struct {
	remote
	ofEndpoint

	List    ReplaysListCmd    `cmd:"" help:"List bulk replays, newest first."`
	Run     ReplaysRunCmd     `cmd:"" help:"Send many events again, oldest first, and wait for the end."`
	Get     ReplaysGetCmd     `cmd:"" help:"Show how far a bulk replay is."`
	Results ReplaysResultsCmd `cmd:"" help:"List what became of each event of a bulk replay, in the order of sending."`
	Pause   ReplaysPauseCmd   `cmd:"" help:"Have a bulk replay send no more for now."`
	Resume  ReplaysResumeCmd  `cmd:"" help:"Go on with a bulk replay that was paused."`
	Cancel  ReplaysCancelCmd  `cmd:"" help:"End a bulk replay for good; what was sent was sent."`
}

// batchRow formats a bulk replay for a list.
func batchRow(b api.ReplayBatch) []string {
	return []string{
		deref(b.ID), b.State, strconv.FormatInt(b.Total, 10), strconv.FormatInt(b.Passed, 10), strconv.FormatInt(b.Failed, 10), strconv.FormatInt(b.Pending, 10),
		clock(b.CreatedAt), b.TargetURL, b.Query,
	}
}

var batchHeading = []string{"ID", "STATE", "TOTAL", "PASSED", "FAILED", "PENDING", "BEGAN", "TARGET", "QUERY"}

// show prints a bulk replay.
func (c *ReplaysCmd) show(t *server.Terminal, b api.ReplayBatch) error {
	return c.print(t, api.One[api.ReplayBatch]{Data: b}, table(batchHeading, [][]string{batchRow(b)}))
}

// ReplaysListCmd is `hookglass replays list`.
type ReplaysListCmd struct {
	Limit  howMany `default:"25" help:"How many, 1 to 100."`
	Cursor string  `placeholder:"CURSOR" help:"Go on where the list before ended."`
}

func (l *ReplaysListCmd) Run(ctx context.Context, t *server.Terminal, c *ReplaysCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	page, err := from.ReplayBatches(ctx, c.Endpoint, client.Page{Limit: int(l.Limit), Cursor: l.Cursor})
	if err != nil {
		return err
	}
	rows := make([][]string, len(page.Data))
	for i, b := range page.Data {
		rows[i] = batchRow(b)
	}
	return c.print(t, page, func(w io.Writer) {
		table(batchHeading, rows)(w)
		if next := page.Meta.NextCursor; next != nil {
			fmt.Fprintf(w, "\nMore: --cursor %s\n", *next)
		}
	})
}

// ReplaysRunCmd is `hookglass replays run`.
type ReplaysRunCmd struct {
	Events        []string `arg:"" optional:"" help:"The events' ids, 1,000 at most; or --query or --all."`
	Query         string   `short:"q" type:"query" placeholder:"QUERY" help:"Which events, in place of ids; 10,000 at most."`
	All           bool     `help:"All events that are not ignored."`
	To            string   `required:"" placeholder:"URL" help:"Where to send them, or the word tunnel."`
	Identity      string   `enum:"original,regenerate" default:"original" help:"original or regenerate."`
	Signature     string   `enum:"preserve,strip,resign" default:"preserve" help:"preserve, strip or resign."`
	Rate          howMany  `placeholder:"N" help:"How many a second at most, 1 to 100; default 10. They go one after another."`
	StopOnFailure bool     `help:"End with the first event that the target does not answer with 2xx."`
	DryRun        bool     `help:"Send nothing; say how many events it would be."`
	Detach        bool     `help:"Do not wait for the end."`
}

// Help implements kong.HelpProvider.
func (r *ReplaysRunCmd) Help() string {
	return `Examples:

  hookglass replays run -e ep_… -q 'provider:stripe after:2h' --to https://app.example.com/webhooks --dry-run
  hookglass replays run -e ep_… req_… req_… --to tunnel --stop-on-failure

It ends with 0 when the target answered each with 2xx, and with 1 when not. The server does the work: it goes on when this
command is stopped, and no event is sent twice. "hookglass replays cancel" ends it.`
}

// Validate says what is wrong with the flags.
func (r *ReplaysRunCmd) Validate() error {
	return chooseOnce(r.Events, r.Query, r.All)
}

func (r *ReplaysRunCmd) Run(ctx context.Context, t *server.Terminal, c *ReplaysCmd) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	wanted := api.CreateReplayBatch{
		Query: r.Query, RequestIDs: r.Events, TargetURL: r.To, IdentityMode: r.Identity, SignatureMode: r.Signature, StopOnFailure: r.StopOnFailure, DryRun: r.DryRun,
	}
	if r.Rate > 0 {
		wanted.Rate = new(int(r.Rate))
	}
	b, err := to.CreateReplayBatch(ctx, c.Endpoint, wanted)
	if err != nil {
		return err
	}
	if b.Total == 0 {
		c.advise(t, r.Query)
	}
	if b.ID == nil {
		return c.say(t, api.One[api.ReplayBatch]{Data: b}, "It would be %s.\n", plural(b.Total, "request", "requests"))
	}
	if r.Detach {
		return c.say(t, api.One[api.ReplayBatch]{Data: b}, "%s: %s\n", *b.ID, plural(b.Total, "request", "requests"))
	}
	out := t.Out
	if c.JSON {
		out = t.Err // the result goes to standard output
	}
	fmt.Fprintf(out, "%s: %s\n", *b.ID, plural(b.Total, "request", "requests"))
	if b, err = c.ended(ctx, out, to, b); err != nil {
		return err
	}
	err = c.say(t, api.One[api.ReplayBatch]{Data: b}, "%s: %d passed, %d failed, %d not sent\n", b.State, b.Passed, b.Failed, b.Pending)
	switch {
	case err != nil:
	case b.Failed > 0:
		err = fmt.Errorf("%d of %s failed; \"hookglass replays results %s -e %s --failed\" lists them", b.Failed, plural(b.Total, "request", "requests"), *b.ID, c.Endpoint)
	case b.State != string(hookglass.BatchCompleted):
		err = fmt.Errorf("the bulk replay was %s", b.State)
	}
	return err
}

// ended waits for the end of a bulk replay, even while the server restarts, and prints progress.
func (c *ReplaysCmd) ended(ctx context.Context, out io.Writer, to *client.Client, b api.ReplayBatch) (api.ReplayBatch, error) {
	told, state := int64(0), b.State
	pause := again / 4
	for server := (reach{}); !hookglass.BatchState(b.State).Final(); pause = min(2*pause, again) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return b, fmt.Errorf("stopped; the bulk replay goes on: hookglass replays get %s -e %s", *b.ID, c.Endpoint)
		}
		fresh, err := to.ReplayBatch(ctx, c.Endpoint, *b.ID)
		if isFinal(err) {
			return b, err
		}
		if server.lost(err) && ctx.Err() == nil {
			return b, fmt.Errorf("%s The bulk replay goes on when the server is back: hookglass replays get %s -e %s", explain(err), *b.ID, c.Endpoint)
		}
		if err != nil {
			continue
		}
		b = fresh
		if tenth := 10 * (b.Passed + b.Failed) / max(b.Total, 1); tenth > told && tenth < 10 || b.State != state && b.State != string(hookglass.BatchCompleted) {
			told, state = tenth, b.State
			fmt.Fprintf(out, "  %s: %d of %d, %d failed\n", b.State, b.Passed+b.Failed, b.Total, b.Failed)
		}
	}
	return b, nil
}

// ReplaysGetCmd is `hookglass replays get`.
type ReplaysGetCmd struct {
	ID string `arg:"" help:"The bulk replay's id."`
}

func (g *ReplaysGetCmd) Run(ctx context.Context, t *server.Terminal, c *ReplaysCmd) error {
	return c.move(ctx, t, g.ID, (*client.Client).ReplayBatch)
}

// ReplaysPauseCmd is `hookglass replays pause`.
type ReplaysPauseCmd struct {
	ID string `arg:"" help:"The bulk replay's id."`
}

func (p *ReplaysPauseCmd) Run(ctx context.Context, t *server.Terminal, c *ReplaysCmd) error {
	return c.move(ctx, t, p.ID, (*client.Client).PauseReplayBatch)
}

// ReplaysResumeCmd is `hookglass replays resume`.
type ReplaysResumeCmd struct {
	ID string `arg:"" help:"The bulk replay's id."`
}

func (r *ReplaysResumeCmd) Run(ctx context.Context, t *server.Terminal, c *ReplaysCmd) error {
	return c.move(ctx, t, r.ID, (*client.Client).ResumeReplayBatch)
}

// ReplaysCancelCmd is `hookglass replays cancel`.
type ReplaysCancelCmd struct {
	ID string `arg:"" help:"The bulk replay's id."`
}

func (r *ReplaysCancelCmd) Run(ctx context.Context, t *server.Terminal, c *ReplaysCmd) error {
	return c.move(ctx, t, r.ID, (*client.Client).CancelReplayBatch)
}

// move changes the state of a bulk replay and prints it.
func (c *ReplaysCmd) move(ctx context.Context, t *server.Terminal, id string, by func(*client.Client, context.Context, string, string) (api.ReplayBatch, error)) error {
	at, _, err := c.connect()
	if err != nil {
		return err
	}
	b, err := by(at, ctx, c.Endpoint, id)
	if err != nil {
		return err
	}
	return c.show(t, b)
}

// ReplaysResultsCmd is `hookglass replays results`.
type ReplaysResultsCmd struct {
	ID     string `arg:"" help:"The bulk replay's id."`
	Failed bool   `help:"Only those that failed, or of which it is not known."`
}

func (r *ReplaysResultsCmd) Run(ctx context.Context, t *server.Terminal, c *ReplaysCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	items, err := everything(func(page client.Page) (api.List[api.BatchItem], error) {
		return from.ReplayBatchResults(ctx, c.Endpoint, r.ID, page)
	})
	if err != nil {
		return err
	}
	if r.Failed {
		items = slices.DeleteFunc(items, func(i api.BatchItem) bool {
			return i.State != string(hookglass.ItemFailed) && i.State != string(hookglass.ItemUnknown)
		})
	}
	rows := make([][]string, len(items))
	for k, i := range items {
		status, why := "-", ""
		if i.StatusCode != nil {
			status = strconv.Itoa(*i.StatusCode)
		}
		if i.Error != nil {
			why = i.Error.Message
		}
		rows[k] = []string{i.EventID, i.State, status, clock(i.FinishedAt), why}
	}
	return c.print(t, api.List[api.BatchItem]{Data: items}, table([]string{"EVENT", "STATE", "STATUS", "AT", "WHY"}, rows))
}
