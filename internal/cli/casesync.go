package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// CasesPullCmd is `hookglass cases pull`.
type CasesPullCmd struct{}

// Run implements the command. If the event of a case was deleted, its file keeps the request.
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
	dir, err := openCaseDir(c.Dir)
	if err != nil {
		return err
	}
	defer dir.close()
	known, err := dir.files("")
	if err != nil {
		return err
	}
	byID := make(map[string]*caseFile)
	taken := make(map[string]string) // by stem, which the body's file shares
	for _, f := range known {
		if f.fault != nil {
			return f.fault
		}
		if other := taken[stem(f.name)]; other != "" {
			return fmt.Errorf("%s and %s would have one file for both bodies; rename one of them", other, f.path)
		}
		byID[f.ID], taken[stem(f.name)] = f, f.path
	}
	var results []caseResult
	out := c.progress(t)
	for _, k := range cases {
		f := byID[k.ID]
		if f == nil {
			name := slug(k.Name)
			if taken[name] != "" {
				name += "-" + k.ID[max(0, len(k.ID)-6):]
			}
			f = dir.named(name + ".yaml")
			taken[name] = f.path
		}
		warnings, err := f.pull(ctx, from, k)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			fmt.Fprintf(t.Err, "warning: %s: %s\n", visible(f.path), visible(w))
		}
		fmt.Fprintln(out, visible(f.path))
		result := f.result("written")
		result.Warnings = warnings
		results = append(results, result)
	}
	return c.tell(t, results, out)
}

// pull updates the file from the case, and returns warnings for the user.
func (f *caseFile) pull(ctx context.Context, from *client.Client, k api.ReplayCase) (warnings []string, err error) {
	if f.SourceID != k.SourceID && !k.SourceAvailable {
		f.Request = nil // it belongs to another event
	}
	f.ID, f.LockVersion, f.Name, f.Description, f.SourceID, f.TargetURL = k.ID, k.LockVersion, k.Name, k.Description, k.SourceID, k.TargetURL
	f.Identity, f.Signature, f.Status, f.JSONSubset = k.Options.IdentityMode, k.Options.SignatureMode, nil, string(k.Assertions.JSONSubset)
	if s := k.Assertions.Status; s != nil && s.Class != nil {
		f.Status = *s.Class
	} else if s != nil && s.Code != nil {
		f.Status = *s.Code
	}
	if k.SourceAvailable {
		if err := f.fetch(ctx, from, k.EndpointID); err != nil {
			return nil, err
		}
	} else if f.Request == nil {
		warnings = append(warnings, fmt.Sprintf("the event of %q is gone, so the file has no request and cannot be run with --target; the server can still run the case", k.Name))
	}
	return warnings, f.write()
}

// fetch writes the case's event to the file, and its body next to it.
func (f *caseFile) fetch(ctx context.Context, from *client.Client, endpoint string) error {
	request, body, err := sourceOf(ctx, from, endpoint, f.SourceID)
	if err != nil {
		return err
	}
	request.BodyFile = f.in.newBody(f.name)
	f.Request = &request
	return f.in.write(request.BodyFile, body)
}

// sourceOf reads the event of a case.
func sourceOf(ctx context.Context, from *client.Client, endpoint, id string) (r caseRequest, body []byte, err error) {
	e, err := from.Request(ctx, endpoint, id)
	if err != nil {
		return r, nil, err
	}
	var b bytes.Buffer
	err = from.RequestBody(ctx, endpoint, id, &b)
	r = caseRequest{Method: e.Method, Provider: e.DetectedProvider, Headers: e.Exact().HeaderList}
	if e.Authentication != nil {
		r.Headers = e.HeaderList // informational: a mail is sent as its body
		r.From, r.To = deref(e.From), deref(e.To)
		r.ReceivedAt, r.Authentication = e.RequestedAt.Time, &hookglass.Authentication{SPF: e.Authentication.SPF, DKIM: e.Authentication.DKIM, DMARC: e.Authentication.DMARC}
	}
	return r, b.Bytes(), err
}

// asText returns headers as the API shows them, which is how files of earlier versions have them.
func asText(headers [][2]string) [][2]string {
	texts := make([][2]string, len(headers))
	for i, h := range headers {
		texts[i] = [2]string{api.Text(h[0]), api.Text(h[1])}
	}
	return texts
}

