package action_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/outbound"
)

// A step that names its channel by its name would find none behind a new one: the channel keeps the name, as a tag does,
// also while the step is being added.
func TestAChannelThatAStepNamesKeepsItsName(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		channels := alert.New(b.db, alert.Config{Client: outbound.New(outbound.Config{}), Sealer: b.keys, Log: slog.New(slog.DiscardHandler)})
		create := func(name string) hookglass.Channel {
			kind, url := hookglass.ChannelSlack, "https://hooks.slack.com/services/T0/B0/x"
			c, _, err := channels.CreateChannel(t.Context(), b.who, alert.ChannelDraft{Name: &name, Kind: &kind, Config: &alert.ChannelSettings{WebhookURL: &url}})
			must(t, err)
			return c
		}
		rename := func(c hookglass.Channel, to string) error {
			_, err := channels.UpdateChannel(t.Context(), b.who, c.ID, alert.ChannelDraft{Name: &to})
			return err
		}
		notify := func(name, channel string) action.Draft {
			return draft(name, step("notify", "Ping", `{"channel":"`+channel+`"}`))
		}

		ops := create("ops")
		byID := b.create(notify("by id", ops.ID))
		must(t, rename(ops, "Ops"))
		byName := b.create(notify("by name", "Ops"))
		err := rename(ops, "night shift")
		if !hookglass.Is(err, hookglass.CodeConflict) {
			t.Fatalf("renamed while a step names it: %v", err)
		}
		refs := fmt.Sprint(err.(*hookglass.Error).Extra["references"])
		if !strings.Contains(refs, byName.ID) || !strings.Contains(refs, "step:ping") || strings.Contains(refs, byID.ID) {
			t.Errorf("the references are %s", refs)
		}
		must(t, rename(ops, "Ops"))
		_, err = b.actions.Update(t.Context(), b.who, string(b.ep.ID), byName.ID, notify("by id now", ops.ID))
		must(t, err)
		must(t, rename(ops, "night shift"))

		// The step was stored with another channel of that name.
		left := create("left")
		_, err = b.actions.Update(t.Context(), b.who, string(b.ep.ID), byName.ID, notify("by name", left.Name))
		must(t, err)
		gone, err := channels.DeleteChannel(t.Context(), b.who, left.ID)
		must(t, err)
		if len(gone) != 1 || gone[0].ActionID != byName.ID || gone[0].Step != "ping" || gone[0].EndpointID != b.ep.ID {
			t.Errorf("the steps that a deletion leaves without a channel are %+v", gone)
		}
		if gone, err := channels.DeleteChannel(t.Context(), b.who, ops.ID); err != nil || len(gone) != 1 || gone[0].ActionID != byID.ID {
			t.Errorf("a channel that a step names by its id: %+v, %v", gone, err)
		}
		if gone, err := channels.DeleteChannel(t.Context(), b.who, create("free").ID); err != nil || len(gone) != 0 {
			t.Errorf("a channel that nobody names: %+v, %v", gone, err)
		}
		if err := rename(create(left.Name), "right"); !hookglass.Is(err, hookglass.CodeConflict) {
			t.Errorf("a channel that took the place of another was renamed: %v", err)
		}

		for i := range 20 {
			c := create(fmt.Sprintf("c%d", i))
			var both sync.WaitGroup
			var added hookglass.Action
			var addErr, renameErr error
			both.Go(func() { added, addErr = b.actions.Create(t.Context(), b.who, string(b.ep.ID), notify(c.Name, c.Name)) })
			both.Go(func() { renameErr = rename(c, c.Name+" of old") })
			both.Wait()
			switch {
			case addErr == nil && hookglass.Is(renameErr, hookglass.CodeConflict):
				must(t, b.actions.Delete(t.Context(), b.who, string(b.ep.ID), added.ID))
				must(t, rename(c, c.Name+" of old"))
			case hookglass.Is(addErr, hookglass.CodeValidationFailed) && renameErr == nil:
			default:
				t.Fatalf("added: %v, renamed: %v", addErr, renameErr)
			}
			_, err := channels.DeleteChannel(t.Context(), b.who, c.ID)
			must(t, err)
		}
	})
}
