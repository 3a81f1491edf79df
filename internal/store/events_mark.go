package store

import (
	"slices"

	"hookglass"
)

// SetIgnored hides an event from lists for a reason; an empty reason shows it again. It answers not_found.
func (tx *Tx) SetIgnored(ref, id, reason string) error {
	log, e, err := tx.eventIn(ref, id, tx.dialect.forUpdate())
	if err != nil || e.Ignored == reason {
		return err
	}
	if _, err := tx.exec("UPDATE events SET ignored = $2 WHERE seq = $1", e.Seq, nullString(reason)); err != nil {
		return err
	}
	tx.Announce(TopicEvents(log.endpoint.Num))
	marked := *e
	marked.Ignored = reason
	if err := tx.recount(changed{e, &marked}); err != nil {
		return err
	}
	if (e.Ignored == "") == (reason == "") {
		return nil
	}
	_, floor, err := tx.lockStats(log)
	if err != nil {
		return err
	}
	if e.Seq <= floor {
		return hookglass.NotFound("request") // deleted meanwhile with all others
	}
	change := 1
	if reason == "" {
		change = -1
	}
	_, err = tx.exec("UPDATE endpoint_stats SET ignored_count = ignored_count + cast($2 AS bigint) WHERE endpoint = $1", log.endpoint.Num, change)
	return err
}

// SetNote replaces the note on an event; "" removes it. It answers not_found.
func (tx *Tx) SetNote(ref, id, note string) error {
	log, e, err := tx.eventIn(ref, id, tx.dialect.forUpdate())
	if err != nil || e.Note == note {
		return err
	}
	tx.Announce(TopicEvents(log.endpoint.Num))
	_, err = tx.exec("UPDATE events SET note = $2 WHERE seq = $1", e.Seq, nullString(encodeText(note)))
	return err
}

// TagEvent adds a tag to an event and returns all its tags, sorted. It creates the tag if the workspace does not have
// it. It answers not_found, and validation_failed for an invalid tag or one too many.
func (tx *Tx) TagEvent(ref, id, tag string) ([]string, error) {
	if !hookglass.ValidTag(tag) {
		return nil, hookglass.Invalid("tag", "must have 1 to %d printable characters, and no space around them", hookglass.MaxTagLength)
	}
	return tx.changeTags(ref, id, func(log eventLog, tags []string) ([]string, error) {
		at, found := slices.BinarySearch(tags, tag)
		if found {
			return tags, nil // who deletes the tag may have it locked, and wants this event next
		}
		tags = slices.Insert(tags, at, tag)
		if len(tags) > hookglass.MaxEventTags {
			return nil, hookglass.Invalid("tag", "would be one too many: an event has %d tags at most", hookglass.MaxEventTags)
		}
		if log.endpoint.WorkspaceID == 0 {
			return tags, nil
		}
		_, err := tx.RequireTag(log.endpoint.WorkspaceID, tag) // who deletes or renames it waits, and then finds it here
		return tags, err
	})
}

// UntagEvent removes a tag from an event and returns the remaining ones, sorted. It answers not_found for an unknown
// event; a tag that the event does not have is no error.
func (tx *Tx) UntagEvent(ref, id, tag string) ([]string, error) {
	return tx.changeTags(ref, id, func(_ eventLog, tags []string) ([]string, error) {
		if at, found := slices.BinarySearch(tags, tag); found {
			tags = slices.Delete(tags, at, at+1)
		}
		return tags, nil
	})
}

func (tx *Tx) changeTags(ref, id string, change func(eventLog, []string) ([]string, error)) ([]string, error) {
	log, e, err := tx.eventIn(ref, id, tx.dialect.forUpdate())
	if err != nil {
		return nil, err
	}
	tags, err := change(log, slices.Clone(e.Tags))
	if err != nil || slices.Equal(tags, e.Tags) {
		return tags, err
	}
	tx.Announce(TopicEvents(log.endpoint.Num))
	_, err = tx.exec("UPDATE events SET tags = $2 WHERE seq = $1", e.Seq, encodeTags(tags))
	return tags, err
}
