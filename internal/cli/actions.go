package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// ActionsCmd is `hookglass actions`.
type ActionsCmd struct {
	remote
	ofEndpoint

	List    ActionsListCmd    `cmd:"" help:"List actions, in the order in which they run."`
	Get     ActionsGetCmd     `cmd:"" help:"Print an action with its last runs, as JSON."`
	Create  ActionsCreateCmd  `cmd:"" help:"Create an action from a JSON file: it runs on events that are captured from now on."`
	Update  ActionsUpdateCmd  `cmd:"" help:"Change an action to what a JSON file says; what the file leaves out stays."`
	Preview ActionsPreviewCmd `cmd:"" help:"Show what an action would do with a captured event; nothing is sent."`
	Run     ActionsRunCmd     `cmd:"" help:"Run an action on a captured event, whatever its conditions say."`
	Runs    ActionsRunsCmd    `cmd:"" help:"List runs, newest first."`
	Enable  ActionsEnableCmd  `cmd:"" help:"Have an action run on events that are captured from now on."`
	Disable ActionsDisableCmd `cmd:"" help:"Have an action run on nothing that is captured from now on."`
	Delete  ActionsDeleteCmd  `cmd:"" help:"Delete an action; its runs stay."`
}

// ActionsListCmd is `hookglass actions list`.
type ActionsListCmd struct{}

func (*ActionsListCmd) Run(ctx context.Context, t *server.Terminal, c *ActionsCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	all, err := from.Actions(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	rows := make([][]string, len(all))
	for i, a := range all {
		rows[i] = []string{strconv.Itoa(a.Position), a.ID, a.Name, enabledWord(a.Enabled), strconv.Itoa(len(a.Conditions)), stepTypes(a.Steps)}
	}
	return c.print(t, api.List[api.Action]{Data: all}, table([]string{"", "ID", "NAME", "STATE", "CONDITIONS", "STEPS"}, rows))
}

func enabledWord(enabled bool) string {
	if enabled {
		return "enabled"
	}
	return "disabled"
}

func stepTypes(steps []api.ActionStep) (all string) {
	for i, s := range steps {
		if i > 0 {
			all += ", "
		}
		all += s.StepType
	}
	return all
}

// ActionsGetCmd is `hookglass actions get`.
type ActionsGetCmd struct {
	Action string `arg:"" help:"Its id or name."`
}

func (r *ActionsGetCmd) Run(ctx context.Context, t *server.Terminal, c *ActionsCmd) error {
	from, id, err := c.action(ctx, r.Action)
	if err != nil {
		return err
	}
	a, err := from.Action(ctx, c.Endpoint, id)
	if err != nil {
		return err
	}
	return c.printWhole(t, api.One[api.ActionDetail]{Data: a}, a)
}

// printWhole is print for what has no other text than its JSON, indented.
func (c *ActionsCmd) printWhole(t *server.Terminal, object, inner any) error {
	if c.JSON {
		return writeJSON(t.Out, object)
	}
	text, err := json.MarshalIndent(inner, "", "  ")
	if err != nil {
		return err
	}
	return copyJSON(t.Out, append(text, '\n'))
}

// ActionsCreateCmd is `hookglass actions create`.
type ActionsCreateCmd struct {
	File string `arg:"" help:"JSON of the action, as the API takes it: {\"name\": …, \"conditions\": […], \"steps\": […]}; - is standard input."`
}

// maxActionFile bounds the file: the server accepts no longer body.
const maxActionFile = 2 << 20

func (r *ActionsCreateCmd) Run(ctx context.Context, t *server.Terminal, c *ActionsCmd) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	wanted, err := readAction(t, r.File)
	if err != nil {
		return err
	}
	made, err := to.CreateAction(ctx, c.Endpoint, wanted)
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.Action]{Data: made}, "Created action %s: %s\n", made.ID, visible(made.Name))
}

// ActionsUpdateCmd is `hookglass actions update`.
type ActionsUpdateCmd struct {
	Action string `arg:"" help:"Its id or name."`
	File   string `arg:"" help:"JSON of the action, as \"actions get\" prints it and \"actions create\" takes it; - is standard input."`
}

func (r *ActionsUpdateCmd) Run(ctx context.Context, t *server.Terminal, c *ActionsCmd) error {
	wanted, err := readAction(t, r.File)
	if err != nil {
		return err
	}
	at, id, err := c.action(ctx, r.Action)
	if err != nil {
		return err
	}
	now, err := at.UpdateAction(ctx, c.Endpoint, id, api.ActionChange(wanted))
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.Action]{Data: now}, "Changed action %s: %s\n", now.ID, visible(now.Name))
}

