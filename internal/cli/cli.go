// Package cli is the command line: the tree of commands, their help and completion, and the exit codes. Commands that
// work on the data are in server; those here talk to a server through client only.
package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"hookglass"
	"hookglass/client"
	"hookglass/internal/httpd"
	"hookglass/internal/neterr"
	"hookglass/internal/server"
)

// Exit codes (spec: decisions, section 14).
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
)

// grammar is the tree of commands.
type grammar struct {
	server.Commands
	Listen     ListenCmd     `cmd:"" help:"Receive events on this machine as they come."`
	Login      LoginCmd      `cmd:"" help:"Sign in to a server, with a browser or a token."`
	Logout     LogoutCmd     `cmd:"" help:"Forget the server and the token."`
	Whoami     WhoamiCmd     `cmd:"" help:"Show who you are signed in as."`
	Endpoints  EndpointsCmd  `cmd:"" help:"List, create, show, change, export and delete endpoints."`
	Apply      ApplyCmd      `cmd:"" help:"Make a workspace what an endpoints file says."`
	Requests   RequestsCmd   `cmd:"" help:"List, watch, wait for, show, tag, ignore, export and delete the events of an endpoint."`
	Signatures SignaturesCmd `cmd:"" help:"Give endpoints the secrets that their senders sign with, and judge captured events by them."`
	Targets    TargetsCmd    `cmd:"" help:"List, create, show, change, pause and delete the forwarding targets of an endpoint, and show what was delivered."`
	Replay     ReplayCmd     `cmd:"" help:"Send a captured event again."`
	Replays    ReplaysCmd    `cmd:"" help:"Send many captured events again, one after another."`
	Actions    ActionsCmd    `cmd:"" help:"List, create, try, run and delete what is done to the events of an endpoint by itself."`
	Secrets    SecretsCmd    `cmd:"" help:"List, set and delete the secrets that steps of actions can name."`
	Alerts     AlertsCmd     `cmd:"" help:"List, create and delete the alerts of an endpoint, and show when they were triggered."`
	Channels   ChannelsCmd   `cmd:"" help:"List, create, test and delete the notification channels that alerts and actions tell."`
	Metrics    MetricsCmd    `cmd:"" help:"Show figures of an endpoint."`
	Tags       TagsCmd       `cmd:"" help:"List, create, rename and delete tags."`
	Share      ShareCmd      `cmd:"" help:"Create, list and revoke links by which anybody may read an event, without its secrets."`
	Bundle     BundleCmd     `cmd:"" help:"Make files of events that can be given away, and use them."`
	Cases      CasesCmd      `cmd:"" help:"Make, list and run replay cases, and keep them as files."`
	Flow       FlowCmd       `cmd:"" help:"Expect webhooks and mail, and see whether they come: for pipelines."`
	Ledger     LedgerCmd     `cmd:"" help:"Show what became of everything that arrived at an endpoint, and whether the sums balance."`
	Trigger    TriggerCmd    `cmd:"" help:"Send a signed sample event of a provider."`
	Retries    RetriesCmd    `cmd:"" help:"Measure how the senders of an endpoint retry."`
	Schemas    SchemasCmd    `cmd:"" help:"Show what the bodies of event types are made of, and where they depart from a baseline."`
	MCP        MCPCmd        `cmd:"" name:"mcp" help:"Speak MCP on standard input and output, for agents that start a program."`
	Version    VersionCmd    `cmd:"" help:"Print the version."`
	Completion CompletionCmd `cmd:"" help:"Print a script that completes commands and flags in your shell."`
	Complete   completeCmd   `cmd:"" hidden:"" name:"__complete" passthrough:""`
	Man        manCmd        `cmd:"" hidden:"" name:"__man"`
}