// edited returns the part of the file's request that differs from the event, or "".
func (f *caseFile) edited(event caseRequest, body []byte) (string, error) {
	own, err := f.body()
	if errors.Is(err, errMissing) {
		own, err = body, nil // deliberately not in the repository, because of its content
	}
	switch {
	case err != nil:
		return "", err
	case f.Request.Method != event.Method:
		return "method", nil
	case f.Request.Provider != "" && f.Request.Provider != event.Provider:
		return "provider", nil
	case !slices.Equal(asText(f.Request.Headers), asText(event.Headers)):
		return "headers", nil
	case !bytes.Equal(own, body):
		return "body", nil
	}
	return "", nil
}

// device matches the names that are those of devices on Windows, with any ending.
var device = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)

// slug derives a file name from the name of a case.
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
	switch {
	case s == "":
		s = "case"
	case device.MatchString(s):
		s += "-case"
	}
	return s[:min(len(s), 60)]
}

// CasesPushCmd is `hookglass cases push`.
type CasesPushCmd struct{}

// Run implements the command. If a case was changed on the server meanwhile, its file is refused; pull first. A refused
// file does not keep others from being saved.
func (*CasesPushCmd) Run(ctx context.Context, t *server.Terminal, c *CasesCmd) error {
	to, err := c.endpoint()
	if err != nil {
		return err
	}
	dir, err := openCaseDir(c.Dir)
	if err != nil {
		return err
	}
	defer dir.close()
	files, err := dir.some("")
	if err != nil {
		return err
	}
	cases, err := c.all(ctx, to)
	if err != nil {
		return err
	}
	saved := make(map[string]api.ReplayCase, len(cases))
	for _, k := range cases {
		saved[k.ID] = k
	}
	failed, code, results, out := 0, exitRefused, make([]caseResult, len(files)), c.progress(t)
	for i, f := range files {
		state, notes, err := f.push(ctx, to, c.Endpoint, saved)
		if err != nil && ctx.Err() != nil { // it was stopped: that is no fault of this file, nor of those that follow
			return cmp.Or(c.tell(t, results[:i], out), err)
		}
		if err != nil {
			text := explain(err)
			if !strings.HasPrefix(text, f.path) {
				text = f.path + ": " + text
			}
			failed++
			code = min(code, exitCode(err)) // the exit code for refused is for a token that may save nothing
			fmt.Fprintln(t.Err, "hookglass:", visibleLines(text))
			results[i] = f.result("failed")
			results[i].Message = text
			continue
		}
		text := state
		if state != caseUnchanged {
			text = fmt.Sprintf("version %d of %s", f.LockVersion, f.ID)
		}
		results[i] = f.result(state)
		results[i].Warnings = notes
		fmt.Fprintf(out, "%s: %s\n", visible(f.path), strings.Join(append([]string{text}, notes...), "; "))
	}
	if err := c.tell(t, results, out); err != nil {
		return err
	}
	if failed > 0 {
		return outcome{code, fmt.Sprintf("%d of %s not saved", failed, plural(len(files), "case file was", "case files were"))}
	}
	return nil
}

// The results of a push.
const (
	caseCreated   = "created"
	caseUpdated   = "updated"
	caseUnchanged = "unchanged"
)

