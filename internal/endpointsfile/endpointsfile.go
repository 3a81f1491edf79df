// Package endpointsfile reads and writes endpoints files: a declaration of the API (api.Declaration) spelled in YAML,
// with secrets named by the variable or file that holds them instead of written down. It knows where in the text
// everything stands, so that whatever is wrong is told with its line. Pure except for the [Secrets] it is given.
package endpointsfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/redact"
)

// Bounds of a file. What aliases repeat counts as often as they do.
const (
	MaxBytes = 1 << 20
	maxDepth = 64
	maxSpent = 4 << 20 // bytes of values and of their paths
)

// Secrets finds the value of a secret. Its errors must not hold one.
type Secrets interface {
	Env(name string) (string, error)
	File(path string) (string, error)
}

// File is an endpoints file.
type File struct {
	// Account is the name or id of the account whose workspace is declared; only a server's own file has one.
	Account     string
	Declaration api.Declaration

	name  string
	lines map[string]int  // of each value, by its path such as endpoints.0.name
	wrong map[string]bool // paths of the faults that were told; nothing stands there
}

// document is the form of a file: a declaration, and whose it is.
type document struct {
	Account api.Optional[string] `json:"account,omitzero"`
	api.Declaration
}

// Fault is one thing that is wrong with a file, and where.
type Fault struct {
	File    string
	Line    int    // 0: not known
	Path    string // such as endpoints.0.name; "" for the file
	Message string
}