// Main runs the command that args name and returns the exit code: 0 done, 1 failed, 2 wrong usage, 3 not
// signed in or refused. It ends early when ctx does.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case exit:
			code = int(e)
		default:
			panic(e)
		}
	}()
	forgetEmpty()
	terminal := &server.Terminal{In: &input{ctx, stdin}, Out: stdout, Err: stderr, Typed: isTerminal(stdin)}
	parser, err := newParser(ctx, terminal, commandsFor(args))
	if err != nil {
		fmt.Fprintln(stderr, "hookglass:", err)
		return exitFailed
	}
	command, err := parser.Parse(arrange(parser.Model.Node, args))
	if lost := (unprinted{}); errors.As(err, &lost) {
		if !unread(stdout, lost.error) {
			fmt.Fprintln(stderr, "hookglass:", lost)
		}
		return exitFailed
	}
	if err != nil {
		text := err.Error()
		for _, w := range wording {
			text = w.of.ReplaceAllString(text, w.says)
		}
		if strings.Contains(text, "--endpoint=EP") {
			text += " (-e, or the variable " + endpointVariable + "; \"hookglass endpoints list\" shows their ids)"
		}
		fmt.Fprintf(stderr, "hookglass: %s\n%s", text, usage(err))
		return exitUsage
	}
	if err := command.Run(); err != nil {
		if unread(stdout, err) {
			return exitCode(err)
		}
		text := explain(err)
		if cut, ok := errors.AsType[*client.Unanswered](err); ok && ctx.Err() != nil {
			text = stopped(cut)
		}
		fmt.Fprintln(stderr, "hookglass:", visibleLines(text)) // it may quote a file that others wrote
		return exitCode(err)
	}
	return exitDone
}

// unread reports whether a command failed because the program that read its output has ended, as "more" does when it
// is left. Unix ends the command by a signal then, without a word.
func unread(stdout io.Writer, err error) bool {
	out, ok := stdout.(*os.File)
	lost, failed := errors.AsType[*fs.PathError](err)
	return ok && failed && lost.Path == out.Name() && neterr.Unread(lost)
}

// wording has what is said in place of the parser's words about how it is built.
var wording = []struct {
	of   *regexp.Regexp
	says string
}{
	{regexp.MustCompile(`,"" but got`), ` but got`}, // an optional choice has the empty string among its values
	{regexp.MustCompile(`: expected \S+ value but got "EOL" \(<EOL>\)$`), `: its value is missing`},
	{regexp.MustCompile(`: expected \S+ value but got ".*" \((?:short|long) flag\); perhaps try (.*)\?$`), `: its value is missing; one that begins with - is written as $1`},
	{regexp.MustCompile(`: expected a valid \d+ bit u?int but got ("\d+")$`), `: $1 is too large`},
	{regexp.MustCompile(`: expected a valid \d+ bit u?int but got (".*")$`), `: $1 is not a whole number`},
	{regexp.MustCompile(`: expected a float but got (".*") \(\w+\)$`), `: $1 is not a number`},
	{regexp.MustCompile(`^(unknown flag -\w), did you mean .*$`), `$1`}, // every letter is near every other
}

// commandsFor returns the tree of commands, or the one branch of it that args begin with: the parser of the whole tree
// takes the processor for longer than most commands do.
func commandsFor(args []string) any {
	if len(args) > 0 {
		for _, f := range reflect.VisibleFields(reflect.TypeFor[grammar]()) {
			name := cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name))
			_, hidden := f.Tag.Lookup("hidden") // those that speak of all others
			if name == args[0] && !f.Anonymous && !hidden {
				return reflect.New(reflect.StructOf([]reflect.StructField{f})).Interface()
			}
		}
	}
	return new(grammar)
}

// newParser returns a parser for a tree of commands. Where it would exit the process, as after help, it panics with
// an exit.
func newParser(ctx context.Context, terminal *server.Terminal, commands any) (*kong.Kong, error) {
	return kong.New(commands,
		kong.Name("hookglass"),
		kong.Description("Catch webhooks and mail, look at them, replay them."),
		kong.Writers(terminal.Out, terminal.Err),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.Help(func(o kong.HelpOptions, ctx *kong.Context) error {
			if err := kong.DefaultHelpPrinter(o, ctx); err != nil {
				return unprinted{err}
			}
			return nil
		}),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{{Key: "server", Title: "Run and administer a server:"}}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(readDuration)),
		kong.NamedMapper("query", kong.MapperFunc(readQuery)),
		kong.NamedMapper("path", kong.MapperFunc(readPath)),
		kong.WithBeforeReset(overrule),
		kong.Bind(terminal),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
}

