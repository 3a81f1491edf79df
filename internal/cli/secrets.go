package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// SecretsCmd is `hookglass secrets`.
type SecretsCmd struct {
	remote
	Workspace *int64 `placeholder:"ID" help:"Whose secrets (default: the only workspace that the token sees)."`

	List   SecretsListCmd   `cmd:"" help:"List the secrets that steps of actions can name, oldest first. Their values are shown to nobody."`
	Set    SecretsSetCmd    `cmd:"" help:"Create a secret, or give it another value, from standard input or a file."`
	Delete SecretsDeleteCmd `cmd:"" help:"Delete a secret that no step names."`
}

// at connects, and finds the workspace.
func (c *SecretsCmd) at(ctx context.Context) (at *client.Client, workspace int64, err error) {
	if at, _, err = c.connect(); err != nil {
		return nil, 0, err
	}
	if c.Workspace != nil {
		return at, *c.Workspace, nil
	}
	workspace, err = onlyWorkspace(ctx, at)
	return at, workspace, err
}

// onlyWorkspace returns the workspace if the token sees only one. It does not guess among several: a secret in the
// wrong one would not be found by any step.
func onlyWorkspace(ctx context.Context, from *client.Client) (int64, error) {
	endpoints, err := from.Endpoints(ctx)
	if err != nil {
		return 0, err
	}
	var ids []int64
	for _, e := range endpoints {
		if e.WorkspaceID != nil && !slices.Contains(ids, *e.WorkspaceID) {
			ids = append(ids, *e.WorkspaceID)
		}
	}
	switch len(ids) {
	case 0:
		return 0, outcome{exitUsage, "there is no endpoint whose workspace could be meant: name one with --workspace"}
	case 1:
		return ids[0], nil
	}
	slices.Sort(ids)
	return 0, outcome{exitUsage, "there are endpoints in several workspaces: name one with --workspace, of " + strings.Trim(fmt.Sprint(ids), "[]")}
}

// named returns the secret with a name or id. If there is none, its id is empty.
func (c *SecretsCmd) named(ctx context.Context, word string) (at *client.Client, workspace int64, secret api.ActionSecret, err error) {
	at, workspace, err = c.at(ctx)
	if err != nil {
		return at, workspace, secret, err
	}
	all, err := at.ActionSecrets(ctx, workspace)
	if i := slices.IndexFunc(all, func(s api.ActionSecret) bool { return s.Name == word || s.ID == word }); i >= 0 {
		secret = all[i]
	}
	return at, workspace, secret, err
}

// SecretsListCmd is `hookglass secrets list`.
type SecretsListCmd struct{}

func (*SecretsListCmd) Run(ctx context.Context, t *server.Terminal, c *SecretsCmd) error {
	from, workspace, err := c.at(ctx)
	if err != nil {
		return err
	}
	all, err := from.ActionSecrets(ctx, workspace)
	if err != nil {
		return err
	}
	rows := make([][]string, len(all))
	for i, s := range all {
		rows[i] = []string{s.ID, s.Name, clock(&s.UpdatedAt), clock(s.LastUsedAt), orDash(s.Description)}
	}
	return c.print(t, api.List[api.ActionSecret]{Data: all}, table([]string{"ID", "NAME", "CHANGED", "LAST USED", "DESCRIPTION"}, rows))
}

// SecretsSetCmd is `hookglass secrets set`.
type SecretsSetCmd struct {
	Name        string  `arg:"" placeholder:"SECRET_NAME" help:"What templates name it by: {{ secrets.NAME }}. 1 to 64 of A-Z, a-z, 0-9 and underscore, beginning with a letter."`
	ValueFile   string  `default:"-" placeholder:"FILE" help:"Where the value stands, without the line end behind it; default: standard input."`
	Description *string `placeholder:"TEXT" help:"For people; none clears it."`
}

// Help implements kong.HelpProvider.
func (*SecretsSetCmd) Help() string {
	return `Examples:

  hookglass secrets set CRM_TOKEN < crm.token
  pass show crm | hookglass secrets set CRM_TOKEN --description "The CRM's API token"
  hookglass secrets set CRM_TOKEN --value-file crm.token

The value is never a word of the command, which other users can see, and nothing shows it again.`
}

// maxSecret bounds the input for a value. The server accepts less.
const maxSecret = 1 << 16

func (r *SecretsSetCmd) Run(ctx context.Context, t *server.Terminal, c *SecretsCmd) error {
	if r.ValueFile == "-" && isTerminal(t.In) {
		return outcome{exitUsage, "what is typed would be seen: direct the value into the command, or name a file with --value-file"}
	}
	to, workspace, there, err := c.named(ctx, r.Name)
	if err != nil {
		return err
	}
	text, err := readInput(t, r.ValueFile, maxSecret)
	if err != nil {
		return err
	}
	value := strings.TrimRight(string(text), "\r\n")
	switch {
	case value == "":
		return outcome{exitUsage, "there is no value in what was given"}
	case !utf8.ValidString(value): // JSON could not express it
		return outcome{exitUsage, "a secret must be text in UTF-8"}
	}
	done := "Changed"
	if there.ID == "" {
		done = "Created"
		there, err = to.CreateActionSecret(ctx, workspace, api.NewActionSecret{Name: api.Some(r.Name), SecretValue: api.Some(value), Description: clearable(r.Description)})
	} else {
		there, err = to.UpdateActionSecret(ctx, workspace, there.ID, api.ActionSecretChange{SecretValue: api.Some(value), Description: clearable(r.Description)})
	}
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.ActionSecret]{Data: there}, "%s secret %s: steps of actions name it as {{ secrets.%[2]s }}\n", done, there.Name)
}

// SecretsDeleteCmd is `hookglass secrets delete`.
type SecretsDeleteCmd struct {
	Name string `arg:"" placeholder:"SECRET_NAME" help:"Its name or id."`
}

func (r *SecretsDeleteCmd) Run(ctx context.Context, t *server.Terminal, c *SecretsCmd) error {
	at, workspace, there, err := c.named(ctx, r.Name)
	if err != nil {
		return err
	}
	if there.ID == "" {
		return outcome{exitFailed, fmt.Sprintf("there is no such secret in workspace %d", workspace)}
	}
	if err := at.DeleteActionSecret(ctx, workspace, there.ID); err != nil {
		return err
	}
	return c.say(t, api.One[api.Deleted]{Data: api.Deleted{ID: there.ID, Deleted: true}}, "Deleted secret %s.\n", there.Name)
}

// secretNames returns the names of the secrets in the current token's workspace.
func secretNames(ctx context.Context) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	of := SecretsCmd{remote: remote{Server: os.Getenv("HOOKGLASS_SERVER"), Token: os.Getenv("HOOKGLASS_TOKEN")}}
	from, workspace, err := of.at(ctx)
	if err != nil {
		return nil
	}
	all, err := from.ActionSecrets(ctx, workspace)
	if err != nil {
		return nil
	}
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}
