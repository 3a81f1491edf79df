package cli

import (
	"context"
	"errors"
	"math"
	"strings"

	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// AlertsCmd is `hookglass alerts`.
type AlertsCmd struct {
	remote
	ofEndpoint

	List      AlertsListCmd      `cmd:"" help:"List alerts, oldest first, and which of them are triggered."`
	Create    AlertsCreateCmd    `cmd:"" help:"Create an alert: it watches from now on."`
	Delete    AlertsDeleteCmd    `cmd:"" help:"Delete an alert with its history."`
	Incidents AlertsIncidentsCmd `cmd:"" help:"List the times in which an alert was triggered, newest first."`
}

// AlertsListCmd is `hookglass alerts list`.
type AlertsListCmd struct{}

func (*AlertsListCmd) Run(ctx context.Context, t *server.Terminal, c *AlertsCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	all, err := from.Alerts(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	rows := make([][]string, len(all))
	for i, a := range all {
		state := a.State
		if !a.Enabled {
			state = "disabled"
		}
		rows[i] = []string{a.ID, a.Name, a.Kind, state, clock(&a.StateChangedAt)}
	}
	return c.print(t, api.List[api.Alert]{Data: all}, table([]string{"ID", "NAME", "KIND", "STATE", "SINCE"}, rows))
}

// AlertsCreateCmd is `hookglass alerts create`.
type AlertsCreateCmd struct {
	Name      string   `arg:"" help:"A label for people."`
	Kind      string   `arg:"" help:"missing_webhook, error_response, keyword_match, volume_spike or schema_drift."`
	Window    *int64   `placeholder:"MINUTES" help:"missing_webhook, error_response, volume_spike: the time that counts, 1 to 1440."`
	Threshold *int64   `placeholder:"N" help:"error_response: how many deliveries failed or were answered with 400 or more."`
	Keyword   *string  `placeholder:"TEXT" help:"keyword_match: what to look for."`
	Field     *string  `placeholder:"FIELD" help:"keyword_match: any (the default), body, headers, path, query, event_type, subject, from, to, or a JSON Pointer into the body."`
	Factor    *float64 `placeholder:"X" help:"volume_spike: how many times the average of the 24 windows before."`
	MinCount  *int64   `placeholder:"N" help:"volume_spike: fewer events are no spike; default 10."`
	EventType *string  `placeholder:"TYPE" help:"schema_drift: of this event type alone."`
	Channel   []string `placeholder:"CHAN" help:"A notification channel that is told, by id or name; may be given again."`
}

// Validate refuses values that JSON cannot express.
func (r *AlertsCreateCmd) Validate() error {
	if f := r.Factor; f != nil && (math.IsNaN(*f) || math.IsInf(*f, 0)) {
		return errors.New("--factor must be a number")
	}
	return nil
}

func (r *AlertsCreateCmd) Run(ctx context.Context, t *server.Terminal, c *AlertsCmd) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	wanted := api.NewAlert{Name: api.Some(r.Name), Kind: api.Some(r.Kind), Config: api.Some(api.AlertSettings{
		WindowMinutes: api.Maybe(r.Window), Threshold: api.Maybe(r.Threshold), Keyword: api.Maybe(r.Keyword), Field: api.Maybe(r.Field), Factor: api.Maybe(r.Factor),
		MinCount: api.Maybe(r.MinCount), EventType: api.Maybe(r.EventType),
	})}
	for i, word := range r.Channel {
		if r.Channel[i], err = channelNamed(ctx, to, word); err != nil {
			return err
		}
	}
	if len(r.Channel) > 0 {
		wanted.ChannelIDs = api.Some(r.Channel)
	}
	made, err := to.CreateAlert(ctx, c.Endpoint, wanted)
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.Alert]{Data: made}, "Created alert %s: %s\n", made.ID, visible(made.Name))
}

// AlertsDeleteCmd is `hookglass alerts delete`.
type AlertsDeleteCmd struct {
	Alert string `arg:"" help:"Its id or name."`
}

func (r *AlertsDeleteCmd) Run(ctx context.Context, t *server.Terminal, c *AlertsCmd) error {
	at, id, err := c.alert(ctx, r.Alert)
	if err != nil {
		return err
	}
	if err := at.DeleteAlert(ctx, c.Endpoint, id); err != nil {
		return err
	}
	return c.deleted(t, id)
}

// AlertsIncidentsCmd is `hookglass alerts incidents`.
type AlertsIncidentsCmd struct {
	Alert string  `arg:"" help:"Its id or name."`
	Limit howMany `default:"25" help:"How many at most, 1 to 100."`
}

func (r *AlertsIncidentsCmd) Run(ctx context.Context, t *server.Terminal, c *AlertsCmd) error {
	from, id, err := c.alert(ctx, r.Alert)
	if err != nil {
		return err
	}
	list, err := from.Incidents(ctx, c.Endpoint, id, client.Page{Limit: int(r.Limit)})
	if err != nil {
		return err
	}
	rows := make([][]string, len(list.Data))
	for i, one := range list.Data {
		rows[i] = []string{clock(&one.StartedAt), clock(one.ResolvedAt), strings.TrimSpace(one.Summary + " " + deref(one.Resolution))}
	}
	return c.print(t, list, table([]string{"STARTED", "RESOLVED", "WHAT"}, rows))
}
