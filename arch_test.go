package hookglass_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// module is the path that the project's own imports begin with; the root package has the bare path.
const module = "hookglass"

// A package's layer. Imports point down only: from a layer to a lower one. The names are import paths without
// "hookglass/internal/"; what lies below a named package (web/requests, store/migrations) belongs to it.
var layers = map[string]int{
	module: 1,

	"provider": 2, "email": 2, "inspect": 2, "seal": 2, "outbound": 2, "jsondoc": 2, "schema": 2, "query": 2, "intake": 2, "fair": 2, "endpointsfile": 2, "bundle": 2, "timeshift": 2, "coding": 2, module + "/api": 2,

	"store": 3,

	"account": 4, "endpoint": 4, "capture": 4, "tunnel": 4, "alert": 4, "action": 4, "replay": 4, "delivery": 4, "diagnosis": 4, "retries": 4, "drift": 4, "share": 4, "ledger": 4, "flow": 4, "move": 4, "draft": 4, "declare": 4,

	"httpd": 5, "cable": 5, "ingest": 5, "smtpd": 5, "rest": 5, "mcp": 5, "web": 5, "job": 5,

	"server": 6, module + "/client": 6, "listen": 6, "cli": 6,

	module + "/cmd/hookglass": 7, module + "/bench": 7,

	testSupport: 7, "faults": 7,
}

// testSupport is imported by tests and by the benchmarks, and by nothing that is shipped.
const testSupport = "store/storetest"

// siblings are the imports within one layer that are allowed.
var siblings = map[string][]string{
	"draft":           {"endpoint", "action", "alert"},          // whose drafts it makes
	"declare":         {"draft", "endpoint", "action", "alert"}, // a file names all of them, and one transaction holds what it changes
	"endpointsfile":   {module + "/api"},                        // a file is the contract's structs, spelled in YAML
	"provider":        {"jsondoc", "coding"},
	"bundle":          {"jsondoc", "coding", "provider"},
	"timeshift":       {"jsondoc", "provider"},
	"inspect":         {"jsondoc", "coding"},
	"schema":          {"jsondoc"},
	"query":           {"email", "coding"},
	"action":          {"delivery"},
	"replay":          {"delivery"},
	"share":           {"action", "delivery"},
	"cable":           {"httpd"},
	"ingest":          {"httpd"},
	"smtpd":           {"httpd"},
	"rest":            {"httpd"},
	"mcp":             {"httpd"},
	"web":             {"httpd"},
	"listen":          {module + "/client"},
	"cli":             {module + "/client", "listen", "server"},
	module + "/bench": {testSupport},
}

// narrow holds the packages that import, of the project, only what is named here, whatever their layer allows.
var narrow = map[string]struct {
	imports []string
	why     string
}{
	module + "/client": {[]string{module, module + "/api"},
		"a client is used outside this repository and knows the contract alone"},
	"listen": {[]string{module, module + "/api", module + "/client"},
		"the local end of the tunnel speaks to a server through client alone"},
	module + "/bench": {[]string{module, module + "/api", module + "/client", testSupport},
		"the benchmark measures the binary from outside"},
	module + "/cmd/hookglass": {[]string{module, "cli", "server"},
		"main handles signals and the exit, nothing else"},
}

