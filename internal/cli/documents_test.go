package cli_test

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"hookglass/internal/cli"
)

var (
	flagOfText = regexp.MustCompile(`^--?[a-z][a-z-]*`)
	wordOfText = regexp.MustCompile(`^[a-z][a-z-]*$`)
	spanOfText = regexp.MustCompile("`hookglass ([^`]+)`")

	commands = cli.Commands()
)

// What a page shows to be pasted is read by the program, and what it names in its prose is there.
func TestTheProgramReadsWhatDocumentsSayToIt(t *testing.T) {
	t.Setenv("HOOKGLASS_ENDPOINT", "ep_1")
	lines, spans := 0, 0
	eachPage(t, func(page, text string) {
		prose, code := apart(text)
		for _, line := range code {
			for _, args := range commandsIn(line) {
				lines++
				if err := cli.Reads(args); err != nil {
					t.Errorf("%s: %s\n\t%v", page, line, err)
				}
			}
		}
		for _, m := range spanOfText.FindAllStringSubmatch(prose, -1) {
			spans++
			if strings.Contains(m[1], "$(") {
				for _, args := range commandsIn("hookglass " + m[1]) {
					if err := cli.Reads(args); err != nil {
						t.Errorf("%s: `hookglass %s`\n\t%v", page, m[1], err)
					}
				}
				continue
			}
			if fault := named(strings.Fields(m[1])); fault != "" {
				t.Errorf("%s: `hookglass %s`: %s", page, m[1], fault)
			}
		}
	})
	if lines < 70 || spans < 60 {
		t.Errorf("%d lines and %d spans were read: the pages are told apart wrongly", lines, spans)
	}
}

// The table of docs/cli.md is compared with the commands, so that it cannot go stale.
func TestTheDocumentationListsTheCommands(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- commands -->\n")
	table, _, found := strings.Cut(table, "\n<!-- /commands -->")
	if !found {
		t.Fatal("docs/cli.md has no table between its marks")
	}
	var want []string
	var look func(n *kong.Node, path string)
	look = func(n *kong.Node, path string) {
		for _, child := range n.Children {
			here := path + " " + child.Name
			for _, p := range child.Positional {
				here += " " + p.Summary()
			}
			switch {
			case child.Hidden:
			case len(child.Children) == 0:
				want = append(want, "| `"+strings.TrimSpace(here)+"` | "+child.Help+" |")
			default:
				look(child, here)
			}
		}
	}
	look(commands, "")
	rows := strings.Split(table, "\n")[2:]
	for _, row := range want {
		if !slices.Contains(rows, row) {
			t.Errorf("the table lacks\n%s", row)
		}
	}
	for _, row := range rows {
		if !slices.Contains(want, row) {
			t.Errorf("the table has, and the program does not:\n%s", row)
		}
	}
}

