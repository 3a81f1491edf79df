package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"hookglass/internal/server"
)

// Commands is the tree of commands.
func Commands() *kong.Node { return newReader(io.Discard, new(grammar)).Model.Node }

// Detail is an event as requests get prints it.
var Detail = detail

// Branch is the tree that a command line is read with.
func Branch(args ...string) *kong.Node { return newReader(io.Discard, commandsFor(args)).Model.Node }

// Reads says what is wrong with a command line, without running it.
func Reads(args []string) error {
	parser := newReader(io.Discard, commandsFor(args)) // one that has read keeps the flags that it saw
	_, err := parser.Parse(arrange(parser.Model.Node, args))
	return err
}

// Said is what the parser of a command line says to it, and what that of the whole tree says.
func Said(args []string) (branch, whole string) {
	say := func(commands any) (said string) {
		var out strings.Builder
		parser := newReader(&out, commands)
		defer func() {
			if e := recover(); e != nil {
				said = fmt.Sprint(out.String(), e)
			}
		}()
		command, err := parser.Parse(arrange(parser.Model.Node, args))
		if err != nil {
			return fmt.Sprint(err, usage(err))
		}
		return command.Command()
	}
	return say(commandsFor(args)), say(new(grammar))
}

func newReader(out io.Writer, commands any) *kong.Kong {
	parser, err := newParser(context.Background(), &server.Terminal{Out: out, Err: out}, commands)
	if err != nil {
		panic(err)
	}
	return parser
}

// HeadersFor are the headers of what a bundle sends.
var HeadersFor = headersFor

// ShownBody is a body of so many bytes, or its beginning where it is truncated, as a terminal is given it.
var ShownBody = text

// Clipped is the beginning of a line that takes so many columns of a terminal at most.
var Clipped = clipped

// WriteFile is how commands write a file.
var WriteFile = writeFile
