package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// RequestsDeleteCmd is `hookglass requests delete`.
type RequestsDeleteCmd struct {
	Events []string `arg:"" optional:"" help:"The events' ids; or --query or --all."`
	Query  string   `short:"q" type:"query" placeholder:"QUERY" help:"Which events, in place of ids, as requests list shows them."`
	All    bool     `help:"All events of the endpoint, also ignored ones and what comes meanwhile."`
	Yes    bool     `short:"y" help:"Do not ask before what a search found, or all, is deleted."`
}

// Help implements kong.HelpProvider.
func (c *RequestsDeleteCmd) Help() string {
	return `Examples:

  hookglass requests delete -e payments req_… req_…
  hookglass requests delete -e payments -q 'provider:stripe before:7d'
  hookglass requests delete -e payments --all --yes

It says how many events there are, and asks. With --query, events that arrive meanwhile are kept.`
}

// Validate says what is wrong with the flags.
func (c *RequestsDeleteCmd) Validate() error {
	return chooseOnce(c.Events, c.Query, c.All)
}

// chooseOnce refuses flags that choose events in no way, or in several.
func chooseOnce(ids []string, query string, all bool) error {
	said := 0
	for _, by := range []bool{len(ids) > 0, query != "", all} {
		if by {
			said++
		}
	}
	if said != 1 {
		return errors.New("say which events by one of these: their ids, --query, or --all")
	}
	return nil
}

func (c *RequestsDeleteCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	at, _, err := r.connect()
	if err != nil {
		return err
	}
	if len(c.Events) == 1 {
		gone, err := at.DeleteRequest(ctx, r.Endpoint, c.Events[0])
		if err != nil {
			return err
		}
		return r.deleted(t, gone.ID)
	}
	deleted, err := c.delete(ctx, t, at, r.Endpoint)
	if err != nil {
		if deleted > 0 { // report them even if the rest was refused, unanswered or interrupted
			fmt.Fprintf(t.Err, "Deleted %s, and no more:\n", plural(deleted, "event", "events"))
		}
		return err
	}
	if deleted == 0 {
		r.advise(t, c.Query)
	}
	return r.say(t, api.One[api.DeletedEvents]{Data: api.DeletedEvents{Deleted: deleted}}, "Deleted %s.\n", plural(deleted, "event", "events"))
}

// delete deletes several events and returns how many were deleted, also with an error.
func (c *RequestsDeleteCmd) delete(ctx context.Context, t *server.Terminal, at *client.Client, endpoint string) (int64, error) {
	switch {
	case c.All:
		page, err := at.Requests(ctx, endpoint, client.Filter{Ignored: "any"}, client.Page{Limit: 1})
		if err != nil || page.Meta.Total == 0 {
			return 0, err
		}
		if err := c.confirm(ctx, t, page.Meta.Total, endpoint); err != nil {
			return 0, err
		}
		return at.DeleteRequests(ctx, endpoint, time.Time{}, time.Time{})
	case c.Query != "":
		found, err := foundIDs(ctx, at, endpoint, c.Query)
		if err != nil || len(found) == 0 {
			return 0, err
		}
		if err := c.confirm(ctx, t, int64(len(found)), endpoint); err != nil {
			return 0, err
		}
		return deleteEach(ctx, at, endpoint, found, true)
	}
	return deleteEach(ctx, at, endpoint, c.Events, false)
}

// foundIDs returns the ids of all events that a search finds.
func foundIDs(ctx context.Context, from *client.Client, endpoint, query string) (ids []string, err error) {
	for page := (client.Page{Limit: 100}); ; {
		some, err := from.Requests(ctx, endpoint, client.Filter{Query: query}, page)
		if err != nil {
			return nil, err
		}
		for _, e := range some.Data {
			ids = append(ids, e.ID)
		}
		if some.Meta.NextCursor == nil {
			return ids, nil
		}
		page.Cursor = *some.Meta.NextCursor
	}
}

// confirm shows how many events would be deleted, and asks for confirmation.
func (c *RequestsDeleteCmd) confirm(ctx context.Context, t *server.Terminal, n int64, endpoint string) error {
	events := fmt.Sprintf("%s of %s", plural(n, "event", "events"), visible(endpoint))
	if c.Yes {
		fmt.Fprintf(t.Err, "Deleting %s.\n", events)
		return nil
	}
	if !isTerminal(t.In) {
		return outcome{exitUsage, events + " would be deleted for good, and there is nobody to ask: --yes deletes them"}
	}
	return agreed(ctx, t, events)
}

// agreed asks at a terminal whether something is to be deleted.
func agreed(ctx context.Context, t *server.Terminal, what string) error {
	fmt.Fprintf(t.Err, "Delete %s for good? [y/N] ", what)
	said, _ := readLine(ctx, t.In)
	if !strings.EqualFold(said, "y") && !strings.EqualFold(said, "yes") {
		return outcome{exitFailed, "nothing was deleted"}
	}
	return nil
}

// deleteEach deletes events one by one. With passOver, events that are already deleted are no error.
func deleteEach(ctx context.Context, at *client.Client, endpoint string, ids []string, passOver bool) (deleted int64, err error) {
	for _, id := range ids {
		_, err := at.DeleteRequest(ctx, endpoint, id)
		var refused *client.Error
		switch {
		case err == nil:
			deleted++
		case passOver && errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		default:
			return deleted, fmt.Errorf("%s: %w", visible(id), err)
		}
	}
	return deleted, nil
}
