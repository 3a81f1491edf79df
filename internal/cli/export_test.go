package cli

import (
	"context"
	"io"

	"github.com/alecthomas/kong"

	"hookglass/internal/server"
)

// Commands is the tree of commands.
func Commands() *kong.Node { return newReader().Model.Node }

// Reads says what is wrong with a command line, without running it.
func Reads(args []string) error {
	parser := newReader() // one that has read keeps the flags that it saw
	_, err := parser.Parse(arrange(parser.Model.Node, args))
	return err
}

func newReader() *kong.Kong {
	parser, err := newParser(context.Background(), &server.Terminal{Out: io.Discard, Err: io.Discard})
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
