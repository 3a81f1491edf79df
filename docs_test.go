package hookglass_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"hookglass/internal/provider"
)

var (
	linkPattern   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	makePattern   = regexp.MustCompile("(?m)(?:^|`)make ([a-z]+)")
	testPattern   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	rowPattern    = regexp.MustCompile(`(?m)^\| (\d+) \|[^|]+\| (.+) \|$`)
	namedPattern  = regexp.MustCompile("`[a-z]+` `(?:Test|Fuzz)\\w+`")
	flagPattern   = regexp.MustCompile(`--[a-z][a-z-]*`)
	envPattern    = regexp.MustCompile(`env:"HOOKGLASS_([A-Z_]+)"`)
	targetPattern = regexp.MustCompile(`(?m)^([a-z]+):.*## `)
	codePattern   = regexp.MustCompile(`\bCode = "([a-z_]+)"`)
	statusPattern = regexp.MustCompile("\\b[45][0-9][0-9] `([a-z]+(?:_[a-z]+)*)`")
	headPattern   = regexp.MustCompile(`^#{1,6} (.+)`)
	markPattern   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	metricPattern = regexp.MustCompile(`\bhookglass_[a-z_]+`)
	partPattern   = regexp.MustCompile(`_(?:bucket|sum|count)$`) // of a histogram
	namePattern   = regexp.MustCompile(`Name:\s+"(hookglass_[a-z_]+)"`)
	varPattern    = regexp.MustCompile(`\bHOOKGLASS_[A-Z_]*[A-Z]\b`)
	checkPattern  = regexp.MustCompile(`(?:\b(?:ok|warn|wrong)\(|const (?:name|way) = )"([a-z ]+)"`)
	quotePattern  = regexp.MustCompile("`([a-z]+(?:_[a-z]+)*)`")
)

func TestLinksBetweenDocumentsLeadSomewhere(t *testing.T) {
	anchors := map[string]map[string]bool{}
	eachDocument(t, func(file, text string) { anchors[filepath.Clean(file)] = anchorsOf(text) })
	eachDocument(t, func(file, text string) {
		for _, m := range linkPattern.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := filepath.Clean(file)
			if target != "" {
				to = filepath.Join(filepath.Dir(file), filepath.FromSlash(target))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: the link %s leads nowhere", file, m[1])
			}
			if there, known := anchors[to]; known && anchor != "" && !there[anchor] {
				t.Errorf("%s: the link %s leads to no heading", file, m[1])
			}
		}
	})
}

// anchorsOf are the names by which links lead to the headings of a document, as GitHub makes them.
func anchorsOf(text string) map[string]bool {
	anchors, code := map[string]bool{}, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		head := headPattern.FindStringSubmatch(line)
		if code || head == nil {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, markPattern.ReplaceAllString(strings.TrimSpace(head[1]), "$1"))
		if anchors[name] {
			name += "-1"
		}
		anchors[name] = true
	}
	return anchors
}

// Who handles errors reads of them in docs/api.md, and finds none elsewhere that there is not.
func TestDocumentsNameTheErrorCodesThatThereAre(t *testing.T) {
	var source []byte
	for _, file := range []string{"error.go", "internal/ingest/refusal.go"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, b...)
	}
	page, err := os.ReadFile("docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	for _, m := range codePattern.FindAllStringSubmatch(string(source), -1) {
		codes[m[1]] = true
		if !strings.Contains(string(page), "`"+m[1]+"`") {
			t.Errorf("docs/api.md does not tell of %s", m[1])
		}
	}
	if len(codes) < 20 {
		t.Fatalf("there are %d codes", len(codes))
	}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(line, "| 4") {
			for code := range strings.SplitSeq(cells[1], ", ") {
				if !codes[strings.Trim(code, "`")] {
					t.Errorf("docs/api.md: there is no code %s", code)
				}
			}
		}
	}
	eachDocument(t, func(file, text string) {
		for _, m := range statusPattern.FindAllStringSubmatch(text, -1) {
			if !codes[m[1]] {
				t.Errorf("%s: there is no code %s", file, m[1])
			}
		}
	})
}

