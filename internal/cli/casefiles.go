package cli

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/delivery"
	"hookglass/internal/jsondoc"
	"hookglass/internal/outbound"
	"hookglass/internal/provider"
	"hookglass/internal/replay"
	"hookglass/internal/server"
)

// Bounds of what is read of files that others may have written.
const (
	maxCaseFile = 1 << 20
	maxCaseBody = 32 << 20
)

// caseFile is a case in a repository: this, and its body in a file beside it.
type caseFile struct {
	ID          string       `yaml:"id,omitempty"`
	LockVersion int64        `yaml:"lock_version,omitempty"`
	Name        string       `yaml:"name"`
	Description string       `yaml:"description,omitempty"`
	SourceID    string       `yaml:"source_id"`
	TargetURL   string       `yaml:"target_url"`
	Identity    string       `yaml:"identity_mode,omitempty"`
	Signature   string       `yaml:"signature_mode,omitempty"`
	Status      any          `yaml:"status,omitempty"`      // a class as 2xx, or a code
	JSONSubset  string       `yaml:"json_subset,omitempty"` // JSON text, so that no number changes
	Request     *caseRequest `yaml:"request,omitempty"`

	path string
}

// caseRequest is the event, for running the case away from the server.
type caseRequest struct {
	Method   string      `yaml:"method"`
	Provider string      `yaml:"provider,omitempty"`
	Headers  [][2]string `yaml:"headers"`
	BodyFile string      `yaml:"body_file"`
}

func readCaseFile(path string) (*caseFile, error) {
	text, err := readBounded(path, maxCaseFile)
	if err != nil {
		return nil, err
	}
	f := &caseFile{path: path}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func readBounded(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is longer than %d bytes", path, limit)
	}
	return text, err
}

func (f *caseFile) write() error {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(f), enc.Close()); err != nil {
		return err
	}
	return os.WriteFile(f.path, b.Bytes(), 0o600)
}

// assertions reads what the file asserts.
func (f *caseFile) assertions() (a hookglass.Assertions, err error) {
	switch s := f.Status.(type) {
	case nil:
	case string:
		a.StatusClass = s
	case int:
		a.StatusCode = s
	default:
		return a, fmt.Errorf("%s: status is a class such as 2xx, or a number", f.path)
	}
	if s := strings.TrimSpace(f.JSONSubset); s != "" {
		if jsondoc.Check([]byte(s)) != nil || s[0] != '{' {
			return a, fmt.Errorf("%s: json_subset is no JSON object", f.path)
		}
		a.JSONSubset = []byte(s)
	}
	return a, nil
}

// wire is what the file asserts, as the API takes it.
func (f *caseFile) wire() (out api.Assertions, err error) {
	a, err := f.assertions()
	if err != nil {
		return out, err
	}
	switch {
	case a.StatusClass != "":
		out.Status = &api.StatusAssertion{Class: &a.StatusClass}
	case a.StatusCode != 0:
		out.Status = &api.StatusAssertion{Code: &a.StatusCode}
	}
	out.JSONSubset = a.JSONSubset
	return out, nil
}

// CasesPullCmd is `hookglass cases pull`.
type CasesPullCmd struct{}

