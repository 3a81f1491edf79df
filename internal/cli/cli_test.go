package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"hookglass"
	"hookglass/internal/cli"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// TestMain is the program itself where a test has started it.
func TestMain(m *testing.M) {
	if os.Getenv("HOOKGLASS_TEST_MAIN") == "1" {
		os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	storetest.Main(m)
}

// result is what a command did.
type result struct {
	code     int
	out, err string
}

func run(t testing.TB, stdin string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := cli.Main(context.Background(), args, strings.NewReader(stdin), &out, &err)
	return result{code, out.String(), err.String()}
}

// object runs a command with --json, which must succeed and print one JSON object.
func object(t testing.TB, stdin string, args ...string) map[string]any {
	t.Helper()
	r := run(t, stdin, append(args, "--json")...)
	if r.code != 0 || slowly.ReplaceAllString(r.err, "") != "" {
		t.Fatalf("%s: exit code %d, stderr %q", strings.Join(args, " "), r.code, r.err)
	}
	return decode(t, r.out)
}

// slowly is what a slow machine is told.
var slowly = regexp.MustCompile(`(?m)^.*still preparing the schema.*\n`)

// decode reads the one JSON object that a command printed.
func decode(t testing.TB, out string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("printed %q: %v", out, err)
	}
	return v
}

// fails runs a command that must end with the exit code and say the words on stderr, and nothing on stdout.
func fails(t testing.TB, code int, says string, args ...string) {
	t.Helper()
	if r := run(t, "", args...); r.code != code || !strings.Contains(r.err, says) || r.out != "" {
		t.Errorf("%s: exit code %d, stderr %q, stdout %q; want %d and %q", strings.Join(args, " "), r.code, r.err, r.out, code, says)
	}
}

// storage is where a test's data is.
type storage struct {
	dir   string
	flags []string
}

func (s storage) args(args ...string) []string { return append(args, s.flags...) }

// freshSQLite is a place where nothing is yet.
func freshSQLite(t testing.TB) storage { return embedded(filepath.Join(t.TempDir(), "data")) }

func freshPostgres(t testing.TB) storage {
	return remote(filepath.Join(t.TempDir(), "data"), storetest.Postgres(t))
}

func embedded(dir string) storage { return storage{dir, []string{"--data", dir}} }

func remote(dir, dsn string) storage {
	return storage{dir, []string{"--data", dir, "--database-url", dsn}}
}

// config opens the storage beside the commands.
func (s storage) config() store.Config {
	if len(s.flags) > 2 {
		return store.Config{URL: s.flags[3]}
	}
	return store.Config{Path: filepath.Join(s.dir, "hookglass.db")}
}

var kinds = map[string]func(testing.TB) storage{"sqlite": freshSQLite, "postgres": freshPostgres}