func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		b.WriteString(":" + strconv.Itoa(f.Line))
	}
	b.WriteString(": ")
	if f.Path != "" {
		b.WriteString(f.Path + " ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// Parse reads a file whole and strictly: an unknown or repeated key, a value of another type and a secret that is
// written down are refused. name stands before each fault. The error is a [Fault], or several joined. Where the faults
// leave something that can be judged, the file comes with the error: its declaration is without what is faulty, and is
// only for a dry run that finds the other faults.
func Parse(name string, text []byte, secrets Secrets) (*File, error) {
	if len(text) > MaxBytes {
		return nil, Fault{File: name, Message: fmt.Sprintf("has more than %d bytes", MaxBytes)}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	err := d.Decode(&root)
	if errors.Is(err, io.EOF) || err == nil && root.Content[0].ShortTag() == "!!null" {
		return nil, Fault{File: name, Message: "is empty"} // and no declaration of nothing, by which all would be pruned
	}
	if err != nil {
		return nil, syntax(name, err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, syntax(name, err)
		}
		return nil, Fault{File: name, Message: "holds several documents; one is read"}
	}
	r := &reader{file: name, secrets: secrets, lines: make(map[string]int), wrong: make(map[string]bool)}
	r.value("", root.Content[0], 0)
	if r.spent > maxSpent { // the rest was not written: what there is is no JSON
		return nil, errors.Join(r.faults...)
	}
	f := &File{name: name, lines: r.lines, wrong: r.wrong}
	faults := r.faults
	for {
		var doc document
		err := jsonv2.Unmarshal(r.json.Bytes(), &doc, jsonv2.RejectUnknownMembers(true))
		if err == nil {
			f.Account, f.Declaration = doc.Account.Value, doc.Declaration
			return f, errors.Join(faults...)
		}
		fault := f.shape(err)
		if len(faults) >= mostFaults || fault.Path == "" || f.wrong[fault.Path] { // nothing can be left out any more
			if len(faults) < mostFaults && !f.wrong[fault.Path] {
				faults = append(faults, fault)
			}
			return nil, errors.Join(faults...)
		}
		faults = append(faults, fault)
		f.wrong[fault.Path] = true
		// Once more without it: the decoder tells the first fault alone.
		r = &reader{file: name, secrets: secrets, lines: make(map[string]int), without: f.wrong, wrong: make(map[string]bool)}
		r.value("", root.Content[0], 0)
	}
}

// mostFaults bounds what is told of one file.
const mostFaults = 20

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntax keeps the line of an error of YAML. Its text may repeat some of the file, but no secret: those are not in it.
func syntax(name string, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if at := yamlLine.FindStringSubmatchIndex(text); at != nil {
		line, _ = strconv.Atoi(text[at[2]:at[3]])
		text = text[:at[0]] + text[at[1]:]
	}
	return Fault{File: name, Line: line, Message: "is not YAML: " + text}
}

// fromPointer makes the path of a file of a JSON Pointer (RFC 6901).
var fromPointer = strings.NewReplacer("/", ".", "~1", "/", "~0", "~")

// shape says where a value does not fit.
func (f *File) shape(err error) Fault {
	var shape *jsonv2.SemanticError
	if !errors.As(err, &shape) {
		return Fault{File: f.name, Message: "cannot be read"}
	}
	path := fromPointer.Replace(strings.TrimPrefix(string(shape.JSONPointer), "/"))
	if errors.Is(shape.Err, jsonv2.ErrUnknownName) {
		return f.Fault(path, "is not a known key")
	}
	return f.Fault(path, "is of another type")
}

// Fault says what is wrong with the value at a path, or with the nearest that there is around it.
func (f *File) Fault(path, message string) Fault {
	path = strings.TrimPrefix(path, "declaration.")
	at := path
	for at != "" && f.lines[at] == 0 {
		at = at[:max(0, strings.LastIndexByte(at, '.'))]
	}
	return Fault{File: f.name, Line: f.lines[at], Path: path, Message: message}
}

// reader turns YAML into JSON and notes where everything stood.
type reader struct {
	file    string
	secrets Secrets
	json    bytes.Buffer
	lines   map[string]int
	spent   int
	faults  []error
	wrong   map[string]bool // the paths of the faults
	without map[string]bool // paths to leave out
}

// fault notes what is wrong with a value, in whose place null is written.
func (r *reader) fault(path string, n *yaml.Node, format string, args ...any) {
	r.note(path, n, format, args...)
	r.json.WriteString("null")
}

func (r *reader) note(path string, n *yaml.Node, format string, args ...any) {
	r.wrong[path] = true
	if len(r.faults) < mostFaults {
		r.faults = append(r.faults, Fault{r.file, n.Line, path, fmt.Sprintf(format, args...)})
	}
}

func (r *reader) value(path string, n *yaml.Node, depth int) {
	if r.spent > maxSpent {
		return
	}
	if r.spent += len(path) + len(n.Value) + 1; r.spent > maxSpent || depth > maxDepth {
		r.fault(path[:min(len(path), 100)], n, "is more than a file may hold")
		return
	}
	if n.Kind == yaml.AliasNode {
		r.value(path, n.Alias, depth+1)
		return
	}
	r.lines[path] = n.Line
	switch {
	case r.without[path]:
		r.json.WriteString("null")
	case secretPath.MatchString(path):
		r.secret(path, n)
	case headerPath.MatchString(path) && (n.Kind == yaml.MappingNode || redact.Credential(path[len(headerPath.FindString(path)):])):
		r.secret(path, n)
	case n.Kind == yaml.MappingNode:
		r.mapping(path, n, depth)
	case n.Kind == yaml.SequenceNode:
		r.json.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				r.json.WriteByte(',')
			}
			r.value(join(path, strconv.Itoa(i)), item, depth+1)
		}
		r.json.WriteByte(']')
	default:
		r.scalar(path, n)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (r *reader) mapping(path string, n *yaml.Node, depth int) {
	r.json.WriteByte('{')
	seen := make(map[string]bool)
	written := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name := key.Value
		at := join(path, name)
		switch {
		case r.without[at]:
			continue
		case key.ShortTag() == "!!merge":
			r.note(path, key, "has a merge key (<<), which is not taken: write the keys themselves, or an alias as a whole value")
			continue
		case key.Kind != yaml.ScalarNode:
			r.note(path, key, "has a key that is no text")
			continue
		case seen[name]: // written again, it would be no JSON
			r.note(at, key, "is there twice")
			continue
		}
		seen[name] = true
		if written {
			r.json.WriteByte(',')
		}
		written = true
		if r.spent += len(name); r.spent > maxSpent {
			r.fault(path[:min(len(path), 100)], key, "is more than a file may hold")
			break
		}
		r.text(name)
		r.json.WriteByte(':')
		r.value(at, n.Content[i+1], depth+1)
		r.lines[at] = key.Line
	}
	r.json.WriteByte('}')
}

// text writes a string.
func (r *reader) text(s string) {
	text, _ := json.Marshal(s) // of a string it never fails
	r.json.Write(text)
}

func (r *reader) scalar(path string, n *yaml.Node) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		r.text(n.Value)
	case "!!null":
		r.json.WriteString("null")
	case "!!bool":
		var b bool
		if n.Decode(&b) != nil {
			r.fault(path, n, "is neither true nor false")
			return
		}
		r.json.WriteString(strconv.FormatBool(b))
	case "!!int", "!!float":
		if path == "workspace" || path == "account" { // whose ids are numbers, and names are not
			r.text(n.Value)
			return
		}
		r.number(path, n)
	default:
		r.fault(path, n, "has a tag that is not known")
	}
}

