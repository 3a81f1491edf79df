package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// early are the common flags that people also write before the command. The value says whether the flag takes the next
// word.
var early = map[string]bool{"json": false, "server": true, "token": true}

// arrange reorders the words of a command line to fit the grammar: flags before the command move behind it, and words
// that people commonly try on an unknown program get their usual meaning.
func arrange(root *kong.Node, args []string) []string {
	if len(args) == 0 {
		return []string{"--help"}
	}
	switch args[0] {
	case "help":
		return append(slices.Clone(args[1:]), "--help")
	case "--version":
		return append([]string{"version"}, args[1:]...)
	}
	at := 0
	for at < len(args) {
		name, _, whole := strings.Cut(args[at], "=")
		takes, known := early[strings.TrimPrefix(name, "--")]
		if !known || !strings.HasPrefix(name, "--") {
			break
		}
		if at++; takes && !whole {
			at++
		}
	}
	if at >= len(args) {
		return args
	}
	flags, words := args[:at], args[at:]
	command, _, behind := descend(root, words)
	return slices.Concat(words[:behind], listing(command, words[behind:]), flags, words[behind:])
}

// listing returns the word list if a group of commands is named alone with flags: listing is what people usually want.
func listing(command *kong.Node, rest []string) []string {
	at := slices.IndexFunc(command.Children, func(c *kong.Node) bool { return c.Name == "list" })
	if at < 0 {
		return nil
	}
	list := command.Children[at]
	for i := 0; i < len(rest); i++ {
		f := flagNamed(list, rest[i])
		if !strings.HasPrefix(rest[i], "-") || f != nil && f.Name == "help" {
			return nil
		}
		if f != nil && !f.IsBool() {
			i++
		}
	}
	return []string{"list"}
}

// descend follows words into the tree of commands. It returns the command that they name, the flag that still needs a
// value, if any, and the number of words up to the command's name.
func descend(node *kong.Node, words []string) (command *kong.Node, waiting *kong.Flag, behind int) {
	for i, w := range words {
		if waiting != nil {
			waiting = nil
			continue
		}
		if w == "--" {
			break
		}
		if strings.HasPrefix(w, "-") {
			if f := flagNamed(node, w); f != nil && !f.IsBool() {
				waiting = f
			}
			continue
		}
		if child := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == w }); child >= 0 {
			node, behind = node.Children[child], i+1
		}
	}
	return node, waiting, behind
}

// flagNamed returns the flag of a command that a word means, long or short.
func flagNamed(node *kong.Node, word string) *kong.Flag {
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}
