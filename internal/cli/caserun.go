package cli

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/delivery"
	"hookglass/internal/listen"
	"hookglass/internal/outbound"
	"hookglass/internal/provider"
	"hookglass/internal/replay"
	"hookglass/internal/server"
)

// The exit codes of case files that did not pass; the most severe one counts.
const (
	exitAssertion = 1
	exitTransport = 2
	exitUncertain = 3 // blocked or unknown
)

// outcome is an error with an exit code of its own.
type outcome struct {
	code int
	text string
}

func (o outcome) Error() string { return o.text }

// suite and testCase are JUnit XML, for build servers.
type suite struct {
	XMLName  xml.Name   `xml:"testsuite"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Cases    []testCase `xml:"testcase"`
}

const suiteName = "hookglass cases"

// add adds a case that was run, and returns its exit code.
func (s *suite) add(name, file string, state hookglass.RunState, detail string, took time.Duration) (code int) {
	k := testCase{Name: name, File: file, Seconds: fmt.Sprintf("%.3f", took.Seconds())}
	switch state {
	case hookglass.RunPassed:
		code = exitDone
	case hookglass.RunAssertionFailed:
		code = exitAssertion
		s.Failures++
		k.Failure = &problem{Message: "assertion failed", Type: string(state), Text: detail}
	default:
		code = exitUncertain
		if state == hookglass.RunTransportFailed {
			code = exitTransport
		}
		s.Errors++
		k.Error = &problem{Message: detail, Type: string(state)}
	}
	s.Tests++
	s.Cases = append(s.Cases, k)
	return code
}

// canReport refuses a path that no report can be written to. A run costs time and sends something, so this is asked
// before it.
func canReport(path string) error {
	if path == "" {
		return nil
	}
	if err := mayWrite(path); err != nil {
		return outcome{exitUsage, "--junit: " + err.Error()}
	}
	return nil
}

// unreported is the outcome of a run whose report could not be written after all. Its code is not that of a case
// that did not pass.
func unreported(code int, err error) error {
	return outcome{max(code, exitUsage), "--junit: " + err.Error()}
}

func (s suite) write(path string) error {
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, only(append([]byte(xml.Header), append(text, '\n')...)))
}

type testCase struct {
	Name    string   `xml:"name,attr"`
	File    string   `xml:"file,attr,omitempty"`
	Seconds string   `xml:"time,attr"`
	Failure *problem `xml:"failure,omitempty"`
	Error   *problem `xml:"error,omitempty"`
}

type problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// caseResult is the result for a case file, as --json prints it.
type caseResult struct {
	File        string   `json:"file"`
	ID          string   `json:"id,omitempty"`
	Name        string   `json:"name,omitempty"`
	LockVersion int64    `json:"lock_version,omitempty"`
	State       string   `json:"state"` // written; created, updated, unchanged or failed; or that of the run
	DurationMS  *int64   `json:"duration_ms,omitempty"`
	Message     string   `json:"message,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
}

func (f *caseFile) result(state string) caseResult {
	return caseResult{File: f.path, ID: f.ID, Name: f.Name, LockVersion: f.LockVersion, State: state}
}

// tell prints results as JSON with --json; text was printed as they came, unless that failed.
func (c *CasesCmd) tell(t *server.Terminal, results []caseResult, printed *minding) error {
	err := c.print(t, api.List[caseResult]{Data: append([]caseResult{}, results...)}, func(io.Writer) {})
	return cmp.Or(err, printed.err)
}

// progress returns the writer for results as they come.
func (c *CasesCmd) progress(t *server.Terminal) *minding {
	if c.JSON {
		return &minding{to: io.Discard}
	}
	return &minding{to: t.Out}
}

