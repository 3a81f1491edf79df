package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"hookglass/api"
	"hookglass/internal/server"
)

// ReplayCmd is `hookglass replay`.
type ReplayCmd struct {
	remote
	ofEndpoint
	Event     string `arg:"" help:"The event's id, latest, or latest and an event type."`
	To        string `required:"" placeholder:"URL" help:"Where to send it, or the word tunnel."`
	Identity  string `enum:"original,regenerate" default:"original" help:"original or regenerate."`
	Signature string `enum:"preserve,strip,resign," default:"" help:"preserve (the default), strip or resign; with --time-shift resign where that is possible."`
	TimeShift string `placeholder:"SHIFT" help:"Move all times in the request: now, +3h, -2d, or milliseconds."`
	DryRun    bool   `help:"Send nothing; show what would be sent."`

	Method       *string  `enum:"GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS" placeholder:"METHOD" help:"Send it with this method."`
	Header       []string `sep:"none" placeholder:"'N: V'" help:"Add this field, in the place of one of the same name; may be repeated."`
	RemoveHeader []string `sep:"none" placeholder:"NAME" help:"Leave this field out; may be repeated."`
	Body         *string  `placeholder:"FILE" help:"Send what this file holds in place of the body; - is standard input."`
	Query        *string  `placeholder:"QUERY" help:"Send this query in place of the one of --to: a=1&b=2, percent-encoded."`
}

// Help implements kong.HelpProvider.
func (c *ReplayCmd) Help() string {
	return `Examples:

  hookglass replay req_… -e ep_… --to https://app.example.com/webhooks
  hookglass replay 'latest invoice.paid' -e ep_… --to tunnel
  hookglass replay req_… -e ep_… --to tunnel --signature resign --body paid.json --header 'X-Attempt: 2'

"hookglass replays run" sends many events again.`
}

// maxOverride bounds a replacement body; the API accepts no more.
const maxOverride = 2 << 20

// overrides returns the changes that the flags make to the event, or nil.
func (c *ReplayCmd) overrides(t *server.Terminal) (*api.Overrides, error) {
	o := api.Overrides{Method: c.Method, Query: (*api.QueryString)(c.Query)}
	if len(c.Header)+len(c.RemoveHeader) > 0 {
		o.Headers = make(map[string]*string)
	}
	fields, err := headerFlags(c.Header)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		o.Headers[f.Name] = &f.Value
	}
	for _, name := range c.RemoveHeader {
		if fields.Has(name) {
			return nil, outcome{exitUsage, "--header and --remove-header both name " + name}
		}
		o.Headers[name] = nil
	}
	if c.Body != nil {
		text, err := readInput(t, *c.Body, maxOverride)
		if err != nil {
			return nil, err
		}
		if !utf8.Valid(text) {
			return nil, fmt.Errorf("%s is no text in UTF-8, which a body must be that takes the place of another", *c.Body)
		}
		o.Body = new(string(text))
	}
	if o.Method == nil && o.Query == nil && o.Headers == nil && o.Body == nil {
		return nil, nil
	}
	return &o, nil
}

// sentTo returns a target with the query that is sent to it.
func (c *ReplayCmd) sentTo(target string) string {
	if c.Query == nil {
		return target
	}
	target, _, _ = strings.Cut(target, "#")
	target, _, _ = strings.Cut(target, "?")
	if *c.Query == "" {
		return target
	}
	return target + "?" + *c.Query
}

// Validate checks the target: the server's message would use the API's names.
func (c *ReplayCmd) Validate() error {
	if c.To == tunnelTarget || strings.Contains(c.To, "://") {
		return nil
	}
	given := ""
	if c.To != "" {
		given = fmt.Sprintf("; %q is neither", c.To)
	}
	return errors.New("--to must be an http or https address that the server can reach, or the word tunnel, for the machine on which \"hookglass listen\" runs" + given)
}

// tunnelTarget is the target that means the connected machine.
const tunnelTarget = "tunnel"

// Run implements the command. It fails if there was no answer.
func (c *ReplayCmd) Run(ctx context.Context, t *server.Terminal) error {
	overrides, err := c.overrides(t)
	if err != nil {
		return err
	}
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	if c.Event, err = eventNamed(ctx, to, c.Endpoint, c.Event); err != nil {
		return err
	}
	r, err := to.Replay(ctx, c.Endpoint, c.Event, api.ReplayRequest{
		TargetURL: c.To, IdentityMode: c.Identity, SignatureMode: c.Signature, Overrides: overrides, TimeShift: api.TimeShift(c.TimeShift), DryRun: c.DryRun,
	})
	if err != nil {
		return err
	}
	err = c.print(t, api.One[api.Replay]{Data: r}, func(w io.Writer) {
		if r.Delivered {
			fmt.Fprintf(w, "%d in %d ms", *r.StatusCode, r.DurationMS)
			if r.Verdict != nil {
				fmt.Fprintf(w, " (%s)", *r.Verdict)
			}
			fmt.Fprintln(w)
			if body := deref(r.ResponseBody); body != "" {
				fmt.Fprintln(w, visibleLines(body))
			}
		}
		if r.DryRun {
			fmt.Fprintf(w, "would send %s %s (signature: %s)\n", r.Method, visible(c.sentTo(r.TargetURL)), r.SignatureMode)
			for _, name := range slices.Sorted(maps.Keys(r.RequestHeadersSent)) {
				fmt.Fprintf(w, "  %s: %s\n", visible(name), visible(r.RequestHeadersSent[name]))
			}
		}
		for _, c := range r.TimeChanges {
			where := c.Pointer
			if c.Header != "" {
				where = c.Header + ":"
			}
			fmt.Fprintf(w, "  %s %s -> %s\n", visible(where), visible(c.From), visible(c.To))
		}
		for _, warning := range r.Warnings {
			fmt.Fprintln(t.Err, "warning:", visible(warning))
		}
	})
	if err == nil && !r.Delivered && !r.DryRun {
		err = fmt.Errorf("not delivered: %s", visible(r.Error.Message))
	}
	return err
}