// The files that pages show are taken as they stand.
func TestTheFilesOfDocumentsAreTaken(t *testing.T) {
	block := func(page string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "```yaml\n")
		file, _, found := strings.Cut(rest, "```")
		if !found {
			t.Fatalf("%s shows no file", page)
		}
		return file
	}
	files := map[string]string{
		"checkout.yaml": block("flows.md"), "hookglass.yaml": block("listen.md"),
		"hookglass-cases/paid.yaml": block("cases.md"), "hookglass-cases/an-invoice-is-paid.body": "{}",
	}
	a := running(t)
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"invoice": {"paid": true}}`)
	}))
	defer target.Close()
	at := []string{"--server", a.server, "--token", a.token}
	for _, made := range [][]string{{"Payments", "--custom-id", "payments"}, {"Mail", "--kind", "email", "--custom-id", "shop-mail"}} {
		object(t, "", slices.Concat([]string{"endpoints", "create"}, made, at)...)
	}
	for want, args := range map[string][]string{
		"expired": append([]string{"flow", "run", "checkout.yaml", "--timeout", "1s"}, at...),
		"passed":  {"cases", "run", "--target", target.URL},
	} {
		if r := run(t, "", args...); !strings.Contains(r.out+r.err, want) {
			t.Errorf("%v: %+v", args, r)
		}
	}
	g := begin(t, strings.NewReader(""), append([]string{"listen", "--config", "hookglass.yaml"}, at...)...)
	g.err.wait(t, "connected;")
	g.stop()
	g.ends(t, 0)
}

// eachPage visits what users read: not what was, and not why.
func eachPage(t *testing.T, visit func(page, text string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	pages, err := fs.Glob(os.DirFS(root), "docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatal(len(pages), err)
	}
	for _, page := range append(pages, "README.md", "SECURITY.md", "CONTRIBUTING.md") {
		b, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		visit(page, string(b))
	}
}

// apart is a page's prose, and the lines of its blocks of code, those that go on behind a backslash as one.
func apart(text string) (prose string, code []string) {
	var said strings.Builder
	inside, open := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inside, open = !inside, false
		case !inside:
			said.WriteString(line + "\n")
		default:
			start, more := strings.CutSuffix(line, `\`)
			if open {
				code[len(code)-1] += " " + start
			} else {
				code = append(code, start)
			}
			open = more
		}
	}
	return said.String(), code
}

// commandsIn are the arguments of each call of hookglass in a line of a shell.
func commandsIn(line string) [][]string {
	var all [][]string
	for _, words := range shell(line) {
		for len(words) > 0 && (words[0] == "$" || words[0] == "sudo" || strings.Contains(words[0], "=")) {
			words = words[1:]
		}
		switch {
		case len(words) == 0 || strings.HasPrefix(line, "hookglass is running."):
		case words[0] == "hookglass" || words[0] == "./bin/hookglass" || words[0] == "hookglass-service":
			all = append(all, words[1:])
		case slices.Contains(words, "/hookglass"): // docker exec
			all = append(all, words[slices.Index(words, "/hookglass")+1:])
		}
	}
	return all
}

// shell parts a line into the words of its commands, those within $(…) as well.
func shell(line string) [][]string {
	var all [][]string
	var words []string
	var word strings.Builder
	begun := false
	endWord := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			n := strings.IndexByte(line[i+1:], '\'')
			if n < 0 {
				return nil // text, with an apostrophe
			}
			word.WriteString(line[i+1 : i+1+n])
			i, begun = i+1+n, true
		case c == '"':
			n := strings.IndexByte(line[i+1:], '"')
			if n < 0 {
				return nil
			}
			word.WriteString(line[i+1 : i+1+n])
			i, begun = i+1+n, true
		case strings.HasPrefix(line[i:], "$("):
			n := strings.IndexByte(line[i:], ')')
			if n < 0 {
				return nil
			}
			all = append(all, shell(line[i+2:i+n])...)
			word.WriteString("1")
			i, begun = i+n, true
		case c == ' ':
			endWord()
		case c == '#' && !begun:
			endCommand()
			return all
		case strings.IndexByte("|&;", c) >= 0:
			endCommand()
		case c == '<' || c == '>':
			endWord()
			for i++; i < len(line) && line[i] == ' '; i++ {
			}
			for i < len(line) && line[i] != ' ' {
				i++
			}
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	endCommand()
	return all
}

// alternatives are the commands that words name: "replays pause|resume" names two.
func alternatives(words []string) []string {
	paths := []string{""}
	for _, word := range words {
		if !wordOfText.MatchString(strings.ReplaceAll(word, "|", "")) {
			break
		}
		var longer []string
		for _, path := range paths {
			for choice := range strings.SplitSeq(word, "|") {
				if here := strings.TrimSpace(path + " " + choice); pathOf(strings.Fields(here)) == here {
					longer = append(longer, here)
				}
			}
		}
		if len(longer) == 0 {
			break
		}
		paths = longer
	}
	return paths
}

// pathOf is the command that words begin with.
func pathOf(words []string) string {
	n, path := commands, ""
	for _, word := range words {
		i := slices.IndexFunc(n.Children, func(c *kong.Node) bool { return c.Name == word })
		if i < 0 {
			break
		}
		n, path = n.Children[i], strings.TrimSpace(path+" "+word)
	}
	return path
}

// named says what of a command that prose names is not there: a word that is no command, or a flag that it has not.
func named(words []string) string {
	if strings.HasPrefix(words[0], "COMMAND") || strings.HasPrefix(words[0], "<") {
		return ""
	}
	for _, choice := range strings.Split(words[0], "|") {
		if choice != "--help" && choice != "--version" && pathOf([]string{choice}) == "" {
			return "there is no command " + choice
		}
	}
	for _, path := range alternatives(words) {
		n := commands
		for word := range strings.FieldsSeq(path) {
			n = n.Children[slices.IndexFunc(n.Children, func(c *kong.Node) bool { return c.Name == word })]
		}
		rest := words[len(strings.Fields(path)):]
		if len(n.Children) > 0 && len(rest) > 0 && wordOfText.MatchString(strings.ReplaceAll(rest[0], "|", "")) {
			return "there is no command " + path + " " + rest[0]
		}
		for _, word := range rest {
			flag := flagOfText.FindString(strings.Trim(word, "[]"))
			if flag != "" && flag != "--help" && !hasFlag(n, flag) {
				return "there is no flag " + flag
			}
		}
	}
	return ""
}

// hasFlag says whether a command, the group that it is of, or one of its own group has the flag.
func hasFlag(n *kong.Node, flag string) bool {
	for _, flags := range n.AllFlags(true) {
		for _, f := range flags {
			if flag == "--"+f.Name || f.Short != 0 && flag == "-"+string(f.Short) {
				return true
			}
		}
	}
	return slices.ContainsFunc(n.Children, func(c *kong.Node) bool { return hasFlag(c, flag) })
}
