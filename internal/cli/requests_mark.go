package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// RequestsTagCmd is `hookglass requests tag`.
type RequestsTagCmd struct {
	Event string   `arg:"" help:"The event's id, latest, or latest and an event type."`
	Tags  []string `arg:"" name:"tag" help:"A tag; it is made where there is none of this name."`
}

func (c *RequestsTagCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	return r.retag(ctx, t, c.Event, c.Tags, (*client.Client).Tag)
}

// RequestsUntagCmd is `hookglass requests untag`.
type RequestsUntagCmd struct {
	Event string   `arg:"" help:"The event's id, latest, or latest and an event type."`
	Tags  []string `arg:"" name:"tag" help:"A tag that it has."`
}

func (c *RequestsUntagCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	return r.retag(ctx, t, c.Event, c.Tags, (*client.Client).Untag)
}

// event connects, and finds the event that a word names.
func (r *RequestsCmd) event(ctx context.Context, word string) (at *client.Client, id string, err error) {
	if at, _, err = r.connect(); err != nil {
		return nil, "", err
	}
	id, err = eventNamed(ctx, at, r.Endpoint, word)
	return at, id, err
}

// retag changes the tags of an event one by one, and prints the result.
func (r *RequestsCmd) retag(ctx context.Context, t *server.Terminal, word string, tags []string, change func(*client.Client, context.Context, string, string, string) ([]string, error)) error {
	at, event, err := r.event(ctx, word)
	if err != nil {
		return err
	}
	var now []string
	say := func(w io.Writer) {
		fmt.Fprintf(w, "Tags of %s: %s\n", event, visible(cmp.Or(strings.Join(now, ", "), "none")))
	}
	for i, tag := range tags {
		then, err := change(at, ctx, r.Endpoint, event, tag)
		if err != nil {
			if i > 0 { // what was done before the refusal stays
				say(t.Err)
			}
			return fmt.Errorf("%q: %w", tag, err)
		}
		now = then
	}
	return r.print(t, api.One[api.EventTags]{Data: api.EventTags{Tags: now}}, say)
}

// RequestsNoteCmd is `hookglass requests note`.
type RequestsNoteCmd struct {
	Event string `arg:"" help:"The event's id, latest, or latest and an event type."`
	Text  string `arg:"" help:"What to write in place of what is there, 2,000 characters at most; an empty text takes the note off."`
}

func (c *RequestsNoteCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	said := "Noted on"
	if strings.TrimSpace(c.Text) == "" {
		said = "No note on"
	}
	return r.mark(ctx, t, c.Event, said, func(at *client.Client, event string) (api.Event, error) {
		return at.SetNote(ctx, r.Endpoint, event, c.Text)
	})
}

// RequestsIgnoreCmd is `hookglass requests ignore`.
type RequestsIgnoreCmd struct {
	Event  string `arg:"" help:"The event's id, latest, or latest and an event type."`
	Reason string `enum:"noise,mistake,resolved,test" default:"noise" help:"Why: noise, mistake, resolved or test."`
}

func (c *RequestsIgnoreCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	return r.mark(ctx, t, c.Event, "Ignored", func(at *client.Client, event string) (api.Event, error) {
		return at.Ignore(ctx, r.Endpoint, event, c.Reason)
	})
}

// RequestsUnignoreCmd is `hookglass requests unignore`.
type RequestsUnignoreCmd struct {
	Event string `arg:"" help:"The event's id, or latest of those that are ignored, or latest and an event type."`
}

func (c *RequestsUnignoreCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	at, _, err := r.connect()
	if err != nil {
		return err
	}
	// The latest of all others was never hidden, and would be said to be shown again.
	if c.Event, err = eventAmong(ctx, at, r.Endpoint, c.Event, client.Filter{Ignored: "true"}); err != nil {
		return err
	}
	return r.mark(ctx, t, c.Event, "Shown again:", func(at *client.Client, event string) (api.Event, error) {
		return at.Unignore(ctx, r.Endpoint, event)
	})
}

// mark changes an event and reports it.
func (r *RequestsCmd) mark(ctx context.Context, t *server.Terminal, word, said string, change func(*client.Client, string) (api.Event, error)) error {
	at, event, err := r.event(ctx, word)
	if err != nil {
		return err
	}
	now, err := change(at, event)
	if err != nil {
		return err
	}
	return r.say(t, api.One[api.Event]{Data: now}, "%s %s.\n", said, now.ID)
}