// each runs the test on fresh storage of each kind.
func each(t *testing.T, test func(t *testing.T, s storage)) {
	for name, fresh := range kinds {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

// A command is read by a parser that knows it alone, and says what that of the whole tree says.
func TestTheParserOfACommandReadsAsThatOfAllCommands(t *testing.T) {
	var tell func(b *strings.Builder, n *kong.Node)
	tell = func(b *strings.Builder, n *kong.Node) {
		fmt.Fprintf(b, "%s %q %q %q %v\n", n.FullPath(), n.Help, n.Aliases, n.Detail, n.Group)
		for _, f := range n.Flags {
			fmt.Fprintf(b, "  %v %q %q %v %v\n", f, f.Help, f.Envs, f.Hidden, f.Group)
		}
		for _, p := range n.Positional {
			fmt.Fprintf(b, "  %s %q\n", p.Summary(), p.Help)
		}
		for _, below := range n.Children {
			tell(b, below)
		}
	}
	for _, command := range cli.Commands().Children {
		var want, got strings.Builder
		tell(&want, command)
		branch := cli.Branch(command.Name).Children
		if command.Hidden { // it speaks of all others
			if len(branch) == 1 {
				t.Errorf("%s knows itself alone", command.Name)
			}
			continue
		}
		if tell(&got, branch[0]); len(branch) != 1 || got.String() != want.String() {
			t.Errorf("%s: %d commands, the first is\n%swant\n%s", command.Name, len(branch), &got, &want)
		}
	}
	for _, line := range []string{"--help", "help", "nonsense", "--json requests list", "requests", "requests nonsense", "help requests list", "whoami --nothing", "whoami more", "whoami --help"} {
		if got, want := cli.Said(strings.Fields(line)); got != want || got == "" {
			t.Errorf("hookglass %s: %q, and the parser of all commands says %q", line, got, want)
		}
	}
}

func TestWrongUsageExitsWith2AndPointsAtHelp(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"nonsense"},
		{"version", "extra"},
		{"admin"},
		{"admin", "user", "create"},
		{"admin", "user", "create", "--email"},
		{"admin", "token", "create", "--email", "a@example.com", "--scopes", "read,root"},
		{"admin", "token", "create", "--email", "a@example.com", "--level", "galaxy"},
		{"admin", "token", "create", "--email", "a@example.com", "--level", "account", "--workspace", "1"},
		{"admin", "token", "create", "--email", "a@example.com", "--expires-in", "soon"},
		{"admin", "token", "create", "--email", "a@example.com", "--expires-in", "-1h"},
		{"admin", "token", "create", "--email", "a@example.com", "--expires-in", "0"},
		{"admin", "token", "revoke", "--id", "first"},
		{"admin", "account", "set", "--account", "1"},
		{"admin", "account", "set", "--account", "1", "--plan", "gold"},
		{"admin", "account", "set", "--account", "1", "--subscription", "maybe"},
		{"admin", "account", "set", "--account", "1", "--payment-method", "perhaps"},
		{"backup"},
		{"completion", "tcsh"},
		{"serve", "--signup", "sometimes"},
		{"serve", "--retention", "a month"},
		{"serve", "--retention", "30D"},
		{"serve", "--retention=-1h"},
	} {
		fails(t, 2, "--help", append(args, "--data", dir)...)
	}
	// What only shows when it is looked at closely is wrong usage as well.
	for says, args := range map[string][]string{
		"--listen":                        {"serve", "--listen", "here"},
		"--public-url":                    {"serve", "--public-url", "ftp://hooks.example.com"},
		"--outbound-allow":                {"dev", "--outbound-allow", "everything"},
		"--database-url":                  {"serve", "--database-url", "mysql://localhost"},
		"--database-url must begin":       {"admin", "account", "list", "--database-url", "mysql://localhost"},
		"--to must begin":                 {"migrate", "--to", "mysql://localhost"},
		"it goes with --to":               {"migrate", "--restart"},
		`"hookglass listen --help"`:       {"listen", "help"},
		"the server's address must be of": {"whoami", "--server", "::", "--token", "hg_x"},
	} {
		if args[0] != "whoami" && args[0] != "listen" {
			args = append(args, "--data", dir)
		}
		fails(t, 2, says, args...)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("wrong usage left %v", entries)
	}
}