// readAction reads an action as the API takes it, or as it answers it, without what only the server sets.
func readAction(t *server.Terminal, file string) (api.NewAction, error) {
	var a struct {
		api.NewAction
		ID         jsontext.Value `json:"id"`
		EndpointID jsontext.Value `json:"endpoint_id"`
		CreatedAt  jsontext.Value `json:"created_at"`
		UpdatedAt  jsontext.Value `json:"updated_at"`
		RecentRuns jsontext.Value `json:"recent_runs"`
	}
	text, err := readInput(t, file, maxActionFile)
	if err != nil {
		return a.NewAction, err
	}
	var whole struct {
		EndpointAction json.RawMessage `json:"endpoint_action"` // the body of the API's operations
		Data           json.RawMessage `json:"data"`            // of their answers, as --json prints them
	}
	if json.Unmarshal(text, &whole) == nil {
		switch {
		case whole.EndpointAction != nil:
			text = whole.EndpointAction
		case whole.Data != nil:
			text = whole.Data
		}
	}
	if err := jsonv2.Unmarshal(text, &a, jsonv2.RejectUnknownMembers(true)); err != nil {
		return a.NewAction, fmt.Errorf("%s is no action: %w", file, err)
	}
	return a.NewAction, nil
}

// ActionsPreviewCmd is `hookglass actions preview`.
type ActionsPreviewCmd struct {
	Action string `arg:"" help:"Its id or name."`
	Event  string `arg:"" help:"The captured event's id, latest, or latest and an event type."`
}

func (r *ActionsPreviewCmd) Run(ctx context.Context, t *server.Terminal, c *ActionsCmd) error {
	from, id, err := c.action(ctx, r.Action)
	if err != nil {
		return err
	}
	if r.Event, err = eventNamed(ctx, from, c.Endpoint, r.Event); err != nil {
		return err
	}
	p, err := from.PreviewAction(ctx, c.Endpoint, id, r.Event)
	if err != nil {
		return err
	}
	return c.printWhole(t, api.One[api.ActionPreview]{Data: p}, p)
}

// ActionsRunCmd is `hookglass actions run`.
type ActionsRunCmd struct {
	Action string `arg:"" help:"Its id or name."`
	Event  string `arg:"" help:"The captured event's id, latest, or latest and an event type."`
}

func (r *ActionsRunCmd) Run(ctx context.Context, t *server.Terminal, c *ActionsCmd) error {
	to, id, err := c.action(ctx, r.Action)
	if err != nil {
		return err
	}
	if r.Event, err = eventNamed(ctx, to, c.Endpoint, r.Event); err != nil {
		return err
	}
	run, err := to.RerunAction(ctx, c.Endpoint, id, r.Event)
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.ActionRun]{Data: run}, "%s is %s; \"hookglass actions runs\" tells how it went.\n", run.ID, run.Status)
}

// ActionsRunsCmd is `hookglass actions runs`.
type ActionsRunsCmd struct {
	Action string  `arg:"" optional:"" help:"Of this action alone, by its id or name."`
	Limit  howMany `default:"25" help:"How many at most, 1 to 100."`
}

func (r *ActionsRunsCmd) Run(ctx context.Context, t *server.Terminal, c *ActionsCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	if r.Action != "" {
		if r.Action, err = actionNamed(ctx, from, c.Endpoint, r.Action); err != nil {
			return err
		}
	}
	list, err := from.ActionRuns(ctx, c.Endpoint, r.Action, client.Page{Limit: int(r.Limit)})
	if err != nil {
		return err
	}
	rows := make([][]string, len(list.Data))
	for i, run := range list.Data {
		rows[i] = []string{run.ID, run.ActionID, run.EventID, run.Status, clock(run.FinishedAt), trouble(run)}
	}
	return c.print(t, list, table([]string{"ID", "ACTION", "EVENT", "STATUS", "FINISHED", "TROUBLE"}, rows))
}

// trouble returns the first error of a run.
func trouble(run api.ActionRun) string {
	for _, s := range run.Steps {
		if s.Error != nil {
			return s.ReferenceKey + ": " + s.Error.Message
		}
	}
	return "-"
}

// ActionsEnableCmd is `hookglass actions enable`.
type ActionsEnableCmd struct {
	Action string `arg:"" help:"Its id or name."`
}

func (r *ActionsEnableCmd) Run(ctx context.Context, t *server.Terminal, c *ActionsCmd) error {
	return c.enable(ctx, t, r.Action, true)
}

// ActionsDisableCmd is `hookglass actions disable`.
type ActionsDisableCmd struct {
	Action string `arg:"" help:"Its id or name."`
}

func (r *ActionsDisableCmd) Run(ctx context.Context, t *server.Terminal, c *ActionsCmd) error {
	return c.enable(ctx, t, r.Action, false)
}

func (c *ActionsCmd) enable(ctx context.Context, t *server.Terminal, word string, enabled bool) error {
	at, id, err := c.action(ctx, word)
	if err != nil {
		return err
	}
	now, err := at.UpdateAction(ctx, c.Endpoint, id, api.ActionChange{Enabled: api.Some(enabled)})
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.Action]{Data: now}, "Action %s is %s.\n", now.ID, enabledWord(now.Enabled))
}

// ActionsDeleteCmd is `hookglass actions delete`.
type ActionsDeleteCmd struct {
	Action string `arg:"" help:"Its id or name."`
}

func (r *ActionsDeleteCmd) Run(ctx context.Context, t *server.Terminal, c *ActionsCmd) error {
	at, id, err := c.action(ctx, r.Action)
	if err != nil {
		return err
	}
	if err := at.DeleteAction(ctx, c.Endpoint, id); err != nil {
		return err
	}
	return c.deleted(t, id)
}
