package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"hookglass/client"
	"hookglass/internal/query"
	"hookglass/internal/server"
)

// RequestsExportCmd is `hookglass requests export`.
type RequestsExportCmd struct {
	Query  string `short:"q" type:"query" placeholder:"QUERY" help:"Which events, for example: provider:stripe after:2h; all that are not ignored when none is given."`
	Format string `enum:"ndjson,har,csv,mbox" default:"ndjson" help:"ndjson (an event with all its parts a line), har, csv, or mbox (the raw messages of mail)."`
	Output string `short:"o" type:"path" placeholder:"FILE" help:"Write there instead of to standard output; the file is there whole or not at all."`
}

// Help implements kong.HelpProvider.
func (c *RequestsExportCmd) Help() string {
	return `Examples:

  hookglass requests export -e ep_… -q 'sig:failed after:24h' -o failed.ndjson
  hookglass requests export -e ep_… --format har | jq '.log.entries | length'`
}

// exported is the --json output about a file.
type exported struct {
	File   string `json:"file"`
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
}

func (c *RequestsExportCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	from, _, err := r.connect()
	if err != nil {
		return err
	}
	pipe, json := c.Output == "" || c.Output == "-", c.Format == "ndjson" || c.Format == "har"
	switch {
	case pipe && r.JSON && !json:
		return outcome{exitUsage, c.Format + " is no JSON: leave --json out, or name a file with -o"}
	case pipe && !json && isTerminal(t.Out):
		return outcome{exitUsage, "what came is written byte for byte, which is not for a terminal: name a file with -o, or direct it into a pipe"}
	}
	counted := &counting{}
	write := func(w io.Writer) error {
		counted.to, counted.told = w, time.Now()
		if !pipe {
			counted.tell = t.Err
		}
		err := from.Export(ctx, r.Endpoint, c.Format, client.Filter{Query: c.Query}, counted)
		if err != nil && counted.n > 0 && !counted.full {
			return fmt.Errorf("the export broke off and is not whole: %w", err)
		}
		if err == nil && query.Advice(c.Query) != "" { // only then it matters whether anything was found
			page, unknown := from.Requests(ctx, r.Endpoint, client.Filter{Query: c.Query}, client.Page{Limit: 1})
			if unknown == nil && page.Meta.Total == 0 && page.Meta.TotalExact {
				r.advise(t, c.Query)
			}
		}
		return err
	}
	if pipe && isTerminal(t.Out) {
		plain := plainJSON(t.Out)
		return errors.Join(write(plain), plain.Close())
	}
	if pipe {
		return write(t.Out)
	}
	if err := writeFile(c.Output, write); err != nil {
		return err
	}
	return r.say(t, exported{c.Output, c.Format, counted.n}, "%s: %s\n", visible(c.Output), plural(counted.n, "byte", "bytes"))
}

// counting counts what is written, and reports it from time to time.
type counting struct {
	to   io.Writer
	tell io.Writer // nil: nobody
	n    int64
	told time.Time
	full bool // it could not be written
}

// tellEvery is how often long operations report progress.
const tellEvery = 5 * time.Second

func (c *counting) Write(p []byte) (n int, err error) {
	n, err = c.to.Write(p)
	c.n, c.full = c.n+int64(n), err != nil
	if c.tell != nil && time.Since(c.told) > tellEvery {
		c.told = time.Now()
		fmt.Fprintf(c.tell, "%d MiB so far\n", c.n>>20)
	}
	return n, err
}
