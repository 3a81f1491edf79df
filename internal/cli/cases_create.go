package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"hookglass/api"
	"hookglass/internal/server"
)

// CasesCreateCmd is `hookglass cases create`.
type CasesCreateCmd struct {
	Event     string `arg:"" help:"The event that it sends: its id, latest, or latest and an event type."`
	Name      string `arg:"" help:"A label for people, such as: An invoice is paid."`
	To        string `required:"" placeholder:"URL" help:"Where runs on the server send it, or the word tunnel."`
	Status    string `placeholder:"STATUS" help:"What the answer must be: a class as 2xx, or a code as 201 (default: 2xx, where --json-subset is not given)."`
	Subset    string `name:"json-subset" placeholder:"FILE" help:"A JSON object that the answer must contain; - is standard input."`
	Identity  string `enum:"original,regenerate" default:"original" help:"original or regenerate."`
	Signature string `enum:"preserve,strip,resign" default:"preserve" help:"preserve, strip or resign."`
}

// Help implements kong.HelpProvider.
func (r *CasesCreateCmd) Help() string {
	return `Examples:

  hookglass cases create 'latest invoice.paid' 'An invoice is paid' -e payments --to https://staging.example.com/webhooks
  echo '{"order":{"paid":true}}' | hookglass cases create req_… 'An order is paid' -e payments --to tunnel --status 200 --json-subset -

"hookglass cases pull" writes it to a file.`
}

// assertions returns the assertions of the flags.
func (r *CasesCreateCmd) assertions(t *server.Terminal) (a api.Assertions, err error) {
	status := r.Status
	if status == "" && r.Subset == "" {
		status = "2xx"
	}
	if code, err := strconv.Atoi(status); err == nil {
		a.Status = &api.StatusAssertion{Code: &code}
	} else if len(status) == 3 && status[0] >= '1' && status[0] <= '5' && status[1:] == "xx" {
		a.Status = &api.StatusAssertion{Class: &status}
	} else if status != "" {
		return a, errors.New("--status must be a class as 2xx, or a code as 201")
	}
	if r.Subset != "" {
		text, err := readInput(t, r.Subset, maxOverride)
		if err != nil {
			return a, err
		}
		if !json.Valid(text) {
			return a, fmt.Errorf("%s is no JSON", r.Subset)
		}
		a.JSONSubset = api.JSONObject(text)
	}
	return a, nil
}

func (r *CasesCreateCmd) Run(ctx context.Context, t *server.Terminal, c *CasesCmd) error {
	wanted, err := r.assertions(t)
	if err != nil {
		return outcome{exitUsage, err.Error()}
	}
	to, err := c.endpoint()
	if err != nil {
		return err
	}
	event, err := eventNamed(ctx, to, c.Endpoint, r.Event)
	if err != nil {
		return err
	}
	made, err := to.CreateReplayCase(ctx, c.Endpoint, api.NewReplayCase{
		SourceID: api.Some(event), Name: api.Some(r.Name), TargetURL: api.Some(r.To), Assertions: api.Some(wanted),
		Options: api.Some(api.CaseOptions{IdentityMode: r.Identity, SignatureMode: r.Signature}),
	})
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.ReplayCase]{Data: made}, "Created case %s: %s\n", made.ID, visible(made.Name))
}
