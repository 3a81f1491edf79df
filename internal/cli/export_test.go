package cli

import (
	"context"
	"io"

	"github.com/alecthomas/kong"

	"hookglass/internal/server"
)

// Grammar is the tree of commands, and what says whether a command line is read, without running it.
func Grammar() (*kong.Node, func(args []string) error) {
	parser, err := newParser(context.Background(), &server.Terminal{Out: io.Discard, Err: io.Discard})
	if err != nil {
		panic(err)
	}
	return parser.Model.Node, func(args []string) error {
		_, err := parser.Parse(arrange(parser.Model.Node, args))
		return err
	}
}

// HeadersFor are the headers of what a bundle sends.
var HeadersFor = headersFor

// ShownBody is a body of so many bytes, or its beginning where it is truncated, as a terminal is given it.
var ShownBody = text

// Clipped is the beginning of a line that takes so many columns of a terminal at most.
var Clipped = clipped

// WriteFile is how commands write a file.
var WriteFile = writeFile