// local runs case files on this machine.
func (r *CasesRunCmd) local(ctx context.Context, t *server.Terminal, c *CasesCmd) error {
	target := r.Target
	if !strings.Contains(target, "://") { // a port, as for listen
		to, err := listen.ParseTarget(target)
		if err != nil {
			return outcome{exitUsage, "--target: " + err.Error()}
		}
		target = to.String()
	}
	network := outbound.New(outbound.Config{Allow: outbound.Everywhere(1, 65535)}) // whatever the user of this machine can reach
	if err := network.Check("--target", target); err != nil {
		return outcome{exitUsage, explain(err)}
	}
	dir, err := openCaseDir(c.Dir)
	if err != nil {
		return err
	}
	defer dir.close()
	if r.Secret, err = secretOf(t, r.Secret); err != nil {
		return err
	}
	files, err := dir.some(r.Case)
	if err != nil {
		return err
	}
	if err := canReport(r.JUnit); err != nil {
		return err
	}
	var unwritten error
	report := suite{Name: suiteName}
	worst, failed := exitDone, 0
	out, results := c.progress(t), make([]caseResult, len(files))
	for i, f := range files {
		state, detail, took := f.run(ctx, network, target, r.Secret)
		name := cmp.Or(f.Name, stem(f.name))
		fmt.Fprintf(out, "%-16s %s\n", state, visible(name))
		ms := took.Milliseconds()
		results[i] = f.result(string(state))
		results[i].DurationMS, results[i].Message = &ms, detail
		if code := report.add(name, f.path, state, detail, took); code != exitDone {
			failed, worst = failed+1, max(worst, code)
			fmt.Fprintln(out, "  "+strings.ReplaceAll(visibleLines(detail), "\n", "\n  "))
		}
	}
	if r.JUnit != "" {
		if err := report.write(r.JUnit); err != nil {
			unwritten = unreported(worst, err)
		}
	}
	if err := cmp.Or(c.tell(t, results, out), unwritten); err != nil {
		return err
	}
	if worst != exitDone {
		return outcome{worst, fmt.Sprintf("%d of %s did not pass", failed, plural(len(files), "case", "cases"))}
	}
	return nil
}

// run sends the case once and checks the answer.
func (f *caseFile) run(ctx context.Context, network delivery.Client, target, secret string) (hookglass.RunState, string, time.Duration) {
	r, wanted, err := f.build(target, secret)
	if err != nil {
		return hookglass.RunBlocked, explain(err), 0
	}
	if ctx.Err() != nil {
		return hookglass.RunBlocked, "stopped before it was sent", 0
	}
	got := delivery.Send(ctx, network, "cases", replay.Timeout, r)
	switch {
	case got.Forbidden != nil:
		return hookglass.RunBlocked, explain(got.Forbidden), 0
	case got.Failure != nil && got.MaySent:
		return hookglass.RunUnknown, got.Failure.Message, got.Duration
	case got.Failure != nil:
		return hookglass.RunTransportFailed, got.Failure.Message, got.Duration
	}
	results, passed := replay.Judge(wanted, got.Response)
	if passed {
		return hookglass.RunPassed, "", got.Duration
	}
	var lines []string
	for _, result := range results {
		if !result.Passed {
			actual := "nothing"
			if result.Actual != nil {
				actual = string(result.Actual)
			}
			lines = append(lines, fmt.Sprintf("%s: expected %s, got %s", strings.TrimSpace(result.Kind+" "+result.Path), result.Expected, actual))
		}
	}
	return hookglass.RunAssertionFailed, strings.Join(lines, "\n"), got.Duration
}

// build builds the request and the assertions of the case. After an error the case is not sent.
func (f *caseFile) build(target, secret string) (delivery.Request, hookglass.Assertions, error) {
	none, wanted := delivery.Request{}, hookglass.Assertions{}
	if f.fault != nil {
		return none, wanted, f.fault
	}
	wanted, _, err := f.assertions()
	if err != nil {
		return none, wanted, err
	}
	e, err := f.event()
	if err != nil {
		return none, wanted, err
	}
	options, faults := hookglass.ParseReplayOptions("", f.Identity, f.Signature)
	if len(faults) > 0 {
		return none, wanted, hookglass.InvalidFields(faults)
	}
	var configs []provider.Config
	if options.Signature == hookglass.SignatureResign && e.Type == hookglass.EventWebhook {
		if secret == "" {
			return none, wanted, fmt.Errorf("%s: signature_mode resign needs the secret of the endpoint: give it with --secret, or run the case on the server (\"hookglass cases run %s\")", f.path, cmp.Or(f.ID, "CASE"))
		}
		configs = []provider.Config{{Provider: e.Provider, Secrets: []string{secret}}}
	}
	r, err := delivery.Build(delivery.Order{Event: e, TargetURL: target, Options: options, Configs: configs, Identity: provider.NewIdentity(), At: time.Now()})
	return r, wanted, err
}
