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
	"sync"
	"testing"
	"unicode/utf8"
)

// module is the path that the project's own imports begin with; the root package has the bare path.
const module = "hookglass"

// A package's layer. Imports point down only: from a layer to a lower one. The names are import paths without
// "hookglass/internal/"; what lies below a named package (web/requests, store/migrations) belongs to it.
var layers = map[string]int{
	module: 1, "memory": 1, "neterr": 1,

	"provider": 2, "email": 2, "inspect": 2, "seal": 2, "outbound": 2, "jsondoc": 2, "schema": 2, "query": 2, "intake": 2, "fair": 2, "endpointsfile": 2, "redact": 2, "bundle": 2, "timeshift": 2, "coding": 2, "paste": 2, module + "/api": 2,

	"store": 3,

	"account": 4, "endpoint": 4, "capture": 4, "tunnel": 4, "alert": 4, "action": 4, "replay": 4, "delivery": 4, "diagnosis": 4, "retries": 4, "drift": 4, "share": 4, "ledger": 4, "flow": 4, "move": 4, "draft": 4, "declare": 4, "release": 4,

	"httpd": 5, "cable": 5, "ingest": 5, "smtpd": 5, "rest": 5, "mcp": 5, "web": 5, "job": 5,

	"server": 6, module + "/client": 6, "listen": 6, "cli": 6,

	module + "/cmd/hookglass": 7, module + "/bench": 7,

	testSupport: 7, testBounds: 7, "faults": 7,
}

// These are imported by tests and, the first, by the benchmarks, and by nothing that is shipped.
const (
	testSupport = "store/storetest"
	testBounds  = "cputime"
)

// siblings are the imports within one layer that are allowed.
var siblings = map[string][]string{
	"draft":           {"endpoint", "action", "alert"},          // whose drafts it makes
	"declare":         {"draft", "endpoint", "action", "alert"}, // a file names all of them, and one transaction holds what it changes
	"endpointsfile":   {module + "/api", "redact"},              // a file is the contract's structs, spelled in YAML, without credentials
	"provider":        {"jsondoc", "coding"},
	"bundle":          {"jsondoc", "coding", "provider", "redact"},
	"redact":          {"jsondoc"},
	"timeshift":       {"jsondoc", "provider"},
	"inspect":         {"jsondoc", "coding"},
	"schema":          {"jsondoc"},
	"query":           {"email", "coding"},
	"action":          {"delivery"},
	"replay":          {"delivery"},
	"share":           {"delivery"},
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
	module + "/client": {[]string{module, module + "/api", "neterr"},
		"a client is used outside this repository and knows of the server the contract alone"},
	"listen": {[]string{module, module + "/api", module + "/client", "neterr"},
		"the local end of the tunnel speaks to a server through client alone"},
	module + "/bench": {[]string{module + "/client", testSupport},
		"the benchmark measures the binary from outside"},
	module + "/cmd/hookglass": {[]string{"cli"},
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
		[]string{"httpd", "cable", "ingest", "rest", "mcp", "web", "server", "outbound", module + "/client", "listen", "cli", module + "/bench"},
		"HTTP is a matter of the edges and of what calls out; a capability speaks the language of the field",
	},
	{
		[]string{"compress"},
		[]string{"coding", "server", "httpd"},
		"a body is decompressed in one place, with one bound; server packs archives, and httpd what is served",
	},
	{
		[]string{"os/exec"},
		[]string{"cli", "listen", testSupport, module + "/bench"},
		"the server starts no programs; the command line opens a browser, listen runs what its user names, and the benchmark what it measures",
	},
	{
		[]string{"github.com/coder/websocket"},
		[]string{"cable", module + "/client", module + "/bench"},
		"the socket of the tunnel has one edge, and its other end the client",
	},
	{
		[]string{"github.com/danielgtaylor/huma"},
		[]string{"rest"},
		"the REST framework stays in the REST edge",
	},
	{
		[]string{"github.com/a-h/templ", "github.com/alecthomas/chroma"},
		[]string{"web"},
		"pages are rendered in web",
	},
	{
		[]string{"github.com/alecthomas/kong"},
		[]string{"cli"},
		"flags are read where the program is put together",
	},
	{
		[]string{"github.com/modelcontextprotocol/go-sdk"},
		[]string{"mcp"},
		"the framework of the tools stays in its edge",
	},
	{
		[]string{"github.com/prometheus/client_golang"},
		[]string{"server"},
		"what is measured is counted in plain numbers, which server collects",
	},
	{
		[]string{"github.com/tink-crypto/tink-go"},
		[]string{"seal"},
		"secrets are sealed in one place",
	},
	{
		[]string{"golang.org/x/crypto/argon2"},
		[]string{"account"},
		"passwords are hashed in one place",
	},
	{
		[]string{"net/smtp", "github.com/emersion/go-smtp", "github.com/wneessen/go-mail"},
		[]string{"alert"},
		"mail goes out to those who are to be told, and to nobody else; smtpd, which takes it in, speaks the protocol itself",
	},
	{
		[]string{"github.com/emersion/go-message", "github.com/emersion/go-msgauth", "blitiri.com.ar/go/spf"},
		[]string{"email"},
		"a mail is read and judged in one place",
	},
	{
		[]string{"github.com/KimMachineGun/automemlimit"},
		[]string{"memory"},
		"how much memory there is is asked in one place",
	},
	{
		[]string{"github.com/dlclark/regexp2"},
		[]string{"action"},
		"expressions that can run away are bounded in one place",
	},
	{
		[]string{"testing"},
		[]string{testSupport, testBounds},
		"what is shipped carries no test code",
	},
}

