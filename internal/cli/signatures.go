package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// SignaturesCmd is `hookglass signatures`.
type SignaturesCmd struct {
	remote
	ofEndpoint

	List   SignaturesListCmd   `cmd:"" help:"List whose signatures are checked, oldest first."`
	Set    SignaturesSetCmd    `cmd:"" help:"Give an endpoint the secret that a provider signs with, or another one."`
	Check  SignaturesCheckCmd  `cmd:"" help:"Judge the newest captured events again, 1,000 at most."`
	Delete SignaturesDeleteCmd `cmd:"" help:"Stop checking the signatures of a provider."`
}

// SignaturesListCmd is `hookglass signatures list`.
type SignaturesListCmd struct{}

func (*SignaturesListCmd) Run(ctx context.Context, t *server.Terminal, c *SignaturesCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	all, err := from.SignatureConfigs(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	rows := make([][]string, len(all))
	for i, one := range all {
		rows[i] = []string{strconv.FormatInt(one.ID, 10), one.Provider, strconv.FormatBool(one.Enabled), clock(&one.UpdatedAt)}
	}
	return c.print(t, api.List[api.SignatureConfig]{Data: all}, table([]string{"ID", "PROVIDER", "ENABLED", "CHANGED"}, rows))
}

// SignaturesSetCmd is `hookglass signatures set`.
type SignaturesSetCmd struct {
	Provider     string `arg:"" help:"github, stripe, shopify, slack, twilio, or another whose signatures can be checked."`
	Secret       string `required:"" placeholder:"SECRET" help:"As the provider shows it; - reads it from standard input, since other users can see flags."`
	KeepPrevious bool   `help:"The secrets before it stay valid, while the provider changes over."`
}

// Help implements kong.HelpProvider.
func (*SignaturesSetCmd) Help() string {
	return `Examples:

  hookglass signatures set stripe -e payments --secret - < stripe.secret
  hookglass signatures set github -e ep_… --secret "$GITHUB_SECRET" --keep-previous

What is signed by a description of one's own (generic_hmac) is set over the API or in an endpoints file.`
}

func (s *SignaturesSetCmd) Run(ctx context.Context, t *server.Terminal, c *SignaturesCmd) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	if s.Secret, err = secretOf(t, s.Secret); err != nil {
		return err
	}
	if !utf8.ValidString(s.Secret) { // JSON could not express it
		return outcome{exitUsage, "a secret must be text in UTF-8"}
	}
	set, err := s.set(ctx, to, c.Endpoint)
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.SignatureConfig]{Data: set}, "Signatures of %s are checked from now on. Events that came before: hookglass signatures check %[1]s -e %s\n", visible(set.Provider), visible(c.Endpoint))
}

// secretOf returns the value of a flag, or standard input if that is a dash.
func secretOf(t *server.Terminal, flag string) (string, error) {
	if flag != "-" {
		return flag, nil
	}
	text, err := readInput(t, flag, 1<<16)
	value := strings.TrimRight(string(text), "\r\n")
	if err == nil && value == "" { // it would count as no flag: what is to be signed would go unsigned
		err = outcome{exitUsage, "nothing came on standard input"}
	}
	return value, err
}

// set updates the config of the provider, or creates it.
func (s *SignaturesSetCmd) set(ctx context.Context, to *client.Client, endpoint string) (api.SignatureConfig, error) {
	there, err := configOf(ctx, to, endpoint, s.Provider)
	if err != nil {
		return there, err
	}
	if there.ID == 0 {
		return to.CreateSignatureConfig(ctx, endpoint, api.NewSignatureConfig{Provider: api.Some(s.Provider), Secret: api.Some(s.Secret)})
	}
	return to.UpdateSignatureConfig(ctx, endpoint, there.ID, api.SignatureConfigChange{Secret: api.Some(s.Secret), KeepPrevious: api.Some(s.KeepPrevious), Enabled: api.Some(true)})
}

// configOf returns the endpoint's config of a provider, with id 0 if there is none.
func configOf(ctx context.Context, from *client.Client, endpoint, provider string) (api.SignatureConfig, error) {
	all, err := from.SignatureConfigs(ctx, endpoint)
	for _, one := range all {
		if one.Provider == provider {
			return one, err
		}
	}
	return api.SignatureConfig{}, err
}

// existing connects and returns the existing config of a provider.
func (c *SignaturesCmd) existing(ctx context.Context, provider string) (at *client.Client, there api.SignatureConfig, err error) {
	if at, _, err = c.connect(); err != nil {
		return nil, there, err
	}
	there, err = configOf(ctx, at, c.Endpoint, provider)
	if err == nil && there.ID == 0 {
		err = outcome{exitFailed, fmt.Sprintf("signatures of %s are not checked here; \"hookglass signatures set\" gives the secret", provider)}
	}
	return at, there, err
}

// SignaturesCheckCmd is `hookglass signatures check`.
type SignaturesCheckCmd struct {
	Provider string `arg:"" help:"Whose."`
}

func (s *SignaturesCheckCmd) Run(ctx context.Context, t *server.Terminal, c *SignaturesCmd) error {
	at, config, err := c.existing(ctx, s.Provider)
	if err != nil {
		return err
	}
	r, err := at.VerifySignatureConfig(ctx, c.Endpoint, config.ID)
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.Rejudged]{Data: r}, "%s: %d verified, %d failed, %d unchecked; %d changed.\n", plural(r.Checked, "event", "events"), r.Verified, r.Failed, r.Unchecked, r.Changed)
}

// SignaturesDeleteCmd is `hookglass signatures delete`.
type SignaturesDeleteCmd struct {
	Provider string `arg:"" help:"Whose."`
}

func (s *SignaturesDeleteCmd) Run(ctx context.Context, t *server.Terminal, c *SignaturesCmd) error {
	at, config, err := c.existing(ctx, s.Provider)
	if err != nil {
		return err
	}
	if err := at.DeleteSignatureConfig(ctx, c.Endpoint, config.ID); err != nil {
		return err
	}
	return c.say(t, api.One[api.DeletedNumber]{Data: api.DeletedNumber{ID: config.ID, Deleted: true}}, "Signatures of %s are checked no more.\n", visible(s.Provider))
}
