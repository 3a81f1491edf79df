package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// ShareCmd is `hookglass share`.
type ShareCmd struct {
	remote
	ofEndpoint

	Create ShareCreateCmd `cmd:"" help:"Create a link by which anybody may read an event, without its secrets."`
	List   ShareListCmd   `cmd:"" help:"List the links that work, newest first."`
	Revoke ShareRevokeCmd `cmd:"" help:"End a link: nobody can read anything by it from then on."`
}

// ShareCreateCmd is `hookglass share create`.
type ShareCreateCmd struct {
	Event     string         `arg:"" help:"The event's id, latest, or latest and an event type."`
	ExpiresIn *time.Duration `placeholder:"TIME" help:"How long the link works, 1m to 30d (default: 7d)."`
}

// Help implements kong.HelpProvider.
func (c *ShareCreateCmd) Help() string {
	return `The link is printed alone on standard output, and is not shown again. Examples:

  hookglass share create latest -e ep_…
  hookglass share create req_… -e ep_… --expires-in 24h | pbcopy`
}

// Validate refuses a lifetime that a link cannot have.
func (c *ShareCreateCmd) Validate() error {
	if c.ExpiresIn != nil && *c.ExpiresIn%time.Second != 0 {
		return errors.New("--expires-in must be whole seconds")
	}
	return nil
}

func (c *ShareCreateCmd) Run(ctx context.Context, t *server.Terminal, of *ShareCmd) error {
	at, _, err := of.connect()
	if err != nil {
		return err
	}
	if c.Event, err = eventNamed(ctx, at, of.Endpoint, c.Event); err != nil {
		return err
	}
	var wanted api.NewShareLink
	if c.ExpiresIn != nil {
		wanted.ExpiresIn = api.Some(int64(*c.ExpiresIn / time.Second))
	}
	made, err := at.CreateShareLink(ctx, of.Endpoint, c.Event, wanted)
	if err != nil {
		return err
	}
	if err := of.say(t, api.One[api.ShareLink]{Data: made}, "%s\n", visible(made.URL)); err != nil || of.JSON {
		return err
	}
	_, err = fmt.Fprintf(t.Err, "Whoever has link %d can read %s until %s. It is not shown again. Look at it before you send it: what only you know to be secret stays.\n", made.ID, visible(made.RequestID), clock(&made.ExpiresAt))
	return err
}

// ShareListCmd is `hookglass share list`.
type ShareListCmd struct {
	Event string `arg:"" optional:"" help:"Only the links to this event: its id, latest, or latest and an event type."`
}

func (c *ShareListCmd) Run(ctx context.Context, t *server.Terminal, of *ShareCmd) error {
	from, _, err := of.connect()
	if err != nil {
		return err
	}
	if c.Event, err = eventNamed(ctx, from, of.Endpoint, c.Event); err != nil {
		return err
	}
	all, err := everything(func(page client.Page) (api.List[api.ShareLink], error) {
		return from.ShareLinks(ctx, of.Endpoint, c.Event, page)
	})
	if err != nil {
		return err
	}
	rows := make([][]string, len(all))
	for i, l := range all {
		rows[i] = []string{strconv.FormatInt(l.ID, 10), l.RequestID, clock(&l.CreatedAt), clock(&l.ExpiresAt)}
	}
	return of.print(t, api.List[api.ShareLink]{Data: all}, table([]string{"ID", "REQUEST", "CREATED", "EXPIRES"}, rows))
}

// ShareRevokeCmd is `hookglass share revoke`.
type ShareRevokeCmd struct {
	Link int64 `arg:"" help:"Its id."`
}

func (c *ShareRevokeCmd) Run(ctx context.Context, t *server.Terminal, of *ShareCmd) error {
	at, _, err := of.connect()
	if err != nil {
		return err
	}
	if err := at.RevokeShareLink(ctx, of.Endpoint, c.Link); err != nil {
		return err
	}
	return of.say(t, api.One[api.DeletedNumber]{Data: api.DeletedNumber{ID: c.Link, Deleted: true}}, "Revoked link %d.\n", c.Link)
}
