package capture

import (
	"context"
	"slices"
	"strings"

	"hookglass"
	"hookglass/internal/store"
)

// Tag adds a tag to an event, creating it if the workspace does not have it, and returns the event's tags.
func (s *Service) Tag(ctx context.Context, who hookglass.Principal, ref, eventID, tag string) (tags []string, err error) {
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		tags, err = tx.TagEvent(ref, eventID, tag)
		return err
	})
	return tags, err
}

// Untag removes a tag from an event, if it has it, and returns the event's tags.
func (s *Service) Untag(ctx context.Context, who hookglass.Principal, ref, eventID, tag string) (tags []string, err error) {
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		tags, err = tx.UntagEvent(ref, eventID, tag)
		return err
	})
	return tags, err
}

// SetNote replaces the note on an event; "" removes it. It answers validation_failed for what [hookglass.Note] refuses.
func (s *Service) SetNote(ctx context.Context, who hookglass.Principal, ref, eventID, note string) error {
	note, err := hookglass.Note(note)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.SetNote(ref, eventID, note) })
}

// Ignore hides an event from lists and health figures for one of [hookglass.IgnoreReasons]; "" is the first. It answers
// validation_failed for any other reason.
func (s *Service) Ignore(ctx context.Context, who hookglass.Principal, ref, eventID, reason string) error {
	if reason == "" {
		reason = hookglass.IgnoreReasons[0]
	}
	if !slices.Contains(hookglass.IgnoreReasons, reason) {
		return hookglass.Invalid("reason", "must be one of %s", strings.Join(hookglass.IgnoreReasons, ", "))
	}
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.SetIgnored(ref, eventID, reason) })
}

// Unignore undoes Ignore.
func (s *Service) Unignore(ctx context.Context, who hookglass.Principal, ref, eventID string) error {
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.SetIgnored(ref, eventID, "") })
}