// Run implements the command. A case whose event is gone keeps the request that its file has.
func (*CasesPullCmd) Run(ctx context.Context, t *server.Terminal, c *CasesCmd) error {
	from, err := c.endpoint()
	if err != nil {
		return err
	}
	cases, err := c.all(ctx, from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	known, err := caseFiles(c.Dir, "")
	if err != nil {
		return err
	}
	byID := make(map[string]*caseFile)
	taken := make(map[string]bool)
	for _, f := range known {
		byID[f.ID], taken[f.path] = f, true
	}
	for _, k := range cases {
		f := byID[k.ID]
		if f == nil {
			f = &caseFile{path: filepath.Join(c.Dir, slug(k.Name)+".yaml")}
			if taken[f.path] {
				f.path = filepath.Join(c.Dir, slug(k.Name)+"-"+k.ID[len(k.ID)-6:]+".yaml")
			}
			taken[f.path] = true
		}
		f.ID, f.LockVersion, f.Name, f.Description, f.SourceID, f.TargetURL = k.ID, k.LockVersion, k.Name, k.Description, k.SourceID, k.TargetURL
		f.Identity, f.Signature, f.Status, f.JSONSubset = k.Options.IdentityMode, k.Options.SignatureMode, nil, string(k.Assertions.JSONSubset)
		if s := k.Assertions.Status; s != nil && s.Class != nil {
			f.Status = *s.Class
		} else if s != nil && s.Code != nil {
			f.Status = *s.Code
		}
		if k.SourceAvailable {
			e, err := from.Request(ctx, c.Endpoint, k.SourceID)
			if err != nil {
				return err
			}
			var body bytes.Buffer
			if err := from.RequestBody(ctx, c.Endpoint, k.SourceID, &body); err != nil {
				return err
			}
			f.Request = &caseRequest{Method: e.Method, Provider: e.DetectedProvider, Headers: e.HeaderList, BodyFile: strings.TrimSuffix(filepath.Base(f.path), ".yaml") + ".body"}
			if err := os.WriteFile(filepath.Join(c.Dir, f.Request.BodyFile), body.Bytes(), 0o600); err != nil {
				return err
			}
		}
		if err := f.write(); err != nil {
			return err
		}
		fmt.Fprintln(t.Out, f.path)
	}
	return nil
}

// slug makes a file's name of a case's.
func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	s := strings.Trim(b.String(), "-")
	if s == "" {
		s = "case"
	}
	return s[:min(len(s), 60)]
}

// caseFiles reads the case files of a directory in the order of their names, or one of them.
func caseFiles(dir, name string) (files []*caseFile, err error) {
	pattern := "*.yaml"
	if name != "" {
		if pattern = strings.TrimSuffix(filepath.Base(name), ".yaml") + ".yaml"; strings.ContainsAny(pattern, `*?[\`) {
			return nil, fmt.Errorf("%s is no name of a case file", name)
		}
	}
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		f, err := readCaseFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// CasesPushCmd is `hookglass cases push`.
type CasesPushCmd struct{}

// Run implements the command. A file whose case was changed on the server meanwhile is refused; pull first.
func (*CasesPushCmd) Run(ctx context.Context, t *server.Terminal, c *CasesCmd) error {
	to, err := c.endpoint()
	if err != nil {
		return err
	}
	files, err := caseFiles(c.Dir, "")
	if err != nil {
		return err
	}
	for _, f := range files {
		a, err := f.wire()
		if err != nil {
			return err
		}
		options := api.CaseOptions{IdentityMode: f.Identity, SignatureMode: f.Signature}
		var saved api.ReplayCase
		if f.ID == "" {
			saved, err = to.CreateReplayCase(ctx, c.Endpoint, api.NewReplayCase{
				SourceID: api.Some(f.SourceID), Name: api.Some(f.Name), Description: api.Some(f.Description), TargetURL: api.Some(f.TargetURL),
				Options: api.Some(options), Assertions: api.Some(a),
			})
		} else {
			saved, err = to.UpdateReplayCase(ctx, c.Endpoint, f.ID, api.ReplayCaseChange{
				LockVersion: api.Some(f.LockVersion), Name: api.Some(f.Name), Description: api.Some(f.Description), TargetURL: api.Some(f.TargetURL),
				Options: api.Some(options), Assertions: api.Some(a),
			})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		f.ID, f.LockVersion = saved.ID, saved.LockVersion
		if err := f.write(); err != nil {
			return err
		}
		fmt.Fprintf(t.Out, "%s: version %d of %s\n", f.path, saved.LockVersion, saved.ID)
	}
	return nil
}

// The exit codes of case files that did not pass; the gravest counts.
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

// suite and testCase are JUnit XML, as build servers read it.
type suite struct {
	XMLName  xml.Name   `xml:"testsuite"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Cases    []testCase `xml:"testcase"`
}

func (s suite) write(path string) error {
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(xml.Header), append(text, '\n')...), 0o600)
}

type testCase struct {
	Name    string   `xml:"name,attr"`
	File    string   `xml:"file,attr"`
	Seconds string   `xml:"time,attr"`
	Failure *problem `xml:"failure,omitempty"`
	Error   *problem `xml:"error,omitempty"`
}

type problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// local runs case files from here.
func (r *CasesRunCmd) local(ctx context.Context, t *server.Terminal, c *CasesCmd) error {
	files, err := caseFiles(c.Dir, r.Case)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no case file in %s; write them with \"hookglass cases pull\"", c.Dir)
	}
	// What a person runs on their own machine may go anywhere that they may.
	var everywhere []outbound.Rule
	for _, network := range []string{"0.0.0.0/0:1-65535", "::/0:1-65535"} {
		rule, err := outbound.ParseRule(network)
		if err != nil {
			return err
		}
		everywhere = append(everywhere, rule)
	}
	network := outbound.New(outbound.Config{Allow: everywhere})
	report := suite{Name: "hookglass cases", Tests: len(files)}
	worst, failed := exitDone, 0
	for _, f := range files {
		state, detail, took := f.run(ctx, network, r.Target)
		fmt.Fprintf(t.Out, "%-16s %s\n", state, visible(f.Name))
		k := testCase{Name: f.Name, File: f.path, Seconds: fmt.Sprintf("%.3f", took.Seconds())}
		code := exitDone
		switch state {
		case hookglass.RunPassed:
		case hookglass.RunAssertionFailed:
			code = exitAssertion
			report.Failures++
			k.Failure = &problem{Message: "assertion failed", Type: string(state), Text: detail}
		default:
			code = exitUncertain
			if state == hookglass.RunTransportFailed {
				code = exitTransport
			}
			report.Errors++
			k.Error = &problem{Message: detail, Type: string(state)}
		}
		if code != exitDone {
			failed++
			fmt.Fprintln(t.Out, "  "+strings.ReplaceAll(visibleLines(detail), "\n", "\n  "))
		}
		worst = max(worst, code)
		report.Cases = append(report.Cases, k)
	}
	if r.JUnit != "" {
		if err := report.write(r.JUnit); err != nil {
			return err
		}
	}
	if worst != exitDone {
		return outcome{worst, fmt.Sprintf("%d of %d cases did not pass", failed, len(files))}
	}
	return nil
}

// run sends the case once and judges the answer.
func (f *caseFile) run(ctx context.Context, network delivery.Client, target string) (hookglass.RunState, string, time.Duration) {
	blocked := func(err error) (hookglass.RunState, string, time.Duration) {
		return hookglass.RunBlocked, explain(err), 0
	}
	a, err := f.assertions()
	if err != nil {
		return blocked(err)
	}
	if f.Request == nil {
		return blocked(errors.New("the file has no request: its event was gone when it was pulled"))
	}
	body, err := readBounded(filepath.Join(filepath.Dir(f.path), filepath.Base(f.Request.BodyFile)), maxCaseBody)
	if err != nil {
		return blocked(err)
	}
	options, faults := hookglass.ParseReplayOptions("", f.Identity, f.Signature)
	if len(faults) > 0 {
		return blocked(hookglass.InvalidFields(faults))
	}
	e := &hookglass.Event{
		ID: hookglass.EventID(f.SourceID), Type: hookglass.EventWebhook, Method: f.Request.Method, Provider: f.Request.Provider,
		Payload: &hookglass.Payload{Body: body},
	}
	for _, h := range f.Request.Headers {
		e.Headers = append(e.Headers, hookglass.Header{Name: h[0], Value: h[1]})
	}
	if e.Method == "EMAIL" {
		e.Type, e.From, e.To, e.Subject = hookglass.EventEmail, e.Headers.Get("From"), e.Headers.Get("To"), e.Headers.Get("Subject")
	}
	out, err := delivery.Build(delivery.Order{Event: e, TargetURL: target, Options: options, Identity: provider.NewIdentity(), At: time.Now()})
	if err != nil {
		return blocked(err)
	}
	got := delivery.Send(ctx, network, "cases", replay.Timeout, out)
	switch {
	case got.Forbidden != nil:
		return blocked(got.Forbidden)
	case got.Failure != nil && got.MaySent:
		return hookglass.RunUnknown, got.Failure.Message, got.Duration
	case got.Failure != nil:
		return hookglass.RunTransportFailed, got.Failure.Message, got.Duration
	}
	results, passed := replay.Judge(a, got.Response)
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
			lines = append(lines, fmt.Sprintf("%s %s: expected %s, got %s", result.Kind, result.Path, result.Expected, actual))
		}
	}
	return hookglass.RunAssertionFailed, strings.Join(lines, "\n"), got.Duration
}
