package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// RequestsWaitCmd is `hookglass requests wait`.
type RequestsWaitCmd struct {
	Query   string        `short:"q" type:"query" placeholder:"QUERY" help:"For which event, for example: subject:reset."`
	Since   ago           `placeholder:"TIME" help:"One that came since then does as well, the newest first: a duration as 1m that counts back from now, or ISO 8601."`
	Timeout time.Duration `default:"30s" placeholder:"TIME" help:"How long to wait (default: ${default}); exit with 4 when it passes."`
	Link    *string       `xor:"part" placeholder:"TEXT" help:"Print the first link of the mail with this text in it, alone; a mail without one is not what is waited for."`
	Code    bool          `xor:"part" help:"Print the first one-time code of the mail, alone; a mail without one is not what is waited for."`
	Pointer *pointer      `xor:"part" placeholder:"POINTER" help:"Print the value at this place of the body, alone, for example /data/id; an event without one is not what is waited for."`
}

// Help implements kong.HelpProvider.
func (c *RequestsWaitCmd) Help() string {
	return `Examples:

  hookglass requests wait -e ep_… -q 'provider:stripe event:invoice.paid' --json
  id=$(hookglass requests wait -e ep_… -q event:invoice.paid --pointer /data/object/id)
  link=$(hookglass requests wait -e ci -q 'path:ci+signup7@' --since 1m --link /reset)

What comes from now on counts, and with --since what came shortly before.`
}

// Validate says what is wrong with the flags.
func (c *RequestsWaitCmd) Validate() error {
	if c.Timeout <= 0 {
		return errors.New("--timeout must be more than nothing")
	}
	return nil
}

// Run implements the command. It prints the event as get does.
func (c *RequestsWaitCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	from, _, err := r.connect()
	if err != nil {
		return err
	}
	if r.JSON && (c.Link != nil || c.Code || c.Pointer != nil) {
		return outcome{exitUsage, "--link, --code and --pointer print a line, which is no JSON: leave --json out"}
	}
	waiting, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	// As in tail: if the server was never reached, its address is probably wrong.
	var unreachable *url.Error
	if _, err = from.Endpoint(waiting, r.Endpoint); errors.As(err, &unreachable) && waiting.Err() == nil {
		return err
	}
	filter := client.Filter{Query: c.Query}
	events := from.Stream(waiting, r.Endpoint, filter, "", tellAway(t))
	if c.Since != "" {
		events = from.Since(waiting, r.Endpoint, filter, string(c.Since), tellAway(t))
	}
	for came, err := range events {
		if err != nil {
			return err
		}
		e, err := from.Request(waiting, r.Endpoint, came.ID)
		if waiting.Err() != nil {
			break
		}
		if gone, ok := errors.AsType[*client.Error](err); ok && gone.Code == hookglass.CodeNotFound {
			continue // it was deleted already
		}
		if err != nil {
			return err
		}
		part, ok := c.part(t, e)
		if !ok {
			continue
		}
		return r.say(t, api.One[api.EventDetail]{Data: e}, "%s", part)
	}
	if ctx.Err() != nil {
		return outcome{exitFailed, "stopped before it came"}
	}
	r.advise(t, c.Query)
	text := fmt.Sprintf("nothing that was waited for came within %s", c.Timeout)
	if c.Since == "" {
		text += "; --since 1m takes what came before as well"
	}
	return outcome{exitTimeout, text}
}

// part returns what the flags ask to print of an event; ok is false if the event has no such part.
func (c *RequestsWaitCmd) part(t *server.Terminal, e api.EventDetail) (text string, ok bool) {
	var found []string
	switch {
	case c.Pointer != nil:
		return c.Pointer.value(t, e)
	case !c.Code && c.Link == nil:
		return detail(e), true
	case e.Extracted == nil:
	case c.Code:
		found = e.Extracted.Codes
	default:
		found = slices.DeleteFunc(slices.Clone(e.Extracted.Links), func(l string) bool { return !strings.Contains(l, *c.Link) })
	}
	if len(found) == 0 {
		return "", false
	}
	return visible(found[0]) + "\n", true
}
