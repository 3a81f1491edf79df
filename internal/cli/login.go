package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"hookglass/client"
	"hookglass/internal/server"
)

// LoginCmd is `hookglass login`.
type LoginCmd struct {
	remote
	NoBrowser bool          `help:"Open no browser: type the code that a browser anywhere shows."`
	Wait      time.Duration `default:"5m" help:"How long to wait for the browser."`
}

// Help implements kong.HelpProvider.
func (c *LoginCmd) Help() string {
	return `A browser opens and asks whether this command line may sign in. Where there is none, --no-browser takes a code, and --token or
HOOKGLASS_TOKEN a token, from the web app or from "hookglass admin token create"; --token - reads it from standard input.`
}

// AfterApply implements kong.AfterApply. An empty --token is an unset variable, and does not mean the browser.
func (c *LoginCmd) AfterApply(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Flag != nil && p.Flag.Name == "token" && c.Token == "" {
			return errors.New("--token is empty")
		}
	}
	return nil
}

// Run implements the command. It tries the token before storing it.
func (c *LoginCmd) Run(ctx context.Context, t *server.Terminal) error {
	c.fillServer()
	nobody, err := client.New(c.Server, "")
	if err != nil {
		return outcome{exitUsage, err.Error()}
	}
	switch {
	case c.Token != "":
		c.Token, err = secretOf(t, c.Token)
	case c.NoBrowser:
		c.Token, err = c.byCode(ctx, t, nobody)
	default:
		c.Token, err = c.byBrowser(ctx, t)
	}
	if err != nil {
		return err
	}
	somebody, err := client.New(c.Server, c.Token)
	if err != nil {
		return outcome{exitUsage, err.Error()}
	}
	who, err := somebody.Verify(ctx)
	if err != nil {
		return err
	}
	path, err := credentials{c.Server, c.Token}.save()
	if err != nil {
		return err
	}
	return c.say(t, map[string]any{"user": who.User, "account": who.Account, "server": c.Server}, "Signed in to %s as %s (account %s). The token is kept in %s.\n", c.Server, who.User.Email, visible(who.Account.Name), path)
}

// fillServer uses the server of the last login if none is named, as other commands do. Unreadable credentials do not
// prevent signing in again.
func (c *LoginCmd) fillServer() {
	if c.Server == "" {
		saved, _ := loadCredentials()
		c.Server = cmp.Or(saved.Server, defaultServer)
	}
}

// LogoutCmd is `hookglass logout`.
type LogoutCmd struct {
	JSON bool `name:"json" help:"Print one JSON object instead of text."`
}

func (c *LogoutCmd) Run(t *server.Terminal) error {
	path, err := credentialsPath()
	if err != nil {
		return err
	}
	err = os.Remove(path)
	was := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := "You were not signed in."
	if was {
		text = "Signed out. The token stays valid until it is revoked."
	}
	if c.JSON {
		text = fmt.Sprintf(`{"signed_out":%t}`, was)
	}
	_, err = fmt.Fprintln(t.Out, text)
	return err
}

// WhoamiCmd is `hookglass whoami`.
type WhoamiCmd struct{ remote }

func (c *WhoamiCmd) Run(ctx context.Context, t *server.Terminal) error {
	to, address, err := c.connect()
	if err != nil {
		return err
	}
	who, err := to.Verify(ctx)
	if err != nil {
		return err
	}
	return c.say(t, map[string]any{"user": who.User, "account": who.Account, "server": address}, "%s, account %s (%s), at %s\n", who.User.Email, visible(who.Account.Name), who.Account.Plan, address)
}
