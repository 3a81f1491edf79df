package store

import (
	"slices"
	"strings"

	"hookglass"
)

// SetIgnored hides an event from lists for a reason, or shows it again when the reason is empty. It answers not_found.
func (tx *Tx) SetIgnored(ref, id, reason string) error {
	log, err := tx.eventLog(ref)
	if err != nil {
		return err
	}
	e, err := tx.event(log, id, tx.dialect.forUpdate())
	if err != nil || e.Ignored == reason {
		return err
	}
	if _, err := tx.exec("UPDATE events SET ignored = $2 WHERE seq = $1", e.Seq, nullString(reason)); err != nil {
		return err
	}
	tx.Announce(TopicEvents(log.endpoint.Num))
	marked := *e
	marked.Ignored = reason
	if err := tx.recount(e, &marked); err != nil {
		return err
	}
	if (e.Ignored == "") == (reason == "") {
		return nil
	}
	floor, err := tx.lockStats(log, nil)
	if err != nil {
		return err
	}
	if e.Seq <= floor {
		return hookglass.NotFound("request") // all were deleted meanwhile
	}
	change := 1
	if reason == "" {
		change = -1
	}
	_, err = tx.exec("UPDATE endpoint_stats SET ignored_count = ignored_count + cast($2 AS bigint) WHERE endpoint = $1", log.endpoint.Num, change)
	return err
}

// TagEvent puts a tag on an event and returns all its tags, sorted. A tag that the workspace does not have is made. It
// answers not_found, and validation_failed for what can not be a tag or would be one too many.
func (tx *Tx) TagEvent(ref, id, tag string) ([]string, error) {
	if !hookglass.ValidTag(tag) {
		return nil, hookglass.Invalid("tag", "must have 1 to %d printable characters, and no space around them", hookglass.MaxTagLength)
	}
	return tx.changeTags(ref, id, func(log eventLog, tags []string) ([]string, error) {
		at, found := slices.BinarySearch(tags, tag)
		if !found {
			tags = slices.Insert(tags, at, tag)
		}
		if len(tags) > hookglass.MaxEventTags {
			return nil, hookglass.Invalid("tag", "would be one too many: an event has %d tags at most", hookglass.MaxEventTags)
		}
		if log.endpoint.WorkspaceID == 0 {
			return tags, nil
		}
		_, err := tx.exec("INSERT INTO tags (workspace_id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (workspace_id, name) DO NOTHING",
			log.endpoint.WorkspaceID, tag, tx.Now.UnixMicro())
		return tags, err
	})
}

// MarkEvent does at once what TagEvent and SetIgnored do one by one: it puts tags on an event, as many as it may have, and hides it for a
// reason where that is not empty. It answers not_found.
func (tx *Tx) MarkEvent(e hookglass.Endpoint, seq int64, tags []string, reason string) error {
	log := eventLog{endpoint: e}
	before, err := log.scan(func(dest ...any) error {
		return tx.queryRow("request", "SELECT "+listColumns+" FROM events WHERE seq = $1 AND endpoint = $2"+
			" AND seq > (SELECT s.floor_seq FROM endpoint_stats s WHERE s.endpoint = $2)"+tx.dialect.forUpdateOf("events"), []any{seq, e.Num}, dest...)
	})
	if err != nil {
		return err
	}
	after := *before
	after.Tags = slices.Clone(before.Tags)
	var fresh []string
	for _, tag := range tags {
		if at, found := slices.BinarySearch(after.Tags, tag); !found && len(after.Tags) < hookglass.MaxEventTags {
			after.Tags, fresh = slices.Insert(after.Tags, at, tag), append(fresh, tag)
		}
	}
	if reason != "" {
		after.Ignored = reason
	}
	if len(fresh) == 0 && after.Ignored == before.Ignored {
		return nil
	}
	if e.WorkspaceID != 0 && len(fresh) > 0 {
		slices.Sort(fresh) // in one order, so that no two transactions wait for each other
		a := &args{}
		workspace, now := a.add(e.WorkspaceID), a.add(tx.Now.UnixMicro())
		rows := make([]string, len(fresh))
		for i, tag := range fresh {
			rows[i] = "(cast(" + workspace + " AS bigint), " + a.add(tag) + ", cast(" + now + " AS bigint))"
		}
		if _, err := tx.exec("INSERT INTO tags (workspace_id, name, created_at) VALUES "+strings.Join(rows, ", ")+" ON CONFLICT (workspace_id, name) DO NOTHING", a.values...); err != nil {
			return err
		}
	}
	if _, err := tx.exec("UPDATE events SET tags = $2, ignored = $3 WHERE seq = $1", seq, encodeTags(after.Tags), nullString(after.Ignored)); err != nil {
		return err
	}
	tx.Announce(TopicEvents(e.Num))
	if after.Ignored == before.Ignored {
		return nil
	}
	if err := tx.recount(before, &after); err != nil || before.Ignored != "" {
		return err
	}
	// The counters are locked last, in every transaction.
	return tx.change("request", "UPDATE endpoint_stats SET ignored_count = ignored_count + 1 WHERE endpoint = $1 AND floor_seq < $2", e.Num, seq)
}

// UntagEvent takes a tag off an event and returns those that are left, sorted. It answers not_found for an unknown
// event; that the event does not have the tag is none.
func (tx *Tx) UntagEvent(ref, id, tag string) ([]string, error) {
	return tx.changeTags(ref, id, func(_ eventLog, tags []string) ([]string, error) {
		if at, found := slices.BinarySearch(tags, tag); found {
			tags = slices.Delete(tags, at, at+1)
		}
		return tags, nil
	})
}

func (tx *Tx) changeTags(ref, id string, change func(eventLog, []string) ([]string, error)) ([]string, error) {
	log, err := tx.eventLog(ref)
	if err != nil {
		return nil, err
	}
	e, err := tx.event(log, id, tx.dialect.forUpdate())
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