// forgetEmpty unsets empty variables. Whoever writes ${NAME:-} into a container file means unset, and an empty path
// would be the working directory.
func forgetEmpty() {
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); value == "" && strings.HasPrefix(name, "HOOKGLASS_") {
			os.Unsetenv(name)
		}
	}
}

// overrule leaves the variable of a flag that is given unread: a wrong value there would be refused, although it does
// not count.
func overrule(given *kong.Path) error {
	if given.Flag != nil {
		given.Flag.Tag.Envs = nil
	}
	return nil
}

// readPath parses the path of a file or directory. A setting that is given empty is as one that is not given, as with
// variables.
func readPath(ctx *kong.DecodeContext, target reflect.Value) error {
	var path string
	if err := ctx.Scan.PopValueInto("file", &path); err != nil {
		return err
	}
	if f := ctx.Value.Flag; path == "" && f != nil && len(f.Envs) > 0 {
		path = f.Default
		if path == "" {
			return nil
		}
	}
	if path != "-" {
		path = kong.ExpandPath(path)
	}
	target.SetString(path)
	return nil
}

// readDuration parses the duration flags.
func readDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := server.ParseDuration(text)
	target.SetInt(int64(d))
	return err
}

// readQuery parses a flag that takes a search. A search may begin with a minus, which excludes something. It refuses a
// word that looks like the next flag after a forgotten search.
func readQuery(ctx *kong.DecodeContext, target reflect.Value) error {
	if target.Kind() == reflect.Pointer { // of a search that may be left out
		target.Set(reflect.New(target.Type().Elem()))
		target = target.Elem()
	}
	next := ctx.Scan.Peek()
	if text, plain := next.Value.(string); plain && next.Type == kong.UntypedToken && len(text) > 2 && text[0] == '-' && text[1] != '-' {
		ctx.Scan.Pop()
		target.SetString(text)
		return nil
	}
	var text string
	err := ctx.Scan.PopValueInto("search", &text)
	target.SetString(text)
	return err
}

// exit is the panic that ends Main from within the parser, which prints help and then exits.
type exit int

// unprinted says why help could not be written.
type unprinted struct{ error }

// usage returns how the command is used, as far as it was parsed, and points at its help.
func usage(err error) string {
	help := "Run \"hookglass --help\" for more.\n"
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return help
	}
	for _, p := range parse.Context.Path {
		if p.Command == nil {
			continue
		}
		help = fmt.Sprintf("Run \"hookglass %s --help\" for more.\n", p.Command.Path())
		if len(p.Command.Children) == 0 {
			help = fmt.Sprintf("Usage: hookglass %s\n%s", p.Command.Summary(), help)
		}
	}
	return help
}