func TestAMistakeIsToldWithoutWordsOfTheParser(t *testing.T) {
	for says, args := range map[string][]string{
		"hookglass: --endpoint: its value is missing\n":                                                     {"requests", "list", "-e"},
		"hookglass: --secret: its value is missing; one that begins with - is written as --secret=\"-e\"\n": {"trigger", "github.push", "--secret", "-e", "payments"},
		"hookglass: --part: \"9223372036854775808\" is too large\n":                                         {"requests", "get", "latest", "-e", "payments", "--part", "9223372036854775808"},
		"hookglass: --part: \"two\" is not a whole number\n":                                                {"requests", "get", "latest", "-e", "payments", "--part", "two"},
		"hookglass: <link>: \"latest\" is not a whole number\n":                                             {"share", "revoke", "latest", "-e", "payments"},
		"hookglass: --factor: \"many\" is not a number\n":                                                   {"alerts", "create", "flood", "volume_spike", "-e", "payments", "--factor", "many"},
		"hookglass: --expires-in: \"100000d\" is not a number of days up to 65535\n":                        {"share", "create", "latest", "-e", "payments", "--expires-in", "100000d"},
		"hookglass: unknown flag -e\n":                                                                      {"endpoints", "get", "-e", "payments"},
		"or the word tunnel, for the machine on which \"hookglass listen\" runs\n":                          {"replay", "latest", "-e", "payments"},
		"for the machine on which \"hookglass listen\" runs; \"localhost:3000\" is neither\nUsage:":         {"replay", "latest", "-e", "payments", "--to", "localhost:3000"},
	} {
		fails(t, 2, says, args...)
	}
}

// The retention of an account takes days, and so does that of the server.
func TestADurationMayBeInDays(t *testing.T) {
	dir := t.TempDir()
	for days, status := range map[string]string{"30d": "ok", "0d": "wrong"} {
		t.Setenv("HOOKGLASS_RETENTION", days)
		r := run(t, "", "doctor", "--json", "--smtp-listen", "off", "--data", dir)
		found := member(t, member(t, decode(t, r.out), "findings").([]any)[0], "status")
		if found != status {
			t.Errorf("%s: %v, %+v", days, found, r)
		}
	}
}

func TestHelpIsPrintedOnStdoutWithEveryCommand(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"-h"}} {
		r := run(t, "", args...)
		if r.code != 0 || r.err != "" {
			t.Errorf("%v: exit code %d, stderr %q", args, r.code, r.err)
		}
		for _, command := range []string{"serve", "dev", "admin", "backup", "restore", "doctor", "migrate", "completion", "version"} {
			if !strings.Contains(r.out, "\n  "+command+" ") {
				t.Errorf("%v: help without %s:\n%s", args, command, r.out)
			}
		}
	}
	if r := run(t, "", "admin", "token", "create", "--help"); r.code != 0 || !strings.Contains(r.out, "--scopes") || !strings.Contains(r.out, "$HOOKGLASS_DATA") {
		t.Errorf("help of a command: %d, %q", r.code, r.out)
	}
}

func TestHelpThatCannotBePrintedIsAFailureAndNoWrongUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"listen", "--help"}} {
		var told strings.Builder
		if code := cli.Main(t.Context(), args, strings.NewReader(""), full{}, &told); code != 1 || told.String() != "hookglass: no space left on device\n" {
			t.Errorf("%v: exit code %d, %q", args, code, told.String())
		}
	}
}

// "hookglass … | more" may be left early. Where the system ends no program for that, as Windows does not, the program
// does not complain either.
func TestACommandWhoseOutputNobodyReadsSaysNothing(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"version"}, {"completion", "bash"}} {
		unread, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		unread.Close()
		var told strings.Builder
		if code := cli.Main(t.Context(), args, strings.NewReader(""), out, &told); code != 1 || told.String() != "" {
			t.Errorf("%v: exit code %d: %s", args, code, told.String())
		}
		out.Close()
	}
}

