package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/jsondoc"
	"hookglass/internal/replay"
)

// Bounds of files that others may have written.
const (
	maxCaseFile = 1 << 20
	maxCaseBody = 32 << 20
)

// caseFile is a case in a repository: this file, and its body in a file next to it.
type caseFile struct {
	ID          string       `yaml:"id,omitempty"`
	LockVersion int64        `yaml:"lock_version,omitempty"`
	Name        string       `yaml:"name"`
	Description string       `yaml:"description,omitempty"`
	SourceID    string       `yaml:"source_id"`
	TargetURL   string       `yaml:"target_url"`
	Identity    string       `yaml:"identity_mode,omitempty"`
	Signature   string       `yaml:"signature_mode,omitempty"`
	Status      any          `yaml:"status,omitempty"`      // a class such as 2xx, or a code
	JSONSubset  string       `yaml:"json_subset,omitempty"` // JSON text, so that numbers stay exact
	Request     *caseRequest `yaml:"request,omitempty"`

	in    *caseDir
	tree  yaml.Node // as it was read
	name  string
	path  string // for people
	fault error  // why it cannot be used
}

// caseRequest is the event, to run the case without the server.
type caseRequest struct {
	Method   string      `yaml:"method"`
	Provider string      `yaml:"provider,omitempty"`
	Headers  [][2]string `yaml:"headers"`
	BodyFile string      `yaml:"body_file,omitempty"` // without one there is no body

	// For mail, whose JSON contains them: the envelope's addresses, used if the headers name none.
	From           string                    `yaml:"from,omitempty"`
	To             string                    `yaml:"to,omitempty"`
	ReceivedAt     time.Time                 `yaml:"received_at,omitempty"`
	Authentication *hookglass.Authentication `yaml:"authentication,omitempty"`
}

// methodMail is the method of a mail.
const methodMail = "EMAIL"

// errMissing completes a sentence that begins with a file name.
var errMissing = errors.New("is not there")

// caseDir is a directory of case files. Nothing outside of it is read or written, whatever links it contains: a
// repository may come from others, and its bodies are sent to a target.
type caseDir struct {
	root   *os.Root
	path   string
	bodies map[string][]string // the case files that name a file as their body's, as far as they were read
}

func openCaseDir(path string) (*caseDir, error) {
	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no directory %s; \"hookglass cases pull\" makes it", path)
	}
	return &caseDir{root, path, make(map[string][]string)}, err
}

func (d *caseDir) close() { d.root.Close() }

func (d *caseDir) read(name string, limit int64) ([]byte, error) {
	path := filepath.Join(d.path, name)
	info, err := d.root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s %w", path, errMissing)
	case err != nil:
		return nil, d.outside(name, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	}
	file, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, path, limit)
}

// mayWrite fails if an existing file is not writable.
func (d *caseDir) mayWrite(name string) error {
	file, err := d.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return d.outside(name, err)
	}
	return file.Close()
}

func (d *caseDir) write(name string, text []byte) error {
	return d.outside(name, replaceFile(d.root, name, only(text)))
}

// outside explains an error that was caused by a link.
func (d *caseDir) outside(name string, err error) error {
	if info, linkErr := d.root.Lstat(name); err != nil && linkErr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a link that leads out of %s", filepath.Join(d.path, name), d.path)
	}
	return err
}

// files reads the case files in order of their names, or only the given one. An invalid one has a fault.
func (d *caseDir) files(name string) (files []*caseFile, err error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.Name() != stem(entry.Name()) && (name == "" || stem(entry.Name()) == stem(filepath.Base(name))) {
			files = append(files, d.file(entry.Name()))
		}
	}
	return files, nil
}

// stem returns the name of a case file without its extension.
func stem(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".yml"), ".yaml")
}

// some is files, but fails if there are none.
func (d *caseDir) some(name string) ([]*caseFile, error) {
	files, err := d.files(name)
	switch {
	case err != nil || len(files) > 0:
		return files, err
	case name != "":
		return nil, fmt.Errorf("there is no case file %s.yaml in %s", stem(filepath.Base(name)), d.path)
	}
	return nil, fmt.Errorf("there is no case file in %s; write them with \"hookglass cases pull\"", d.path)
}

// named returns an empty case file.
func (d *caseDir) named(name string) *caseFile {
	return &caseFile{in: d, name: name, path: filepath.Join(d.path, name)}
}