// push saves the differences between the file and the case on the server. The notes are for the user.
func (f *caseFile) push(ctx context.Context, to *client.Client, endpoint string, saved map[string]api.ReplayCase) (state string, notes []string, err error) {
	if f.fault != nil {
		return "", nil, f.fault
	}
	_, a, err := f.assertions()
	if err != nil {
		return "", nil, err
	}
	was, exists := saved[f.ID]
	if f.ID != "" && !exists {
		return "", nil, fmt.Errorf("the endpoint has no case %s; without its id the file makes a new one", f.ID)
	}
	source := cmp.Or(f.SourceID, was.SourceID)
	moved := exists && source != was.SourceID
	switch {
	case f.Request == nil || moved: // the new event's request is used
	case exists && !was.SourceAvailable:
		notes = append(notes, "its event is gone, so its request was not compared with the saved one")
	default:
		if err := f.compare(ctx, to, endpoint, source); err != nil {
			return "", nil, err
		}
	}
	if !exists {
		if err := f.in.mayWrite(f.name); err != nil { // if the id cannot be stored in the file, each push would create another case
			return "", nil, err
		}
		was, err = to.CreateReplayCase(ctx, endpoint, api.NewReplayCase{
			SourceID: api.Some(f.SourceID), Name: api.Some(f.Name), Description: api.Some(f.Description), TargetURL: api.Some(f.TargetURL),
			Options: api.Some(f.options()), Assertions: api.Some(a),
		})
		state = caseCreated
	} else if change, changed := f.change(was, source, a); changed {
		was, err = to.UpdateReplayCase(ctx, endpoint, f.ID, change)
		state = caseUpdated
	} else {
		state = caseUnchanged
	}
	if err != nil {
		return "", nil, err
	}
	if state == caseUnchanged && f.LockVersion == was.LockVersion {
		return state, notes, nil
	}
	f.ID, f.LockVersion, f.SourceID = was.ID, was.LockVersion, was.SourceID
	if moved && f.Request != nil {
		err = f.fetch(ctx, to, endpoint)
	}
	if lost := f.write(); lost != nil { // store the new version in any case
		err = errors.Join(err, fmt.Errorf("it is version %d of %s, but the file cannot say so: %w", f.LockVersion, f.ID, lost))
	}
	return state, notes, err
}

func (f *caseFile) options() api.CaseOptions {
	return api.CaseOptions{
		IdentityMode: cmp.Or(f.Identity, string(hookglass.IdentityOriginal)), SignatureMode: cmp.Or(f.Signature, string(hookglass.DefaultSignatureMode)),
	}
}

// change returns the fields in which the file differs from the case, and whether there are any.
func (f *caseFile) change(was api.ReplayCase, source string, a api.Assertions) (change api.ReplayCaseChange, changed bool) {
	change.LockVersion = api.Some(f.LockVersion)
	for _, differ := range []bool{
		differs(&change.SourceID, was.SourceID, source),
		differs(&change.Name, was.Name, f.Name),
		differs(&change.Description, was.Description, f.Description),
		differs(&change.TargetURL, was.TargetURL, f.TargetURL),
		differs(&change.Options, was.Options, f.options()),
	} {
		changed = changed || differ
	}
	if !sameAssertions(was.Assertions, a) {
		change.Assertions, changed = api.Some(a), true
	}
	return change, changed
}

// compare refuses a file whose request differs from its event. The server stores no request: a case always uses the
// captured event.
func (f *caseFile) compare(ctx context.Context, from *client.Client, endpoint, source string) error {
	event, body, err := sourceOf(ctx, from, endpoint, source)
	if refused, ok := errors.AsType[*client.Error](err); ok && f.ID == "" && refused.Status == http.StatusNotFound {
		return nil // saving will report what is wrong
	}
	if err != nil {
		return err
	}
	part, err := f.edited(event, body)
	if err == nil && part != "" {
		err = fmt.Errorf("the %s of the request is not as captured (%s), and the request of a saved case cannot be changed. "+
			"Send the changed request to the endpoint and name its event as source_id, or undo the change with \"hookglass cases pull\"", part, source)
	}
	return err
}

// differs sets a field of a change if its value differs, and reports whether it does.
func differs[T comparable](in *api.Optional[T], was, is T) bool {
	if was != is {
		*in = api.Some(is)
	}
	return was != is
}

func sameAssertions(a, b api.Assertions) bool {
	status := func(s *api.StatusAssertion) (string, int) {
		if s == nil {
			return "", 0
		}
		var code int
		if s.Code != nil {
			code = *s.Code
		}
		return deref(s.Class), code
	}
	compact := func(o api.JSONObject) string {
		var b bytes.Buffer
		if len(o) == 0 || json.Compact(&b, o) != nil || b.String() == "{}" {
			return "" // an empty object asserts nothing
		}
		return b.String()
	}
	classA, codeA := status(a.Status)
	classB, codeB := status(b.Status)
	return classA == classB && codeA == codeB && compact(a.JSONSubset) == compact(b.JSONSubset)
}