// number writes a number as it is spelled where JSON spells it so, so that none loses a digit.
func (r *reader) number(path string, n *yaml.Node) {
	if json.Valid([]byte(n.Value)) {
		r.json.WriteString(n.Value)
		return
	}
	if len(n.Value) > 100 { // which no field takes
		r.fault(path, n, "is no number that JSON has")
		return
	}
	if i, ok := new(big.Int).SetString(strings.ReplaceAll(n.Value, "_", ""), 0); ok {
		r.json.WriteString(i.String())
		return
	}
	var f float64
	if n.Decode(&f) == nil {
		if text, err := json.Marshal(f); err == nil {
			r.json.Write(text)
			return
		}
	}
	r.fault(path, n, "is no number that JSON has")
}

var (
	secretPath = regexp.MustCompile(`^endpoints\.\d+\.signature_configs\.\d+\.secret$`)
	// headerPath matches the path of a header of a forwarding target, which may hold a secret.
	headerPath = regexp.MustCompile(`^endpoints\.\d+\.forwarding_targets\.\d+\.headers\.`)
)

// secret writes the value of a secret in the place of its name.
func (r *reader) secret(path string, n *yaml.Node) {
	var read func(string) (string, error)
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 {
		read = map[string]func(string) (string, error){"env": r.secrets.Env, "file": r.secrets.File}[n.Content[0].Value]
	}
	if read == nil || n.Content[1].Kind != yaml.ScalarNode || n.Content[1].Value == "" {
		r.fault(path, n, "is never written down: say {env: NAME} or {file: PATH}")
		return
	}
	value, err := read(n.Content[1].Value)
	if err == nil && !utf8.ValidString(value) { // in JSON it would be another secret, with which no signature is right
		err = errors.New("names what is no text in UTF-8, which a secret must be")
	}
	if err != nil {
		r.fault(path, n, "%v", err)
		return
	}
	r.text(value)
}

// Locate says in which lines stands what a declaration was refused for, but not what misses only because [Parse] found
// a fault there.
func (f *File) Locate(details []hookglass.FieldError) error {
	var faults []error
	for _, d := range details {
		if fault := f.Fault(d.Field, d.Message); !f.told(fault.Path) {
			faults = append(faults, fault)
		}
	}
	return errors.Join(faults...)
}

// told reports whether a fault of a path, or of what it is a part of, was told before. Faults of headers name them all
// together, so one header that was told stands for them.
func (f *File) told(path string) bool {
	for wrong := range f.wrong {
		if headerPath.FindString(wrong) == path+"." {
			return true
		}
	}
	for path != "" {
		if f.wrong[path] {
			return true
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return false
}
