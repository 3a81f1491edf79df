package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// RequestsReleaseCmd is `hookglass requests release`.
type RequestsReleaseCmd struct {
	Event string   `arg:"" help:"The mail's id, or latest."`
	To    []string `sep:"," required:"" placeholder:"ADDRESS" help:"Whom it goes to; may be given again. The server's operator says who that may be, with --release-to."`
}

// Help implements kong.HelpProvider.
func (c *RequestsReleaseCmd) Help() string {
	return `The mail goes out as it was caught. Examples:

  hookglass requests release latest -e ep_… --to dev@example.com
  hookglass requests releases latest -e ep_…`
}

// Run implements the command. It fails if the mail was not sent, or if that is unknown.
func (c *RequestsReleaseCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	at, event, err := r.event(ctx, c.Event)
	if err != nil {
		return err
	}
	made, err := at.ReleaseMail(ctx, r.Endpoint, event, c.To)
	if err != nil {
		return err
	}
	err = r.print(t, api.One[api.Release]{Data: made}, func(w io.Writer) {
		if made.Status != string(hookglass.ReleaseSent) {
			return
		}
		fmt.Fprintf(w, "Sent %s to %s. The relay said: %s\n", made.EventID, visible(strings.Join(made.To, ", ")), relaySaid(made))
	})
	if err == nil && made.Status != string(hookglass.ReleaseSent) {
		err = errors.New(made.Status + ": it has not ended")
		if made.Error != nil {
			err = fmt.Errorf("%s: %s", made.Status, visible(made.Error.Message))
		}
		if made.RelayMessage != nil {
			err = fmt.Errorf("%w The relay said: %s", err, relaySaid(made))
		}
	}
	return err
}

// relaySaid returns the relay's answer, or a dash.
func relaySaid(r api.Release) string {
	if r.RelayCode == nil {
		return "-"
	}
	return strings.TrimSpace(strconv.Itoa(*r.RelayCode) + " " + visible(deref(r.RelayMessage)))
}

// RequestsReleasesCmd is `hookglass requests releases`.
type RequestsReleasesCmd struct {
	Event string `arg:"" help:"The mail's id, or latest."`
}

func (c *RequestsReleasesCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	from, event, err := r.event(ctx, c.Event)
	if err != nil {
		return err
	}
	all, err := everything(func(page client.Page) (api.List[api.Release], error) {
		return from.Releases(ctx, r.Endpoint, event, page)
	})
	if err != nil {
		return err
	}
	rows := make([][]string, len(all))
	for i, release := range all {
		rows[i] = []string{clock(&release.CreatedAt), release.ID, release.Status, strings.Join(release.To, ", "), relaySaid(release)}
	}
	return r.print(t, api.List[api.Release]{Data: all}, table([]string{"TIME", "ID", "STATUS", "TO", "RELAY"}, rows))
}
