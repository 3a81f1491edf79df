package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"hookglass/api"
	"hookglass/internal/server"
)

// ChannelsCmd is `hookglass channels`.
type ChannelsCmd struct {
	remote

	List   ChannelsListCmd   `cmd:"" help:"List notification channels, oldest first."`
	Create ChannelsCreateCmd `cmd:"" help:"Create a notification channel, which alerts and actions can tell."`
	Test   ChannelsTestCmd   `cmd:"" help:"Send a message to a notification channel now."`
	Enable ChannelsEnableCmd `cmd:"" help:"Bring back a notification channel that was disabled; what waited for it is not sent."`
	Delete ChannelsDeleteCmd `cmd:"" help:"Delete a notification channel; what waits for it is not sent."`
}

// ChannelsListCmd is `hookglass channels list`.
type ChannelsListCmd struct{}

func (*ChannelsListCmd) Run(ctx context.Context, t *server.Terminal, c *ChannelsCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	all, err := from.NotificationChannels(ctx)
	if err != nil {
		return err
	}
	rows := make([][]string, len(all))
	for i, one := range all {
		rows[i] = []string{one.ID, one.Name, one.Kind, one.State, clock(one.LastDeliveredAt), orDash(cmp.Or(one.Problem, one.LastError))}
	}
	return c.print(t, api.List[api.NotificationChannel]{Data: all}, table([]string{"ID", "NAME", "KIND", "STATE", "LAST DELIVERED", "TROUBLE"}, rows))
}

// ChannelsCreateCmd is `hookglass channels create`.
type ChannelsCreateCmd struct {
	Name     string   `arg:"" help:"A label, unique in its workspace; steps of actions may use it as well as the id."`
	Kind     string   `arg:"" help:"slack, discord, teams, telegram, email or webhook."`
	URL      *string  `name:"url" placeholder:"URL" help:"slack, discord, teams: the incoming webhook; webhook: where messages are posted. - reads it from standard input, since other users can see flags."`
	BotToken *string  `placeholder:"TOKEN" help:"telegram: the bot's token; - reads it from standard input."`
	Chat     *string  `placeholder:"CHAT" help:"telegram: the chat's number, or @name."`
	To       []string `placeholder:"ADDRESS" help:"email: who is written to; may be given again."`
	Secret   *string  `placeholder:"SECRET" help:"webhook: what messages are signed with; - reads it from standard input. One is made, and shown once, where it is left out."`
	Event    []string `placeholder:"TYPE" help:"webhook: activity that is pushed to it, for example alert.triggered; may be given again."`
}

func (r *ChannelsCreateCmd) Run(ctx context.Context, t *server.Terminal, c *ChannelsCmd) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	config, err := r.config(t.In)
	if err != nil {
		return err
	}
	made, err := to.CreateNotificationChannel(ctx, api.NewNotificationChannel{Name: api.Some(r.Name), Kind: api.Some(r.Kind), Config: api.Some(config)})
	if err != nil {
		return err
	}
	return c.print(t, api.One[api.NotificationChannel]{Data: made}, func(w io.Writer) {
		fmt.Fprintf(w, "Created channel %s: %s\n", made.ID, visible(made.Name))
		if made.Secret != "" {
			fmt.Fprintf(w, "Messages are signed with %s, which is not shown again.\n", made.Secret)
		}
		if made.Problem != nil {
			fmt.Fprintln(w, visible(*made.Problem))
		}
	})
}

func (r *ChannelsCreateCmd) config(stdin io.Reader) (s api.ChannelSettings, err error) {
	lines := bufio.NewScanner(stdin)
	for _, credential := range []*string{r.URL, r.BotToken, r.Secret} {
		if credential != nil && *credential == "-" {
			if !lines.Scan() {
				return s, outcome{exitUsage, "nothing came on standard input"}
			}
			*credential = strings.TrimSpace(lines.Text())
		}
		if credential != nil && !utf8.ValidString(*credential) { // JSON could not express it
			return s, outcome{exitUsage, "an address, token or secret must be text in UTF-8"}
		}
	}
	s.BotToken, s.Secret = api.Maybe(r.BotToken), api.Maybe(r.Secret)
	if s.WebhookURL = api.Maybe(r.URL); r.Kind == "webhook" {
		s.URL, s.WebhookURL = s.WebhookURL, s.URL
	}
	if r.Chat != nil {
		s.ChatID = api.Some(api.ChatID(*r.Chat))
	}
	if len(r.To) > 0 {
		s.To = api.Some(r.To)
	}
	if len(r.Event) > 0 {
		s.Events = api.Some(r.Event)
	}
	return s, nil
}

// ChannelsTestCmd is `hookglass channels test`.
type ChannelsTestCmd struct {
	Channel string `arg:"" help:"Its id or name."`
}

func (r *ChannelsTestCmd) Run(ctx context.Context, t *server.Terminal, c *ChannelsCmd) error {
	to, id, err := c.channel(ctx, r.Channel)
	if err != nil {
		return err
	}
	sent, err := to.TestNotificationChannel(ctx, id)
	if err != nil {
		return err
	}
	trouble := ""
	switch {
	case sent.Error != nil:
		trouble = visible(sent.Error.Message)
	case !sent.Delivered && sent.StatusCode != nil:
		trouble = fmt.Sprintf("the channel answered %d", *sent.StatusCode)
	}
	err = c.print(t, api.One[api.ChannelTest]{Data: sent}, func(w io.Writer) {
		if sent.Delivered {
			fmt.Fprintln(w, strings.TrimSpace("The message was taken. "+trouble))
		}
	})
	if err == nil && !sent.Delivered {
		return outcome{exitFailed, "the message was not delivered: " + trouble}
	}
	return err
}

// ChannelsEnableCmd is `hookglass channels enable`.
type ChannelsEnableCmd struct {
	Channel string `arg:"" help:"Its id or name."`
}

func (r *ChannelsEnableCmd) Run(ctx context.Context, t *server.Terminal, c *ChannelsCmd) error {
	at, id, err := c.channel(ctx, r.Channel)
	if err != nil {
		return err
	}
	now, err := at.UpdateNotificationChannel(ctx, id, api.NotificationChannelChange{Enabled: api.Some(true)})
	if err != nil {
		return err
	}
	return c.say(t, api.One[api.NotificationChannel]{Data: now}, "Channel %s is %s.\n", now.ID, now.State)
}

// ChannelsDeleteCmd is `hookglass channels delete`.
type ChannelsDeleteCmd struct {
	Channel string `arg:"" help:"Its id or name."`
}

func (r *ChannelsDeleteCmd) Run(ctx context.Context, t *server.Terminal, c *ChannelsCmd) error {
	at, id, err := c.channel(ctx, r.Channel)
	if err != nil {
		return err
	}
	gone, err := at.DeleteNotificationChannel(ctx, id)
	if err != nil {
		return err
	}
	return c.print(t, api.One[api.DeletedChannel]{Data: gone}, func(w io.Writer) {
		fmt.Fprintf(w, "Deleted %s.\n", gone.ID)
		for _, r := range gone.References {
			fmt.Fprintf(w, "Step %s of action %s (%s) of endpoint %s names it, and fails from now on.\n", r.Step, visible(r.ActionName), r.ActionID, r.EndpointID)
		}
	})
}
