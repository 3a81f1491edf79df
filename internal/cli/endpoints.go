package cli

import (
	"context"
	"fmt"
	"strconv"

	"hookglass/api"
	"hookglass/internal/server"
)

// EndpointsCmd is `hookglass endpoints`.
type EndpointsCmd struct {
	remote

	List   EndpointsListCmd   `cmd:"" help:"List endpoints."`
	Create EndpointsCreateCmd `cmd:"" help:"Create an endpoint."`
	Get    EndpointsGetCmd    `cmd:"" help:"Show an endpoint."`
	Update EndpointsUpdateCmd `cmd:"" help:"Change an endpoint: its names, whether it takes anything, and how it answers."`
	Try    EndpointsTryCmd    `cmd:"" help:"Show which rule, or what else, would answer the events that came."`
	Delete EndpointsDeleteCmd `cmd:"" help:"Delete an endpoint and all its events, for good."`
	Export EndpointsExportCmd `cmd:"" help:"Write an endpoints file of what there is, without secrets."`
}

// EndpointsListCmd is `hookglass endpoints list`.
type EndpointsListCmd struct{}

func (c *EndpointsListCmd) Run(ctx context.Context, t *server.Terminal, e *EndpointsCmd) error {
	from, _, err := e.connect()
	if err != nil {
		return err
	}
	all, err := from.Endpoints(ctx)
	if err != nil {
		return err
	}
	rows := make([][]string, len(all))
	for i, one := range all {
		rows[i] = []string{one.ID, one.Name, one.Kind, strconv.FormatInt(one.EventCount, 10), clock(one.LastEventAt), address(one)}
	}
	return e.print(t, api.List[api.Endpoint]{Data: all}, table([]string{"ID", "NAME", "KIND", "EVENTS", "LAST EVENT", "ADDRESS"}, rows))
}

// EndpointsCreateCmd is `hookglass endpoints create`.
type EndpointsCreateCmd struct {
	Name           string `arg:"" help:"A label for people."`
	Kind           string `enum:"webhook,email" default:"webhook" help:"What it catches: ${enum}."`
	Provider       string `placeholder:"NAME" help:"The intended source, for example stripe."`
	CustomID       string `name:"custom-id" placeholder:"NAME" help:"A name of yours that works as the id, also in its URL."`
	Workspace      *int64 `placeholder:"ID" help:"Where to create it (default: the token's workspace, or the account's oldest)."`
	EmailLocalPart string `placeholder:"NAME" help:"What stands before the @ of an email endpoint (default: at random)."`
}

func (c *EndpointsCreateCmd) Run(ctx context.Context, t *server.Terminal, e *EndpointsCmd) error {
	to, _, err := e.connect()
	if err != nil {
		return err
	}
	wanted := api.NewEndpoint{Name: api.Some(c.Name), Kind: api.Some(c.Kind)}
	if c.Provider != "" {
		wanted.Provider = api.Some(c.Provider)
	}
	if c.CustomID != "" {
		wanted.CustomID = api.Some(c.CustomID)
	}
	if c.EmailLocalPart != "" {
		wanted.EmailLocalPart = api.Some(c.EmailLocalPart)
	}
	wanted.WorkspaceID = api.Maybe(c.Workspace)
	made, err := to.CreateEndpoint(ctx, wanted)
	if err != nil {
		return err
	}
	return e.say(t, api.One[api.Endpoint]{Data: made}, "Created %s: %s\n", made.ID, address(made))
}

// EndpointsGetCmd is `hookglass endpoints get`.
type EndpointsGetCmd struct {
	Endpoint string `arg:"" placeholder:"EP" help:"Its id or custom id."`
}

func (c *EndpointsGetCmd) Run(ctx context.Context, t *server.Terminal, e *EndpointsCmd) error {
	from, _, err := e.connect()
	if err != nil {
		return err
	}
	one, err := from.Endpoint(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	rows := [][]string{
		{"Name", one.Name}, {"Kind", one.Kind}, {"Address", address(one)}, {"Custom id", orDash(one.CustomID)}, {"Provider", orDash(one.Provider)},
		{"Enabled", strconv.FormatBool(one.Enabled)}, {"Answer", answerOf(one)}, {"Events", strconv.FormatInt(one.EventCount, 10)}, {"Last event", clock(one.LastEventAt)},
		{"Created", clock(&one.CreatedAt)},
	}
	return e.print(t, api.One[api.Endpoint]{Data: one}, table([]string{"Id", one.ID}, rows))
}

// EndpointsDeleteCmd is `hookglass endpoints delete`.
type EndpointsDeleteCmd struct {
	Endpoint string `arg:"" placeholder:"EP" help:"Its id or custom id."`
	Yes      bool   `short:"y" help:"Do not ask before; nobody is asked where there is no terminal."`
}

func (c *EndpointsDeleteCmd) Run(ctx context.Context, t *server.Terminal, e *EndpointsCmd) error {
	at, _, err := e.connect()
	if err != nil {
		return err
	}
	if !c.Yes && isTerminal(t.In) {
		it, err := at.Endpoint(ctx, c.Endpoint)
		if err != nil {
			return err
		}
		if err := agreed(ctx, t, fmt.Sprintf("%s (%s) with %s", it.ID, visible(it.Name), plural(it.EventCount, "event", "events"))); err != nil {
			return err
		}
	}
	gone, err := at.DeleteEndpoint(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	return e.deleted(t, gone.ID)
}

// deleted reports that something was deleted.
func (r *remote) deleted(t *server.Terminal, id string) error {
	return r.say(t, api.One[api.Deleted]{Data: api.Deleted{ID: id, Deleted: true}}, "Deleted %s.\n", id)
}

// address returns the address of an endpoint.
func address(e api.Endpoint) string {
	if e.EmailAddress != nil {
		return *e.EmailAddress
	}
	if e.WebhookURL == nil {
		return e.ID
	}
	return *e.WebhookURL
}

func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}