// reserved are imports that belong to a few packages. An import matches if it is the path or lies below it.
var reserved = []struct {
	imports []string
	users   []string
	why     string
}{
	{
		[]string{"database/sql", "modernc.org/sqlite", "github.com/jackc/pgx", "github.com/lib/pq", "github.com/uptrace/bun", "github.com/pressly/goose", "zombiezen.com/go/sqlite", "github.com/mattn/go-sqlite3"},
		[]string{"store", testSupport},
		"the only SQL is in store",
	},
	{
		[]string{"github.com/riverqueue/river"},
		[]string{"store", "job"},
		"the queue library stays behind its seam: store enqueues, job works",
	},
	{
		[]string{"net/http"},
		[]string{"httpd", "cable", "ingest", "rest", "mcp", "web", "server", "outbound", "delivery", module + "/client", "listen", "cli", module + "/bench"},
		"HTTP is a matter of the edges and of what calls out; a capability speaks the language of the field",
	},
	{
		[]string{"compress"},
		[]string{"coding", "server", "httpd"},
		"a body is decompressed in one place, with one bound; server packs archives, and httpd what is served",
	},
	{
		[]string{"net/smtp", "github.com/emersion/go-smtp"},
		[]string{"smtpd"},
		"SMTP is a matter of its edge",
	},
	{
		[]string{"github.com/coder/websocket"},
		[]string{"cable", module + "/client", "listen", module + "/bench"},
		"the socket of the tunnel has one edge, and its other end the client",
	},
	{
		[]string{"github.com/danielgtaylor/huma"},
		[]string{"rest", "httpd", module + "/api"},
		"the REST framework stays in the REST edge",
	},
	{
		[]string{"github.com/a-h/templ", "github.com/alecthomas/chroma"},
		[]string{"web"},
		"pages are rendered in web",
	},
	{
		[]string{"github.com/alecthomas/kong"},
		[]string{"cli", "server", module + "/cmd/hookglass"},
		"flags are read where the program is put together",
	},
	{
		[]string{"testing"},
		[]string{testSupport},
		"what is shipped carries no test code",
	},
}

// httpTypes are the names of net/http that belong to one side of it.
var httpTypes = []struct {
	names []string
	users []string
	why   string
}{
	{
		[]string{"Handler", "HandlerFunc", "ResponseWriter", "ServeMux", "NewServeMux", "Server", "ResponseController", "Serve", "ListenAndServe"},
		[]string{"httpd", "cable", "ingest", "rest", "mcp", "web", "server", "cli", module + "/bench"},
		"HTTP handlers are in the edges and in server (and in cli for the browser's sign-in callback)",
	},
	{
		[]string{"Client", "Transport", "RoundTripper", "DefaultClient", "DefaultTransport", "Get", "Post", "PostForm", "NewRequestWithContext"},
		[]string{"outbound", "delivery", module + "/client", "listen", "cli", module + "/bench"},
		"requests go out through outbound and delivery, or from a client; everything else could be made to reach inside",
	},
}

// forbiddenNames say nothing about what a package hides.
var forbiddenNames = []string{"models", "model", "services", "service", "utils", "util", "common", "types", "helpers", "helper", "pkg", "misc", "shared", "lib", "base", "core"}

// rootMayNot are standard packages that the root does without: it does no I/O and knows no wire format.
var rootMayNot = []string{"os", "io", "net", "net/http", "database/sql", "encoding/json", "log", "log/slog", "context", "testing", "embed"}

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath, Name, Dir              string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
	Error                              *struct{ Err string }
}

// short is the name that the tables above use.
func short(importPath string) string {
	return strings.TrimPrefix(importPath, module+"/internal/")
}

// home is the entry of layers that a package belongs to: its own, or that of the nearest package above it.
func home(importPath string) (name string, ok bool) {
	for name = short(importPath); ; name = path.Dir(name) {
		if _, ok := layers[name]; ok && (name != module || importPath == module) {
			return name, true
		}
		if !strings.Contains(name, "/") {
			return "", false
		}
	}
}

func ours(importPath string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

func below(importPath, root string) bool {
	return importPath == root || strings.HasPrefix(importPath, root+"/")
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Error", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list found no package")
	}
	return all
}

func TestEveryPackageHasALayerAndImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		if p.Error != nil {
			t.Errorf("%s: %s", p.ImportPath, p.Error.Err)
			continue
		}
		from, ok := home(p.ImportPath)
		if !ok {
			t.Errorf("%s is in no layer: give it a layer, in the table of arch_test.go and in docs/architecture.md", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if fault := faultOf(from, imported); fault != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, fault)
			}
		}
	}
}

