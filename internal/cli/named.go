package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
)

// called says what a thing of a list is called by who types.
type called struct{ id, name string }

func calledOf[T any](all []T, of func(T) called) []called {
	named := make([]called, len(all))
	for i, one := range all {
		named[i] = of(one)
	}
	return named
}

// idOf returns the id of the one thing that is called word, and "" when nothing is. Where several are, it names their
// ids.
func idOf(word, things string, all []called) (string, error) {
	var ids []string
	for _, one := range all {
		if one.name == word {
			ids = append(ids, one.id)
		}
	}
	switch len(ids) {
	case 0:
		return "", nil
	case 1:
		return ids[0], nil
	}
	return "", outcome{exitFailed, fmt.Sprintf("%s are called %s; name one by its id: %s", things, visible(word), strings.Join(ids, ", "))}
}

// idNamed returns the id of what is given by an id with a prefix, or by its name. What nothing is called is returned as
// it is: the server refuses it.
func idNamed(prefix, word, things string, list func() ([]called, error)) (string, error) {
	if strings.HasPrefix(word, prefix+"_") {
		return word, nil
	}
	all, err := list()
	if err != nil {
		return "", err
	}
	id, err := idOf(word, things, all)
	if id == "" && err == nil {
		return word, nil
	}
	return id, err
}

// numberNamed returns the id of what is given by its number, or else by its name.
func numberNamed(word, thing, things string, list func() ([]called, error)) (int64, error) {
	if id, err := strconv.ParseInt(word, 10, 64); err == nil {
		return id, nil
	}
	all, err := list()
	if err != nil {
		return 0, err
	}
	id, err := idOf(word, things, all)
	if err != nil {
		return 0, err
	}
	if id == "" {
		return 0, outcome{exitFailed, fmt.Sprintf("there is no %s %s", thing, visible(word))}
	}
	return strconv.ParseInt(id, 10, 64)
}

// channelNamed returns the id of a channel given by its id or name, as in steps of actions.
func channelNamed(ctx context.Context, from *client.Client, word string) (string, error) {
	return idNamed(hookglass.PrefixChannel, word, "channels of several workspaces", func() ([]called, error) {
		all, err := from.NotificationChannels(ctx)
		return calledOf(all, func(one api.NotificationChannel) called { return called{one.ID, one.Name} }), err
	})
}

// actionNamed returns the id of an action of an endpoint given by its id or name.
func actionNamed(ctx context.Context, from *client.Client, endpoint, word string) (string, error) {
	return idNamed(hookglass.PrefixAction, word, "several actions", func() ([]called, error) {
		all, err := from.Actions(ctx, endpoint)
		return calledOf(all, func(one api.Action) called { return called{one.ID, one.Name} }), err
	})
}

// channel connects, and returns the id of a channel given by its id or name.
func (c *ChannelsCmd) channel(ctx context.Context, word string) (at *client.Client, id string, err error) {
	if at, _, err = c.connect(); err != nil {
		return nil, "", err
	}
	id, err = channelNamed(ctx, at, word)
	return at, id, err
}

// action connects, and returns the id of an action given by its id or name.
func (c *ActionsCmd) action(ctx context.Context, word string) (at *client.Client, id string, err error) {
	if at, _, err = c.connect(); err != nil {
		return nil, "", err
	}
	id, err = actionNamed(ctx, at, c.Endpoint, word)
	return at, id, err
}

// alert connects, and returns the id of an alert given by its id or name.
func (c *AlertsCmd) alert(ctx context.Context, word string) (at *client.Client, id string, err error) {
	if at, _, err = c.connect(); err != nil {
		return nil, "", err
	}
	id, err = idNamed(hookglass.PrefixAlert, word, "several alerts", func() ([]called, error) {
		all, err := at.Alerts(ctx, c.Endpoint)
		return calledOf(all, func(one api.Alert) called { return called{one.ID, one.Name} }), err
	})
	return at, id, err
}

// target connects, and returns the id of a forwarding target given by its id or name.
func (c *TargetsCmd) target(ctx context.Context, word string) (at *client.Client, id int64, err error) {
	if at, _, err = c.connect(); err != nil {
		return nil, 0, err
	}
	id, err = numberNamed(word, "forwarding target", "several forwarding targets", func() ([]called, error) {
		all, err := at.ForwardingTargets(ctx, c.Endpoint)
		return calledOf(all, func(one api.ForwardingTarget) called { return called{strconv.FormatInt(one.ID, 10), one.Name} }), err
	})
	return at, id, err
}

// tag connects, and returns the id of a tag given by its id or name.
func (c *TagsCmd) tag(ctx context.Context, word string) (at *client.Client, id int64, err error) {
	if at, _, err = c.connect(); err != nil {
		return nil, 0, err
	}
	id, err = numberNamed(word, "tag", "tags of several workspaces", func() ([]called, error) {
		all, err := at.Tags(ctx)
		return calledOf(all, func(one api.Tag) called { return called{strconv.FormatInt(one.ID, 10), one.Name} }), err
	})
	return at, id, err
}
