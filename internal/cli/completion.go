package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"hookglass/internal/provider"
	"hookglass/internal/server"
)

// CompletionCmd is `hookglass completion`.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// The scripts ask the program itself, so they know everything it knows. When it has no suggestions they offer file
// names. A package installs the zsh script where the shell loads it at the first Tab; the script then runs as the
// function that it defines, and answers that Tab.
var completionScripts = map[string]string{
	"bash": `# Load with: source <(hookglass completion bash)
_hookglass() {
    local IFS=$'\n'
    COMPREPLY=($(hookglass __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [ ${#COMPREPLY[@]} -eq 0 ] && compopt -o default
}
complete -F _hookglass hookglass
`,
	"zsh": `#compdef hookglass
# Load with: source <(hookglass completion zsh)
_hookglass() {
    local -a found
    found=("${(@f)$(hookglass __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[*]}" ]]; then compadd -a found; else _files; fi
}
if [[ "${funcstack[1]}" = _hookglass ]]; then _hookglass "$@"; else compdef _hookglass hookglass; fi
`,
	"fish": `# Load with: hookglass completion fish | source
function __hookglass_complete
    set -l found (hookglass __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        string join \n -- $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c hookglass -f -a '(__hookglass_complete)'
`,
}

func (c *CompletionCmd) Run(t *server.Terminal) error {
	_, err := fmt.Fprint(t.Out, completionScripts[c.Shell])
	return err
}

// completeCmd answers the completion scripts. Its words are those of the command line, the last one incomplete.
type completeCmd struct {
	Words []string `arg:"" optional:""`
}

func (c *completeCmd) Run(ctx context.Context, t *server.Terminal, app *kong.Kong) error {
	for _, candidate := range candidates(ctx, app.Model.Node, c.Words) {
		if _, err := fmt.Fprintln(t.Out, candidate); err != nil {
			return err
		}
	}
	return nil
}

// candidates lists possible last words.
func candidates(ctx context.Context, node *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	words = unbroken(words)
	done, last := words[:len(words)-1], words[len(words)-1]
	node, waiting, _ := descend(node, done)
	var all []string
	if name, _, given := strings.Cut(last, "="); given && waiting == nil && strings.HasPrefix(last, "--") {
		if f := flagNamed(node, name); f != nil {
			for _, v := range values(ctx, f.Value) {
				all = append(all, name+"="+v)
			}
		}
		return begin(all, last)
	}
	switch {
	case waiting != nil:
		all = values(ctx, waiting.Value)
	case strings.HasPrefix(last, "-"):
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				all = append(all, "--"+f.Name)
				if f.Tag.Negatable != "" {
					all = append(all, "--no-"+f.Name)
				}
			}
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				all = append(all, child.Name)
			}
		}
		if len(node.Positional) > 0 {
			all = append(all, values(ctx, node.Positional[0])...)
		}
	}
	return begin(all, last)
}

// begin returns the words with a prefix, in order.
func begin(all []string, with string) []string {
	all = slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, with) })
	slices.Sort(all)
	return all
}

// unbroken removes the = between a flag and its value, which bash passes as a word of its own.
func unbroken(words []string) (all []string) {
	for i, w := range words {
		switch after := i > 0 && strings.HasPrefix(words[i-1], "--"); {
		case w != "=" || !after:
			all = append(all, w)
		case i == len(words)-1:
			all = append(all, "")
		}
	}
	return all
}

// values lists the values of a flag or argument: a closed set, or one that its placeholder names.
func values(ctx context.Context, v *kong.Value) []string {
	switch v.Tag.PlaceHolder {
	case "EP":
		return endpointNames(ctx)
	case "SECRET_NAME":
		return secretNames(ctx)
	case "PROVIDER.EVENT":
		samples := provider.Samples()
		names := make([]string, len(samples))
		for i, s := range samples {
			names[i] = s.Provider + "." + s.Event
		}
		return names
	}
	return slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
}

// askTime is how long a shell waits for suggestions from the server.
const askTime = 2 * time.Second

// endpointNames returns the ids and custom ids of the endpoints that the current token sees. After an error it returns
// none: nobody reads an error in the middle of a line.
func endpointNames(ctx context.Context) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	from, _, err := (&remote{Server: os.Getenv("HOOKGLASS_SERVER"), Token: os.Getenv("HOOKGLASS_TOKEN")}).connect()
	if err != nil {
		return nil
	}
	all, err := from.Endpoints(ctx)
	if err != nil {
		return nil
	}
	for _, e := range all {
		if names = append(names, e.ID); e.CustomID != nil {
			names = append(names, *e.CustomID)
		}
	}
	return names
}