// faultOf says what is wrong with an import of one of the project's packages, or nothing.
func faultOf(from, imported string) string {
	if !ours(imported) {
		if from == module && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
			return "the root package holds the nouns and pure rules, and imports the standard library alone"
		}
		return ""
	}
	to, ok := home(imported)
	if !ok {
		return "which is in no layer"
	}
	if from == to {
		return ""
	}
	if n, ok := narrow[from]; ok && !slices.Contains(n.imports, to) {
		return fmt.Sprintf("%s may import only %s: %s", from, strings.Join(n.imports, ", "), n.why)
	}
	if to == testSupport && !slices.Contains(siblings[from], to) {
		return "it serves tests, and nothing that is shipped may need it"
	}
	switch {
	case layers[to] < layers[from], slices.Contains(siblings[from], to):
		return ""
	case layers[to] == layers[from]:
		return fmt.Sprintf("both are in layer %d, and siblings do not know one another; an interface at its consumer, or a piece moved down, cuts this edge", layers[to])
	default:
		return fmt.Sprintf("imports point down only, and this goes from layer %d up to layer %d", layers[from], layers[to])
	}
}

func TestReservedImportsStayWhereTheyBelong(t *testing.T) {
	for _, p := range packages(t) {
		from, ok := home(p.ImportPath)
		if !ok {
			continue // another test says so
		}
		for _, imported := range p.Imports {
			for _, r := range reserved {
				if slices.ContainsFunc(r.imports, func(root string) bool { return below(imported, root) }) && !slices.Contains(r.users, from) {
					t.Errorf("%s imports %s, which is for %s alone: %s", p.ImportPath, imported, strings.Join(r.users, ", "), r.why)
				}
			}
			if from == module && slices.Contains(rootMayNot, imported) {
				t.Errorf("the root package imports %s: it does no I/O, knows no wire format and asks no clock", imported)
			}
		}
	}
}

func TestEachSideOfHTTPStaysWhereItBelongs(t *testing.T) {
	eachFile(t, func(p pkg, from string, fset *token.FileSet, file *ast.File) {
		name := importName(file, "net/http")
		if name == "" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); !ok || x.Name != name {
				return true
			}
			for _, side := range httpTypes {
				if slices.Contains(side.names, sel.Sel.Name) && !slices.Contains(side.users, from) {
					t.Errorf("%s uses http.%s: %s", fset.Position(sel.Pos()), sel.Sel.Name, side.why)
				}
			}
			return true
		})
	})
}

func TestOnlyTheProgramReadsItsEnvironment(t *testing.T) {
	readers := []string{"server", "cli", testSupport, module + "/cmd/hookglass", module + "/bench"}
	eachFile(t, func(p pkg, from string, fset *token.FileSet, file *ast.File) {
		name := importName(file, "os")
		if name == "" || slices.Contains(readers, from) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == name && slices.Contains([]string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Args"}, sel.Sel.Name) {
					t.Errorf("%s reads os.%s: configuration comes in by a constructor's arguments", fset.Position(sel.Pos()), sel.Sel.Name)
				}
			}
			return true
		})
	})
}

func TestNothingRunsBeforeMain(t *testing.T) {
	eachFile(t, func(p pkg, from string, fset *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: an init function; what must be set up is set up by a constructor", fset.Position(f.Pos()))
			}
		}
	})
}

func TestPackageNamesSayWhatTheyHide(t *testing.T) {
	for _, p := range packages(t) {
		for _, element := range strings.Split(p.ImportPath, "/") {
			if slices.Contains(forbiddenNames, element) {
				t.Errorf("%s: a package called %q hides nothing that can be named; name what it hides", p.ImportPath, element)
			}
		}
		if last := path.Base(p.ImportPath); p.Name != "main" && p.Name != "" && p.Name != last {
			t.Errorf("%s: the package in folder %s is called %s", p.ImportPath, last, p.Name)
		}
	}
}

func TestEveryPackageHasExactlyOnePackageComment(t *testing.T) {
	documented := map[string][]string{}
	eachFile(t, func(p pkg, from string, fset *token.FileSet, file *ast.File) {
		where := filepath.Base(fset.Position(file.Package).Filename)
		if file.Doc == nil {
			return
		}
		documented[p.ImportPath] = append(documented[p.ImportPath], where)
		first := "Package " + p.Name + " "
		if p.Name == "main" {
			first = "Command " + path.Base(p.ImportPath) + " "
		}
		if !strings.HasPrefix(file.Doc.Text(), first) {
			t.Errorf("%s: %s: the package comment does not begin with %q", p.ImportPath, where, first)
		}
	})
	for _, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue
		}
		switch files := documented[p.ImportPath]; len(files) {
		case 0:
			t.Errorf("%s has no package comment: say what it is for and what it hides", p.ImportPath)
		case 1:
		default:
			t.Errorf("%s has %d package comments, in %s: keep one", p.ImportPath, len(files), strings.Join(files, ", "))
		}
	}
}