func (d *caseDir) file(name string) *caseFile {
	f := d.named(name)
	text, err := d.read(name, maxCaseFile)
	if err != nil {
		f.fault = err
		return f
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(f); errors.Is(err, io.EOF) {
		f.fault = fmt.Errorf("%s is empty", f.path)
	} else if err != nil {
		f.fault = fmt.Errorf("%s: %s", f.path, yamlFault(err))
	} else if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) { // a second YAML document would be ignored
		f.fault = fmt.Errorf("%s holds more than one document", f.path)
	} else if err := yaml.Unmarshal(text, &f.tree); err != nil {
		f.fault = fmt.Errorf("%s: %s", f.path, yamlFault(err))
	} else if f.Request != nil && f.Request.BodyFile != "" {
		body := filepath.Base(f.Request.BodyFile)
		d.bodies[body] = append(d.bodies[body], name)
	}
	return f
}

// newBody returns the name of a file for the body of a case: that of the case file, unless another case has its body
// there, as one whose file was renamed. It may be the only copy.
func (d *caseDir) newBody(of string) string {
	others := func(f string) bool { return f != of }
	body := stem(of) + ".body"
	for n := 2; slices.ContainsFunc(d.bodies[body], others); n++ {
		body = fmt.Sprintf("%s-%d.body", stem(of), n)
	}
	d.bodies[body] = append(d.bodies[body], of)
	return body
}

// write keeps the comments that people made in the file.
func (f *caseFile) write() error {
	root := yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{}}}
	if err := root.Content[0].Encode(f); err != nil {
		return err
	}
	inline(&root) // the headers, a line each
	if f.tree.Kind != 0 {
		keepForm(&root, &f.tree)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&root), enc.Close()); err != nil {
		return err
	}
	return f.in.write(f.name, b.Bytes())
}

// body reads the body of the file's request.
func (f *caseFile) body() ([]byte, error) {
	if f.Request.BodyFile == "" {
		return nil, nil
	}
	return f.in.read(filepath.Base(f.Request.BodyFile), maxCaseBody)
}

// assertions parses the file's assertions, and also returns them in the API's form.
func (f *caseFile) assertions() (a hookglass.Assertions, wire api.Assertions, err error) {
	switch s := f.Status.(type) {
	case nil:
	case string:
		wire.Status = &api.StatusAssertion{Class: &s}
	case int:
		wire.Status = &api.StatusAssertion{Code: &s}
	default:
		return a, wire, fmt.Errorf("%s: status is a class such as 2xx, or a number", f.path)
	}
	if s := strings.TrimSpace(f.JSONSubset); s != "" {
		if jsondoc.Check([]byte(s)) != nil || s[0] != '{' {
			return a, wire, fmt.Errorf("%s: json_subset is no JSON object", f.path)
		}
		wire.JSONSubset = []byte(s)
	}
	var faults []hookglass.FieldError
	a = *replay.ReadAssertions(&faults, "", &wire)
	if len(faults) == 0 {
		faults = hookglass.ReplayCaseConfig{Name: "a case", Assertions: a}.Faults()
	}
	if len(faults) > 0 {
		field, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(faults[0].Field, "replay_case."), "assertions."), ".")
		err = fmt.Errorf("%s: %s %s", f.path, field, faults[0].Message)
	}
	return a, wire, err
}

// event returns the event of the case, from its files.
func (f *caseFile) event() (*hookglass.Event, error) {
	if f.Request == nil {
		return nil, fmt.Errorf("%s has no request; \"hookglass cases pull\" writes it there, unless its event is gone", f.path)
	}
	if f.Request.Method != methodMail && !slices.Contains(hookglass.Methods, f.Request.Method) {
		return nil, fmt.Errorf("%s: the method of the request must be one of %s", f.path, strings.Join(hookglass.Methods, ", "))
	}
	body, err := f.body()
	if err != nil {
		return nil, err
	}
	e := &hookglass.Event{
		ID: hookglass.EventID(f.SourceID), Type: hookglass.EventWebhook, Method: f.Request.Method, Provider: f.Request.Provider,
		Payload: &hookglass.Payload{Body: body},
	}
	for _, h := range f.Request.Headers {
		e.Headers = append(e.Headers, hookglass.Header{Name: h[0], Value: h[1]})
	}
	if e.Method != methodMail {
		return e, nil
	}
	e.Type, e.From, e.To = hookglass.EventEmail, f.Request.From, f.Request.To
	if e.ReceivedAt = f.Request.ReceivedAt; e.ReceivedAt.IsZero() {
		e.ReceivedAt = time.Now()
	}
	if f.Request.Authentication != nil {
		e.Authentication = *f.Request.Authentication
	}
	return e, nil
}
