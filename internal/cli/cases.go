package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// CasesCmd is `hookglass cases`.
type CasesCmd struct {
	remote
	Endpoint string `short:"e" env:"HOOKGLASS_ENDPOINT" placeholder:"EP" help:"The endpoint's id or custom id."`
	Dir      string `default:"hookglass-cases" placeholder:"DIR" help:"Where case files are (default: ${default})."`

	List   CasesListCmd   `cmd:"" help:"List replay cases, newest first."`
	Create CasesCreateCmd `cmd:"" help:"Make a case from a captured event."`
	Run    CasesRunCmd    `cmd:"" help:"Run a case on the server, or case files from here with --target."`
	Pull   CasesPullCmd   `cmd:"" help:"Write the endpoint's cases to files, for a repository."`
	Push   CasesPushCmd   `cmd:"" help:"Save case files on the server."`
}

func (c *CasesCmd) endpoint() (*client.Client, error) {
	if c.Endpoint == "" {
		return nil, outcome{exitUsage, "name the endpoint with -e or HOOKGLASS_ENDPOINT"}
	}
	from, _, err := c.connect()
	return from, err
}

// all reads every case of the endpoint.
func (c *CasesCmd) all(ctx context.Context, from *client.Client) ([]api.ReplayCase, error) {
	return everything(func(page client.Page) (api.List[api.ReplayCase], error) {
		return from.ReplayCases(ctx, c.Endpoint, page)
	})
}

// CasesListCmd is `hookglass cases list`.
type CasesListCmd struct{}

func (*CasesListCmd) Run(ctx context.Context, t *server.Terminal, c *CasesCmd) error {
	from, err := c.endpoint()
	if err != nil {
		return err
	}
	cases, err := c.all(ctx, from)
	if err != nil {
		return err
	}
	rows := make([][]string, len(cases))
	for i, k := range cases {
		last, at := "-", "-"
		if k.LastRun != nil {
			last, at = k.LastRun.State, clock(k.LastRun.FinishedAt)
		}
		rows[i] = []string{k.ID, k.Name, k.TargetURL, last, at}
	}
	return c.print(t, api.List[api.ReplayCase]{Data: cases}, table([]string{"ID", "NAME", "TARGET", "LAST RUN", "AT"}, rows))
}

// CasesRunCmd is `hookglass cases run`.
type CasesRunCmd struct {
	Case   string        `arg:"" optional:"" help:"The case's id or name; with --target, a file's name without its ending. Without one, all files."`
	Key    string        `placeholder:"KEY" help:"Idempotency key: the same key gives the same run again."`
	Wait   time.Duration `default:"2m" help:"How long to wait for the end of a run on the server."`
	Target string        `placeholder:"URL" help:"Send the case files in --dir from here to this URL or port, whatever target they name."`
	Secret string        `placeholder:"SECRET" help:"With --target: sign the cases whose signature_mode is resign with this secret; - reads it from standard input, since other users can see flags."`
	JUnit  string        `name:"junit" placeholder:"FILE" help:"Write the results as JUnit XML."`
}

// Help implements kong.HelpProvider.
func (r *CasesRunCmd) Help() string {
	return `A run on the server ends with 0 when the case passed, and with 1 when not. With --target the highest of these counts:

  0  all passed
  1  an assertion failed
  2  the target could not be reached, or the file of --junit not written
  3  a case was blocked (its file cannot be run, or the run was stopped
     before it; nothing was sent), or it is unknown whether the target
     received it

Examples:

  hookglass cases run rcase_… -e ep_…
  hookglass cases run --target http://localhost:3000/hooks --junit cases.xml`
}

func (r *CasesRunCmd) Run(ctx context.Context, t *server.Terminal, c *CasesCmd) error {
	if r.Target != "" {
		return r.local(ctx, t, c)
	}
	if r.Secret != "" {
		return outcome{exitUsage, "--secret signs what is sent from here, to a --target; the server has its own"}
	}
	if r.Case == "" {
		return outcome{exitUsage, "name the case to run, or a --target for case files"}
	}
	to, err := c.endpoint()
	if err != nil {
		return err
	}
	if err := canReport(r.JUnit); err != nil {
		return err
	}
	r.Case, err = idNamed(hookglass.PrefixReplayCase, r.Case, "several cases", func() ([]called, error) {
		all, err := c.all(ctx, to)
		return calledOf(all, func(one api.ReplayCase) called { return called{one.ID, one.Name} }), err
	})
	if err != nil {
		return err
	}
	run, err := r.ended(ctx, to, c.Endpoint)
	if err != nil {
		return err
	}
	err = c.print(t, api.One[api.ReplayCaseRun]{Data: run}, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s\n", run.ID, run.State)
		for _, line := range missed(run) {
			fmt.Fprintln(w, "  "+visible(line))
		}
	})
	if err == nil && r.JUnit != "" {
		if err := reportRun(run, r.JUnit); err != nil {
			return unreported(exitDone, err)
		}
	}
	if err == nil && run.State != string(hookglass.RunPassed) {
		err = fmt.Errorf("the case did not pass: %s", run.State)
		if run.Error != nil {
			err = fmt.Errorf("%w: %s", err, visible(run.Error.Message))
		}
	}
	return err
}

// ended starts the run and waits for its end, even while the server restarts: the idempotency key makes it start once.
func (r *CasesRunCmd) ended(ctx context.Context, to *client.Client, endpoint string) (run api.ReplayCaseRun, err error) {
	key := cmp.Or(r.Key, rand.Text())
	waiting, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	for {
		if run.ID == "" {
			run, err = to.RunReplayCase(ctx, endpoint, r.Case, key)
		} else if now, lost := to.ReplayCaseRun(waiting, endpoint, run.ID); lost == nil {
			run, err = now, nil
		} else {
			err = lost
		}
		if err == nil && hookglass.RunState(run.State).Final() || err != nil && waiting.Err() == nil && !away(err, run) {
			return run, err
		}
		pause := 250 * time.Millisecond
		if busy, ok := errors.AsType[*client.Error](err); ok {
			pause = max(pause, busy.RetryAfter)
		}
		select {
		case <-time.After(pause):
		case <-waiting.Done():
			if run.ID == "" {
				return run, err
			}
			return run, fmt.Errorf("%s is still %s", run.ID, run.State)
		}
	}
}

// away reports whether the server may be back soon. If it never answered, its address is probably wrong.
func away(err error, run api.ReplayCaseRun) bool {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused.Status >= 500 || refused.Status == http.StatusTooManyRequests
	}
	return run.ID != ""
}

// missed returns the assertions that failed, one per line.
func missed(run api.ReplayCaseRun) (lines []string) {
	for _, a := range run.Assertions {
		if a.Passed {
			continue
		}
		actual := string(a.Actual)
		if actual == "null" && string(a.Expected) == "null" { // in the API null also means no value
			actual = "nothing"
		}
		lines = append(lines, fmt.Sprintf("%s: expected %s, got %s", strings.TrimSpace(a.Kind+" "+a.Path), a.Expected, actual))
	}
	return lines
}

// reportRun writes the run of one case as JUnit XML.
func reportRun(run api.ReplayCaseRun, path string) error {
	detail, took := strings.Join(missed(run), "\n"), time.Duration(0)
	if run.Error != nil {
		detail = run.Error.Message
	}
	if run.DurationMS != nil {
		took = time.Duration(*run.DurationMS) * time.Millisecond
	}
	s := suite{Name: suiteName}
	s.add(run.ReplayCaseID, "", hookglass.RunState(run.State), detail, took)
	return s.write(path)
}