func TestTestsStandOutside(t *testing.T) {
	for _, p := range packages(t) {
		for _, file := range p.TestGoFiles {
			if file != "export_test.go" && p.Name != "main" { // a program can not be imported
				t.Errorf("%s/%s is in package %s: tests use a package as its callers do (package %s_test); what they must reach besides goes through export_test.go",
					p.ImportPath, file, p.Name, p.Name)
			}
		}
	}
}

// Comments are read beside the code: in the width that two windows have beside one another. What is indented in them is
// a table, and left alone.
func TestCommentsAreNarrow(t *testing.T) {
	const columns = 120
	eachFile(t, func(_ pkg, _ string, fset *token.FileSet, file *ast.File) {
		source, err := os.ReadFile(fset.File(file.Pos()).Name())
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(source), "\n")
		for _, group := range file.Comments {
			for _, c := range group.List {
				at := fset.Position(c.Pos())
				line := strings.TrimLeft(lines[at.Line-1], "\t")
				text, prose := strings.CutPrefix(line, "// ")
				if !prose || strings.HasPrefix(text, " ") || !strings.Contains(text, " ") {
					continue // behind code, a directive, a table, an address
				}
				if width := 4*(at.Column-1) + utf8.RuneCountInString(line); width > columns {
					t.Errorf("%s: a comment of %d columns; more than %d are hard to read", at, width, columns)
				}
			}
		}
	})
}

// eachFile parses every file that is part of the program and written by hand.
func eachFile(t *testing.T, visit func(p pkg, from string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	for _, p := range packages(t) {
		from, _ := home(p.ImportPath)
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			if !ast.IsGenerated(file) {
				visit(p, from, fset, file)
			}
		}
	}
}

// importName is the name by which a file knows an imported package, or "".
func importName(file *ast.File, importPath string) string {
	for _, spec := range file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// The rule itself, on imports that do not exist: what it refuses, it refuses with a reason.
func TestTheRuleRefuses(t *testing.T) {
	for _, c := range []struct{ from, imported, reason string }{
		{module, "github.com/google/uuid", "standard library alone"},
		{module, "hookglass/api", "up to layer"},
		{"store", "hookglass/internal/capture", "up to layer 4"},
		{"capture", "hookglass/internal/endpoint", "siblings"},
		{"delivery", "hookglass/internal/action", "siblings"},
		{"rest", "hookglass/internal/web", "siblings"},
		{"httpd", "hookglass/internal/rest", "siblings"},
		{"smtpd", "hookglass/internal/store/storetest", "serves tests"},
		{module + "/client", "hookglass/internal/provider", "contract alone"},
		{"listen", "hookglass/internal/store", "through client alone"},
		{"email", "hookglass/internal/jsondoc", "siblings"},
		{"store", "hookglass/internal/unheard", "no layer"},
	} {
		if got := faultOf(c.from, c.imported); !strings.Contains(got, c.reason) {
			t.Errorf("%s imports %s: the rule says %q, want a reason with %q", c.from, c.imported, got, c.reason)
		}
	}
	for _, c := range []struct{ from, imported string }{
		{"store", "hookglass"},
		{"store", "hookglass/internal/store/migrations"},
		{"capture", "hookglass/internal/provider"},
		{"action", "hookglass/internal/delivery"},
		{"web", "hookglass/internal/httpd"},
		{"inspect", "hookglass/internal/jsondoc"},
		{"cli", "hookglass/client"},
		{"server", "hookglass/internal/rest"},
		{module + "/bench", "hookglass/internal/store/storetest"},
	} {
		if got := faultOf(c.from, c.imported); got != "" {
			t.Errorf("%s imports %s: refused: %s", c.from, c.imported, got)
		}
	}
}
