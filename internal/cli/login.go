package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"hookglass/client"
	"hookglass/internal/server"
)

// LoginCmd is `hookglass login`.
type LoginCmd struct{ remote }

// Run implements the command. The token is tried before it is kept.
func (c *LoginCmd) Run(ctx context.Context, t *server.Terminal) error {
	if c.Token == "" {
		return errors.New("give the token, from the server's settings page or \"hookglass admin token create\", by HOOKGLASS_TOKEN or --token")
	}
	if c.Server == "" {
		c.Server = defaultServer
	}
	to, err := client.New(c.Server, c.Token)
	if err != nil {
		return err
	}
	who, err := to.Verify(ctx)
	if err != nil {
		return err
	}
	path, err := credentials{c.Server, c.Token}.save()
	if err != nil {
		return err
	}
	return c.print(t, map[string]any{"user": who.User, "account": who.Account, "server": c.Server}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Signed in to %s as %s (account %s). The token is kept in %s.\n", c.Server, who.User.Email, visible(who.Account.Name), path)
		return err
	})
}

// LogoutCmd is `hookglass logout`.
type LogoutCmd struct{}

// Run implements the command.
func (c *LogoutCmd) Run(t *server.Terminal) error {
	path, err := credentialsPath()
	if err != nil {
		return err
	}
	switch err := os.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		_, err = fmt.Fprintln(t.Out, "You were not signed in.")
		return err
	case err != nil:
		return err
	}
	_, err = fmt.Fprintln(t.Out, "Signed out. The token stays valid until it is revoked.")
	return err
}

// WhoamiCmd is `hookglass whoami`.
type WhoamiCmd struct{ remote }

// Run implements the command.
func (c *WhoamiCmd) Run(ctx context.Context, t *server.Terminal) error {
	to, address, err := c.connect()
	if err != nil {
		return err
	}
	who, err := to.Verify(ctx)
	if err != nil {
		return err
	}
	return c.print(t, map[string]any{"user": who.User, "account": who.Account, "server": address}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s, account %s (%s), at %s\n", who.User.Email, visible(who.Account.Name), who.Account.Plan, address)
		return err
	})
}