// What a document shows as JSON is pasted into files.
func TestBlocksOfJSONAreJSON(t *testing.T) {
	blocks := 0
	eachDocument(t, func(file, text string) {
		for i, part := range strings.Split(text, "```json\n") {
			if block, _, _ := strings.Cut(part, "```"); i > 0 {
				blocks++
				if !json.Valid([]byte(block)) && !json.Valid([]byte("{"+block+"}")) { // a member of an answer
					t.Errorf("%s: this is no JSON:\n%s", file, block)
				}
			}
		}
	})
	if blocks < 6 {
		t.Errorf("%d blocks were found", blocks)
	}
}

func TestDocumentsNameTargetsThatTheMakefileHas(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range targetPattern.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	eachDocument(t, func(file, text string) {
		for _, m := range makePattern.FindAllStringSubmatch(text, -1) {
			if !targets[m[1]] {
				t.Errorf("%s: there is no target for make %s", file, m[1])
			}
		}
	})
}

// Who looks whether a sender is known looks there.
func TestTheReceivingPageNamesEverySender(t *testing.T) {
	page, err := os.ReadFile("docs/receiving.md")
	if err != nil {
		t.Fatal(err)
	}
	checked, others, parted := strings.Cut(string(page), "\nThese are recognised, ")
	all := provider.Providers()
	if !parted || len(all) < 100 {
		t.Fatalf("parted %t, %d senders", parted, len(all))
	}
	for _, p := range all {
		text := others
		if p.Verifiable && p.ID != provider.GenericHMAC {
			text = checked
		}
		if !strings.Contains(text, "`"+p.ID+"`") {
			t.Errorf("the page does not name %s where it belongs; it can be checked: %t", p.ID, p.Verifiable)
		}
	}
}

// How old a signature may be is looked up in docs/providers.md.
func TestTheProvidersPageHasEveryTolerance(t *testing.T) {
	file, err := os.ReadFile("internal/provider/table.json")
	if err != nil {
		t.Fatal(err)
	}
	var table map[string][]struct {
		Name       string
		Signatures []struct{ Tolerance int }
	}
	if err := json.Unmarshal(file, &table); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(page), "\n| provider | allows |\n")
	rows, _, _ = strings.Cut(rows, "\n\n")
	found := 0
	for _, p := range slices.Concat(table["ordered"], table["named"], table["generic"]) {
		for _, s := range p.Signatures {
			if s.Tolerance == 0 {
				continue
			}
			found++
			name, _, _ := strings.Cut(p.Name, " ")
			seconds := regexp.MustCompile(`\b` + regexp.QuoteMeta(thousands(s.Tolerance)) + `\b`)
			if !slices.ContainsFunc(strings.Split(rows, "\n"), func(row string) bool {
				return strings.Contains(row, name) && seconds.MatchString(row)
			}) {
				t.Errorf("docs/providers.md does not say that signatures of %s may be %d s old", p.Name, s.Tolerance)
			}
		}
	}
	if found < 15 {
		t.Errorf("%d signatures with a tolerance were found", found)
	}
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// `hookglass serve --help` says of each flag what it is, in a line; how it is used belongs to a page.
func TestEveryFlagOfTheServerStandsInADocument(t *testing.T) {
	config, err := os.ReadFile("internal/server/config.go")
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, m := range envPattern.FindAllStringSubmatch(string(config), -1) {
		flags["--"+strings.ToLower(strings.ReplaceAll(m[1], "_", "-"))] = true
	}
	if len(flags) < 30 {
		t.Fatalf("config.go has %d flags", len(flags))
	}
	eachDocument(t, func(file, text string) {
		for _, name := range flagPattern.FindAllString(text, -1) {
			if file != "CHANGELOG.md" {
				delete(flags, name)
			}
		}
	})
	for name := range flags {
		t.Errorf("no document says how %s is used", name)
	}
}