func exitCode(err error) int {
	if own, ok := errors.AsType[outcome](err); ok {
		return own.code
	}
	if _, ok := errors.AsType[server.UsageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[noResult](err); ok {
		return exitTransport
	}
	if answer, ok := errors.AsType[*client.Error](err); ok && (answer.Status == 401 || answer.Status == 403) {
		return exitRefused
	}
	switch hookglass.CodeOf(err) {
	case hookglass.CodeUnauthorized, hookglass.CodeInsufficientScope, hookglass.CodeForbidden:
		return exitRefused
	}
	return exitFailed
}

// explain returns the full message of an error: the user's own machine is theirs to repair.
func explain(err error) string {
	if answer, ok := errors.AsType[*client.Error](err); ok {
		said := visible(answer.Error())
		if what, ok := strings.CutSuffix(err.Error(), answer.Error()); ok {
			said = what + said // for example which of several endpoints it is about
		}
		return said + faults(answer) + advice(answer)
	}
	if call, ok := errors.AsType[*client.Unanswered](err); ok {
		return withoutAnswer(call)
	}
	var coded *hookglass.Error
	if !errors.As(err, &coded) {
		return err.Error()
	}
	text := coded.Message
	if len(coded.Details) > 1 {
		for _, d := range coded.Details {
			text += "\n  " + d.Field + " " + d.Message
		}
	}
	if coded.Err != nil {
		text += " (" + coded.Err.Error() + ")"
	}
	if _, what, ok := strings.Cut(err.Error(), coded.Error()); ok {
		text += what // advice
	}
	return text
}

// faults lists what an answer names in detail, a line each.
func faults(answer *client.Error) (lines string) {
	said := visible(answer.Error())
	for _, d := range answer.Details {
		if fault := visible(d.Field + " " + d.Message); !strings.HasPrefix(said, fault) { // the first may be in the sentence already
			lines += "\n  " + fault
		}
	}
	for _, r := range answer.References {
		lines += "\n  " + visible(fmt.Sprintf("step %s of the action %q (%s) of %s", r.Step, r.ActionName, r.ActionID, r.EndpointID))
	}
	return lines
}

// advice says what may help with an answer.
func advice(answer *client.Error) (text string) {
	if answer.RequestID != "" && answer.Status >= 500 {
		text += " (request " + visible(answer.RequestID) + ")"
	}
	if answer.Status == 401 {
		text += " \"hookglass login\" signs in; HOOKGLASS_TOKEN and --token name a token, --server the server that it is of."
	}
	if answer.Message == httpd.ErrNowhere.Message || answer.Message == httpd.ErrMethod.Message {
		text += " The server may be older than this program."
	}
	if answer.Message == hookglass.NotFound("endpoint").Message {
		text += " \"hookglass endpoints list\" shows those there are."
		if named := os.Getenv(endpointVariable); named != "" {
			text += " " + endpointVariable + " is " + visible(named) + "." // nothing in the command itself may name it
		}
	}
	return text
}

// withoutAnswer returns the message for a call without an answer.
func withoutAnswer(call *client.Unanswered) string {
	var untrusted *tls.CertificateVerificationError
	switch {
	case call.Proxy():
		return fmt.Sprintf("The proxy that the environment names for %s does not answer (%s). HTTP_PROXY and HTTPS_PROXY name it; NO_PROXY names hosts without one.", call.Server(), visible(call.Reason()))
	case neterr.Refused(call):
		return fmt.Sprintf("No server answers at %s (connection refused). --server or HOOKGLASS_SERVER names another; \"hookglass dev\" starts one.", call.Server())
	case errors.As(call, &untrusted):
		text := fmt.Sprintf("The certificate of %s is not trusted (%s).", call.Server(), visible(untrusted.Err.Error()))
		if _, ok := errors.AsType[x509.UnknownAuthorityError](untrusted); ok {
			text += " SSL_CERT_FILE names a file with the authorities that are."
		}
		return text
	}
	return fmt.Sprintf("No answer came from %s (%s). --server or HOOKGLASS_SERVER names another server.", call.Server(), visible(call.Reason()))
}

// stopped returns the message for a user who interrupted a command that waited for its server.
func stopped(call *client.Unanswered) string {
	text := "Stopped before " + call.Server() + " answered."
	if !call.Repeatable() {
		text += " It may have done what it was asked for."
	}
	return text
}

// VersionCmd is `hookglass version`.
type VersionCmd struct {
	JSON bool `name:"json" help:"Print one JSON object instead of text."`
}

func (c *VersionCmd) Run(t *server.Terminal) error {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if c.JSON {
		_, err := fmt.Fprintf(t.Out, "{\"version\":%q,\"revision\":%q,\"go\":%q,\"platform\":%q}\n", hookglass.Version, revision, runtime.Version(), platform)
		return err
	}
	_, err := fmt.Fprintf(t.Out, "hookglass %s (%s, %s, %s)\n", hookglass.Version, revision, runtime.Version(), platform)
	return err
}
