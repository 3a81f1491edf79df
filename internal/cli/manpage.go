package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"hookglass"
	"hookglass/internal/server"
)

// manCmd writes the manual page hookglass(1) for packages, in man(7) format. It is generated from the commands, so it
// always matches the flags.
type manCmd struct{}

func (c *manCmd) Run(t *server.Terminal, app *kong.Kong) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH HOOKGLASS 1 \"\" \"hookglass %s\" \"User Commands\"\n", roff(hookglass.Version))
	fmt.Fprintf(&b, ".SH NAME\nhookglass \\- %s\n", roff(app.Model.Help))
	b.WriteString(".SH SYNOPSIS\n.B hookglass\n.I command\n[\\fIflags\\fR]\n.SH DESCRIPTION\n")
	b.WriteString(roff("hookglass serve runs the service, hookglass dev runs it for one person on one machine and prints how to use it. The other commands work on the data or speak to a server. ") + "\n")
	b.WriteString(roff("Each flag of a server command can be given by the environment variable that stands with it; a flag stands above its variable.") + "\n.SH COMMANDS\n")
	manNode(&b, app.Model.Node, "hookglass")
	b.WriteString(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 not signed in or refused, 4 the time that was given has passed.\n")
	b.WriteString(".SH FILES\n.TP\n.I /etc/hookglass/hookglass.env\nConfiguration of the system service.\n.TP\n.I /var/lib/hookglass\nIts data and keys.\n")
	_, err := io.WriteString(t.Out, b.String())
	return err
}

func manNode(b *strings.Builder, n *kong.Node, path string) {
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		here := path + " " + child.Name
		usage := here
		for _, p := range child.Positional {
			usage += " " + p.Summary()
		}
		if len(child.Children) > 0 {
			usage += " command"
		}
		if len(child.Children) == 0 || slices.ContainsFunc(child.Flags, func(f *kong.Flag) bool { return !f.Hidden && f.Name != "help" }) {
			fmt.Fprintf(b, ".SS %s\n%s\n", roff(usage), roff(child.Help))
			manDetail(b, child.Detail)
			for _, p := range child.Positional {
				fmt.Fprintf(b, ".TP\n.I %s\n%s\n", roff(p.Summary()), roff(p.Help))
			}
			if len(child.Children) > 0 {
				b.WriteString("All of its commands take\n")
			}
			for _, f := range child.Flags {
				if f.Hidden {
					continue
				}
				fmt.Fprintf(b, ".TP\n.B %s\n%s", roff(f.String()), roff(f.Help))
				if len(f.Envs) > 0 {
					fmt.Fprintf(b, " (%s)", roff("$"+strings.Join(f.Envs, ", $")))
				}
				b.WriteString("\n")
			}
		}
		manNode(b, child, here)
	}
}

// manDetail writes the paragraphs of a longer text. Those that are indented, such as examples, keep their lines.
func manDetail(b *strings.Builder, text string) {
	for part := range strings.SplitSeq(text, "\n\n") {
		switch {
		case part == "":
		case strings.HasPrefix(part, "  "):
			fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", escaped.Replace(part))
		default:
			fmt.Fprintf(b, ".PP\n%s\n", roff(part))
		}
	}
}

var escaped = strings.NewReplacer(`\`, `\e`, "-", `\-`)

// roff escapes text for roff, and puts it on one line.
func roff(text string) string {
	text = escaped.Replace(strings.ReplaceAll(strings.TrimSpace(text), "\n", " "))
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