// Who watches a server reads of its metrics in docs/operations.md, and has them in a dashboard and in alert rules.
func TestMetricsAreThoseOfTheDocuments(t *testing.T) {
	source, err := os.ReadFile("internal/server/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, m := range namePattern.FindAllStringSubmatch(string(source), -1) {
		there[m[1]] = true
	}
	if len(there) < 15 {
		t.Fatalf("there are %d metrics", len(there))
	}
	for _, file := range []string{"docs/operations.md", "deploy/prometheus/alerts.yaml", "deploy/grafana/hookglass.json"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		named := map[string]bool{}
		for _, name := range metricPattern.FindAllString(string(text), -1) {
			name = partPattern.ReplaceAllString(name, "")
			named[name] = true
			if !there[name] {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
		for name := range there {
			if filepath.Ext(file) == ".md" && !named[name] {
				t.Errorf("%s does not tell of %s", file, name)
			}
		}
	}
}

// What `hookglass doctor` looks at is explained in docs/operations.md.
func TestThePageForOperatorsNamesEveryCheckOfDoctor(t *testing.T) {
	page, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| check | wrong, or a warning, when |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	explained := map[string]bool{}
	for line := range strings.Lines(table) {
		names, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for name := range strings.SplitSeq(names, ", ") {
			explained[name] = true
		}
	}
	files, err := filepath.Glob("internal/server/doctor*.go")
	if err != nil {
		t.Fatal(err)
	}
	checks := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range checkPattern.FindAllStringSubmatch(string(source), -1) {
			checks++
			if !explained[m[1]] {
				t.Errorf("docs/operations.md does not explain what is found of %s", m[1])
			}
		}
	}
	if checks < 15 {
		t.Errorf("%d checks were found", checks)
	}
}

// Whoever handles a request without an answer finds its code in docs/replay.md.
func TestTheReplayPageNamesTheFailuresThatThereAre(t *testing.T) {
	failures, err := os.ReadFile("internal/outbound/failure.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Why no answer came\n")
	named := map[string]bool{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) == 2 {
			for _, m := range quotePattern.FindAllStringSubmatch(cells[0], -1) {
				named[m[1]] = true
			}
		}
	}
	for _, m := range codePattern.FindAllStringSubmatch(string(failures), -1) {
		if !named[m[1]] {
			t.Errorf("docs/replay.md does not tell of %s", m[1])
		}
	}
	if len(named) < 15 {
		t.Fatalf("the page names %d codes", len(named))
	}
	source := sourceOf(t, "tunnel.go", "internal/outbound", "internal/delivery", "internal/replay", "internal/tunnel")
	for code := range named {
		if !strings.Contains(source, `"`+code+`"`) {
			t.Errorf("docs/replay.md: there is no code %s", code)
		}
	}
}

func TestVariablesOfTheEnvironmentAreRead(t *testing.T) {
	source := sourceOf(t, "Makefile", "cmd", "internal")
	eachDocument(t, func(file, text string) {
		for _, name := range varPattern.FindAllString(text, -1) {
			if !strings.Contains(source, name) {
				t.Errorf("%s: nothing reads %s", file, name)
			}
		}
	})
}

// Documents are read in terminals and in diffs. Blocks, tables and what programs write have the width that they need.
func TestLinesOfDocumentsFit(t *testing.T) {
	eachDocument(t, func(file, text string) {
		if name := filepath.ToSlash(file); name == "CHANGELOG.md" || name == "docs/performance.md" {
			return
		}
		code := false
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\r\n")); n > 120 && !code && !strings.HasPrefix(strings.TrimSpace(line), "|") {
				t.Errorf("%s: a line has %d characters, 120 at most: %s", file, n, line)
			}
		}
	})
}

// sourceOf returns the text of files, and of the Go files below folders.
func sourceOf(t *testing.T, places ...string) string {
	t.Helper()
	var text strings.Builder
	for _, place := range places {
		err := filepath.WalkDir(place, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || file != place && filepath.Ext(file) != ".go" {
				return err
			}
			b, err := os.ReadFile(file)
			text.Write(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// docs/reliability.md says for each row which tests try it, or why none does: the tests must be there.
func TestTheReliabilityPageNamesTestsThatAreThere(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		b, err := os.ReadFile(file)
		for _, m := range testPattern.FindAllStringSubmatch(string(b), -1) {
			there["`"+filepath.Base(filepath.Dir(file))+"` `"+m[1]+"`"] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := rowPattern.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 126 {
		t.Errorf("the page has %d rows, the catalogue 126", len(rows))
	}
	for _, row := range rows {
		named := namedPattern.FindAllString(row[2], -1)
		for _, test := range named {
			if !there[test] {
				t.Errorf("row %s: there is no test %s", row[1], test)
			}
		}
		if reason := strings.Trim(namedPattern.ReplaceAllString(row[2], ""), " ,."); len(named) == 0 && len(reason) < 20 {
			t.Errorf("row %s has neither a test nor a reason", row[1])
		}
	}
}

func eachDocument(t *testing.T, visit func(file, text string)) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != "." {
			return fs.SkipDir
		}
		if filepath.Ext(file) != ".md" {
			return nil
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found++
		visit(file, string(b))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Fatal("no document was found")
	}
}
