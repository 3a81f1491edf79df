package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// early are the flags that people write before the command too, since many commands have them. The value says whether
// one takes the next word.
var early = map[string]bool{"json": false, "server": true, "token": true}

// arrange puts the words of a command line into the order in which the grammar has them: flags that stand before the
// command go behind it, and words that people try on a program that they do not know get their usual meaning.
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

// listing is the word list where a command of several, named alone with flags, has it: that is what people want to see
// first.
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

// descend follows words into the tree of commands. It returns the command that they name, the flag that waits for the
// next word, if one does, and the number of words up to the command's name.
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

// flagNamed is the flag of a command that a word means, long or short.
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