// reservedNames are those of standard packages that belong to a few of ours.
var reservedNames = []struct {
	of           string
	names, users []string
	why          string
}{
	{
		"net/http",
		[]string{"Handler", "HandlerFunc", "ResponseWriter", "ServeMux", "NewServeMux", "Server", "ResponseController", "NewResponseController", "Serve", "ListenAndServe"},
		[]string{"httpd", "cable", "ingest", "rest", "mcp", "web", "server", "cli", module + "/bench"},
		"HTTP handlers are in the edges and in server (and in cli for the browser's sign-in callback)",
	},
	{
		"net/http",
		[]string{"Client", "Transport", "RoundTripper", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "NewRequest", "NewRequestWithContext"},
		[]string{"outbound", module + "/client", "cli", module + "/bench"},
		"requests go out through outbound, or from a client; everything else could be made to reach inside",
	},
	{
		"net",
		[]string{"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialUnix", "Dialer", "DefaultResolver", "LookupHost", "LookupIP", "LookupAddr"},
		[]string{"outbound", "store", "server", "listen", testSupport, module + "/bench"},
		"what a user names is dialled by outbound; store dials its database, server itself and what its operator named, listen the user's own machine, and what serves tests ports of their own",
	},
	{
		"os",
		[]string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Args"},
		[]string{"server", "cli", testSupport, module + "/cmd/hookglass", module + "/bench"},
		"configuration comes in by a constructor's arguments",
	},
	{
		"syscall",
		[]string{"ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "EADDRINUSE", "EADDRNOTAVAIL"},
		[]string{"neterr"},
		"no connection fails with these numbers on Windows, which neterr knows",
	},
}

// pure are the packages whose answers depend on nothing but what they are asked.
var pure = []string{module, module + "/api", "provider", "email", "inspect", "jsondoc", "schema", "query", "endpointsfile", "redact", "bundle", "timeshift", "coding", "paste", "draft"}

// clock are the names of time by which a package asks what time it is, or waits.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTicker", "NewTimer"}

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
	all, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// listed are the packages of the module, which are asked for once for all tests.
var listed = sync.OnceValues(func() (all []pkg, err error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Error", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, errors.New("go list found no package")
	}
	return all, nil
})

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
	if (to == testSupport || to == testBounds) && !slices.Contains(siblings[from], to) {
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

func TestReservedNamesStayWhereTheyBelong(t *testing.T) {
	eachFile(t, func(_ pkg, from string, fset *token.FileSet, file *ast.File) {
		for _, r := range reservedNames {
			if slices.Contains(r.users, from) {
				continue
			}
			for _, sel := range usesOf(file, r.of, r.names) {
				t.Errorf("%s uses %s.%s: %s", fset.Position(sel.Pos()), path.Base(r.of), sel.Sel.Name, r.why)
			}
		}
	})
}

func TestWhatIsPureAsksNoClock(t *testing.T) {
	eachFile(t, func(_ pkg, from string, fset *token.FileSet, file *ast.File) {
		if !slices.Contains(pure, from) {
			return
		}
		for _, sel := range usesOf(file, "time", clock) {
			t.Errorf("%s uses time.%s: %s is pure, and is told what time it is", fset.Position(sel.Pos()), sel.Sel.Name, from)
		}
	})
}

// What nobody needs any more is not allowed any more.
func TestEveryAllowanceIsUsed(t *testing.T) {
	imported := map[string][]string{} // by the home of who imports it; a package of the project by its own home
	for _, p := range packages(t) {
		from, _ := home(p.ImportPath)
		for _, i := range p.Imports {
			if to, ok := home(i); ok && ours(i) {
				i = to
			}
			imported[from] = append(imported[from], i)
		}
	}
	for from, to := range siblings {
		for _, name := range to {
			if !slices.Contains(imported[from], name) {
				t.Errorf("%s may import its sibling %s, and does not", from, name)
			}
		}
	}
	for from, n := range narrow {
		for _, name := range n.imports {
			if !slices.Contains(imported[from], name) {
				t.Errorf("%s may import %s, and does not", from, name)
			}
		}
	}
	for _, r := range reserved {
		for _, user := range r.users {
			if !slices.ContainsFunc(imported[user], func(i string) bool {
				return slices.ContainsFunc(r.imports, func(root string) bool { return below(i, root) })
			}) {
				t.Errorf("%s may import %s, and does not", user, strings.Join(r.imports, ", "))
			}
		}
	}
	used := make([]map[string]bool, len(reservedNames))
	for i := range used {
		used[i] = map[string]bool{}
	}
	eachFile(t, func(_ pkg, from string, _ *token.FileSet, file *ast.File) {
		for i, r := range reservedNames {
			if len(usesOf(file, r.of, r.names)) > 0 {
				used[i][from] = true
			}
		}
	})
	for i, r := range reservedNames {
		for _, user := range r.users {
			if !used[i][user] {
				t.Errorf("%s may use %s of %s, and does not", user, strings.Join(r.names, ", "), r.of)
			}
		}
	}
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

// What a test sets otherwise is a field of what it makes: a variable would be set for all that runs beside it.
func TestNoBoundIsAVariable(t *testing.T) {
	eachFile(t, func(_ pkg, _ string, fset *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				for _, value := range spec.(*ast.ValueSpec).Values {
					if isNumber(value) {
						t.Errorf("%s: a number in a package variable; a bound is a constant, or a field with it", fset.Position(value.Pos()))
					}
				}
			}
		}
	})
}