func TestHelpTellsWhatAFlagIsWhereNobodySaysSo(t *testing.T) {
	for command, defaults := range map[string][]string{
		"serve": {
			"./hookglass-data", "127.0.0.1:8080", "127.0.0.1:2525", "localhost", "https://acme-v02.api.letsencrypt.org/directory",
			"720h", "26214400", "closed", "on", "text", "info",
		},
		"health":        {"127.0.0.1:8080"},
		"cases pull":    {"hookglass-cases"},
		"bundle create": {"hookglass-bundle.json"},
	} {
		text := strings.Join(strings.Fields(run(t, "", append(strings.Fields(command), "--help")...).out), " ")
		for _, value := range defaults {
			if !strings.Contains(text, "(default: "+value+")") && !strings.Contains(text, "="+value+" ") && !strings.Contains(text, `="`+value+`" `) {
				t.Errorf("%s --help does not say that a flag is %s", command, value)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	if v := object(t, "", "version"); v["version"] != hookglass.Version || v["go"] == nil {
		t.Errorf("version %v", v)
	}
	if r := run(t, "", "version"); r.code != 0 || !strings.HasPrefix(r.out, "hookglass "+hookglass.Version+" ") {
		t.Errorf("version %+v", r)
	}
}

func TestCompletionKnowsCommandsFlagsAndValues(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if r := run(t, "", "completion", shell); r.code != 0 || !strings.Contains(r.out, "hookglass __complete") {
			t.Errorf("completion %s: %+v", shell, r)
		}
	}
	// zsh runs the script that a package installs as the function of its name, at the first Tab, and has the answer from that run alone.
	if r := run(t, "", "completion", "zsh"); !strings.Contains(r.out, `if [[ "${funcstack[1]}" = _hookglass ]]; then _hookglass "$@"; else`) {
		t.Errorf("the first Tab of zsh is not answered: %s", r.out)
	}
	for shell, files := range map[string]string{"bash": "compopt -o default", "zsh": "_files", "fish": "__fish_complete_path"} {
		if r := run(t, "", "completion", shell); !strings.Contains(r.out, files) {
			t.Errorf("%s is offered no files: %s", shell, r.out)
		}
	}
	for line, want := range map[string][]string{
		"ba":                                {"backup"},
		"admin ":                            {"account", "keys", "token", "user", "workspace"},
		"admin user c":                      {"create"},
		"admin token create --le":           {"--level"},
		"admin token create --level ":       {"account", "workspace"},
		"admin --data user token create --": nil, // "user" is the value of --data
		"admin account set --plan b":        {"business"},
		"completion ":                       {"bash", "fish", "zsh"},
		"listen --recover = r":              {"recent"}, // so bash has it
		"listen --recover =":                {"all", "ask", "none", "recent"},
		"listen --output=j":                 {"--output=json"},
		"endpoints --token=x l":             {"list"},
		"backup /tmp/":                      {},
		"schemas ep_x --no":                 {"--no-track"},
		"trigger stripe.invoice.payment_f":  {"stripe.invoice.payment_failed"},
		"trigger --secret x slack.url":      {"slack.url_verification"},
	} {
		r := run(t, "", append([]string{"__complete"}, strings.Split(line, " ")...)...)
		got := strings.Fields(r.out)
		if want == nil {
			if !slices.Contains(got, "--email") || !slices.Contains(got, "--data") {
				t.Errorf("%q: %v", line, got)
			}
		} else if r.code != 0 || !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}

func TestCompletionKnowsTheEndpointsOfTheServer(t *testing.T) {
	a := running(t)
	complete := func(words ...string) []string {
		t.Helper()
		r := run(t, "", append([]string{"__complete"}, words...)...)
		if r.code != 0 || r.err != "" {
			t.Errorf("%v: %+v", words, r)
		}
		return strings.Fields(r.out)
	}
	if got := complete("requests", "list", "-e", ""); len(got) != 0 {
		t.Errorf("who is not signed in is offered %v", got)
	}
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	id := member(t, object(t, "", "endpoints", "create", "shop", "--custom-id", "shop-orders"), "data", "id").(string)
	for want, lines := range map[string][][]string{
		"shop-orders": {{"requests", "list", "-e", "shop"}, {"trigger", "github.push", "--endpoint", "s"}, {"endpoints", "get", "sho"}, {"listen", "-e", "shop"}, {"retries", "s"}},
		id:            {{"requests", "tail", "--endpoint", "ep_"}, {"endpoints", "delete", "ep_"}},
	} {
		for _, words := range lines {
			if got := complete(words...); !slices.Equal(got, []string{want}) {
				t.Errorf("%v: %v, want %s", words, got, want)
			}
		}
	}
	if got := complete("requests", "list", "--endpoint=shop"); !slices.Equal(got, []string{"--endpoint=shop-orders"}) {
		t.Errorf("%v", got)
	}
	t.Setenv("HOOKGLASS_SERVER", "http://127.0.0.1:1") // nobody is there
	if got := complete("requests", "list", "-e", ""); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// What people type first on a program that they do not know is understood: flags before the command, a command of
// several without the word list, and the usual ways to ask for help and the version.
func TestFlagsMayStandBeforeTheCommand(t *testing.T) {
	a := running(t)
	made := object(t, "", "--server", a.server, "--token="+a.token, "endpoints", "create", "shop")
	id := member(t, made, "data", "id").(string)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	want := run(t, "", "endpoints", "list", "--json")
	for _, args := range [][]string{{"--json", "endpoints"}, {"endpoints", "--json"}, {"--json", "endpoints", "list"}, {"endpoints", "--json", "list"}} {
		if got := run(t, "", args...); got != want || got.code != 0 {
			t.Errorf("%q: %+v, want %+v", args, got, want)
		}
	}
	for _, args := range [][]string{{"--json", "requests", "-e", id}, {"requests", "-e", id, "-q", "x", "--json"}, {"--json", "cases", "--endpoint", id}, {"--json", "whoami"}, {"--json", "logout"}, {"--json", "trigger", "--list"}} {
		if got := run(t, "", args...); got.code != 0 || got.err != "" {
			t.Errorf("%q: %+v", args, got)
		} else if decode(t, got.out) == nil {
			t.Errorf("%q printed nothing", args)
		}
	}
	if got := run(t, "", "--json", "trigger", "--list"); !strings.Contains(got.out, `"event_type"`) {
		t.Errorf("the samples are %.200s", got.out)
	}
	fails(t, 2, "unexpected argument lst, did you mean", "endpoints", "lst")
	fails(t, 2, "Usage: hookglass endpoints create <name> [flags]\nRun \"hookglass endpoints create --help\" for more.\n", "endpoints", "create", "--name", "x")
	fails(t, 2, "unknown flag --json", "--json", "serve")
	fails(t, 2, "unknown flag --json", "--json")
	fails(t, 2, `"none" but got "x"`, "listen", "--recover", "x")
	fails(t, 1, "hookglass: provider has no sample events; it must be one of github, ", "trigger", "nobody.nothing", "-e", id)
	if got := run(t, "", "trigger", "nobody.nothing", "-e", id); strings.Count(got.err, "has no sample events") != 1 {
		t.Errorf("a fault is told twice: %s", got.err)
	}
	for _, c := range [][2][]string{
		{{"help"}, {"--help"}}, {{"help", "endpoints", "create"}, {"endpoints", "create", "--help"}}, {{"--version"}, {"version"}}, {{"endpoints", "-h"}, {"endpoints", "--help"}},
	} {
		if got, want := run(t, "", c[0]...), run(t, "", c[1]...); got != want || got.code != 0 || got.out == "" {
			t.Errorf("%q: %+v, want %+v", c[0], got, want)
		}
	}
	if got := run(t, "", "__complete", "--json", "requests", "-e", "tail", "ge"); got.out != "get\n" {
		t.Errorf("completed to %q", got.out)
	}
}

func TestExamplesAreLinesOfTheirOwn(t *testing.T) {
	for _, command := range []string{"bundle create", "cases run", "listen", "replay", "replays run", "requests export", "trigger"} {
		r := run(t, "", append(strings.Fields(command), "--help")...)
		if r.code != 0 || !strings.Contains(r.out, "\n    hookglass "+command) || strings.Contains(r.out, "\nhookglass ") {
			t.Errorf("%s: %s", command, r.out)
		}
	}
}