// isNumber reports whether an expression is a number as it is written: 250, 20_000*time.Millisecond, time.Second.
func isNumber(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.INT || e.Kind == token.FLOAT
	case *ast.BinaryExpr:
		return isNumber(e.X) && isNumber(e.Y)
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		return ok && x.Name == "time"
	}
	return false
}

func TestPackageNamesSayWhatTheyHide(t *testing.T) {
	for _, p := range packages(t) {
		for element := range strings.SplitSeq(p.ImportPath, "/") {
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
			if file != "export_test.go" && p.Name != "main" { // a program cannot be imported
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

// source is a file that is part of the program and written by hand.
type source struct {
	of   pkg
	fset *token.FileSet
	file *ast.File
}

// sources are all there are, parsed once for all tests.
var sources = sync.OnceValues(func() (all []source, failed error) {
	packages, err := listed()
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				failed = errors.Join(failed, err)
			} else if !ast.IsGenerated(file) {
				all = append(all, source{p, fset, file})
			}
		}
	}
	return all, failed
})

// eachFile visits every file that is part of the program and written by hand.
func eachFile(t *testing.T, visit func(p pkg, from string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Error(err)
	}
	for _, s := range all {
		from, _ := home(s.of.ImportPath)
		visit(s.of, from, s.fset, s.file)
	}
}

// usesOf are the places where a file uses one of the names of a package.
func usesOf(file *ast.File, importPath string, names []string) (found []*ast.SelectorExpr) {
	local := importName(file, importPath)
	if local == "" {
		return nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(names, sel.Sel.Name) {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
				found = append(found, sel)
			}
		}
		return true
	})
	return found
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
		{"action", "hookglass/internal/cputime", "serves tests"},
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
