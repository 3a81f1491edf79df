package store

import (
	"cmp"
	"maps"
	"slices"

	"hookglass"
)

// EventMark is a change that actions make to an event on which they run.
type EventMark struct {
	Endpoint hookglass.Endpoint
	Seq      int64
	Had      []string // its tags when it was read, sorted
	Tags     []string // to be added, up to the bound of tags
	Ignore   string   // the reason to hide it for; empty: none
}

// marking is the change of an event whose row is locked.
type marking struct {
	mark          EventMark
	before, after hookglass.Event
	fresh         []string // tags that it did not have
}

// MarkEvents does for many events at once what TagEvent and SetIgnored do for one. It answers not_found if one of them
// is gone.
//
// Events whose tags have not changed since they were read, nearly all, are tagged by one statement. The lock order is
// that of all transactions, so that none deadlock: events by seq, then tags, figures and counters.
func (tx *Tx) MarkEvents(marks []EventMark) error {
	marks = mergeMarks(marks)
	tagged, others, err := tx.tagAsRead(marks)
	if err != nil {
		return err
	}
	var marked []marking
	for _, m := range others {
		locked, err := tx.lockToMark(m)
		if err != nil {
			return err
		}
		if len(locked.fresh) > 0 || locked.before.Ignored != locked.after.Ignored {
			marked = append(marked, locked)
		}
	}
	if err := tx.makeTags(tagged, marked); err != nil {
		return err
	}
	var hidden []changed
	for i := range marked {
		m := &marked[i]
		if _, err := tx.exec("UPDATE events SET tags = $2, ignored = $3 WHERE seq = $1", m.mark.Seq, encodeTags(m.after.Tags), nullString(m.after.Ignored)); err != nil {
			return err
		}
		if m.before.Ignored != m.after.Ignored {
			hidden = append(hidden, changed{&m.before, &m.after})
		}
		tagged = append(tagged, m.mark)
	}
	endpoints := make([]int64, 0, len(tagged))
	for _, m := range tagged {
		endpoints = append(endpoints, m.Endpoint.Num)
	}
	tx.announceEvents(endpoints)
	if len(hidden) == 0 {
		return nil
	}
	if err := tx.recount(hidden...); err != nil {
		return err
	}
	return tx.countIgnored(marked)
}

// mergeMarks merges the marks of each event and sorts them by event.
func mergeMarks(marks []EventMark) []EventMark {
	marks = slices.Clone(marks)
	slices.SortStableFunc(marks, func(a, b EventMark) int { return cmp.Compare(a.Seq, b.Seq) })
	merged := marks[:0]
	for _, m := range marks {
		last := len(merged) - 1
		if last < 0 || merged[last].Seq != m.Seq {
			merged = append(merged, m)
			continue
		}
		merged[last].Tags = slices.Concat(merged[last].Tags, m.Tags)
		if m.Ignore != "" {
			merged[last].Ignore = m.Ignore
		}
	}
	return merged
}

// addTags adds tags up to the bound of an event. It returns all tags, sorted, and those that are new.
func addTags(tags, more []string) (all, fresh []string) {
	all = slices.Clone(tags)
	for _, tag := range more {
		if at, found := slices.BinarySearch(all, tag); !found && len(all) < hookglass.MaxEventTags {
			all, fresh = slices.Insert(all, at, tag), append(fresh, tag)
		}
	}
	return all, fresh
}

// tagAsRead tags the events whose tags have not changed since they were read. It returns the marks that are done and
// those that need a look one by one. Marks that change nothing are in neither.
func (tx *Tx) tagAsRead(marks []EventMark) (done, others []EventMark, err error) {
	in := input{columns: []inputColumn{{"seq", inputInteger}, {"endpoint", inputInteger}, {"had", inputText}, {"tags", inputText}}}
	for _, m := range marks {
		all, fresh := addTags(m.Had, m.Tags)
		if m.Ignore == "" && len(fresh) > 0 {
			in.rows = append(in.rows, []any{m.Seq, m.Endpoint.Num, encodeTags(m.Had), encodeTags(all)})
		}
	}
	var same map[int64]bool
	if len(in.rows) > 0 {
		from, args, err := in.from(tx.dialect, "i")
		if err != nil {
			return nil, nil, err
		}
		// The floor is looked up from the event's own row, because PostgreSQL may scan the input once per event.
		// "endpoint + 0" keeps the index on endpoint out: while there are few events, that index looks as good as the
		// one on seq, and the cached plan would read all events of the endpoint once there are many.
		seqs, err := queryAll(&tx.View, scanNum, "UPDATE events SET tags = i.tags FROM "+from+" WHERE events.seq = i.seq"+in.lookup(tx.dialect, "events.seq")+" AND events.endpoint + 0 = i.endpoint"+
			" AND coalesce(events.tags, '') = coalesce(i.had, '') AND events.seq > (SELECT s.floor_seq FROM endpoint_stats s WHERE s.endpoint = events.endpoint)"+
			" RETURNING events.seq", args...)
		if err != nil {
			return nil, nil, err
		}
		same = setOf(seqs)
	}
	for _, m := range marks {
		_, fresh := addTags(m.Had, m.Tags)
		switch {
		case same[m.Seq]:
			done = append(done, m)
		case m.Ignore != "" || len(fresh) > 0:
			others = append(others, m)
		}
	}
	return done, others, nil
}

// lockToMark locks an event and computes its change. It answers not_found.
func (tx *Tx) lockToMark(m EventMark) (marking, error) {
	log := eventLog{endpoint: m.Endpoint}
	before, err := log.scan(func(dest ...any) error {
		return tx.queryRow("request", "SELECT "+listColumns+" FROM events WHERE seq = $1 AND endpoint = $2"+
			" AND seq > (SELECT s.floor_seq FROM endpoint_stats s WHERE s.endpoint = $2)"+tx.dialect.forUpdateOf("events"), []any{m.Seq, m.Endpoint.Num}, dest...)
	})
	if err != nil {
		return marking{}, err
	}
	locked := marking{mark: m, before: *before, after: *before}
	locked.after.Tags, locked.fresh = addTags(before.Tags, m.Tags)
	if m.Ignore != "" {
		locked.after.Ignored = m.Ignore
	}
	return locked, nil
}

// makeTags creates the tags that the events were given in their workspaces.
func (tx *Tx) makeTags(tagged []EventMark, marked []marking) error {
	type tag struct {
		workspace int64
		name      string
	}
	var tags []tag
	add := func(m EventMark, names []string) {
		for _, name := range names {
			if m.Endpoint.WorkspaceID != 0 {
				tags = append(tags, tag{m.Endpoint.WorkspaceID, name})
			}
		}
	}
	for _, m := range tagged {
		_, fresh := addTags(m.Had, m.Tags)
		add(m, fresh)
	}
	for _, m := range marked {
		add(m.mark, m.fresh)
	}
	slices.SortFunc(tags, func(a, b tag) int { return cmp.Or(cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.name, b.name)) })
	in := input{columns: []inputColumn{{"workspace_id", inputInteger}, {"name", inputText}, {"created_at", inputInteger}}}
	for _, t := range slices.Compact(tags) {
		in.rows = append(in.rows, []any{t.workspace, t.name, tx.Now.UnixMicro()})
	}
	return tx.insert("tags", in, " WHERE true ON CONFLICT (workspace_id, name) DO NOTHING")
}

// countIgnored counts the events that became hidden. As in every transaction, the counters are locked last.
func (tx *Tx) countIgnored(marked []marking) error {
	type count struct{ n, first int64 }
	counts := make(map[int64]count)
	for i := range marked {
		if m := &marked[i]; m.before.Ignored == "" && m.after.Ignored != "" {
			c, more := counts[m.mark.Endpoint.Num]
			if c.n++; !more {
				c.first = m.mark.Seq
			}
			counts[m.mark.Endpoint.Num] = c
		}
	}
	for _, num := range slices.Sorted(maps.Keys(counts)) {
		c := counts[num] // none of them may have been deleted meanwhile
		err := tx.change("request", "UPDATE endpoint_stats SET ignored_count = ignored_count + cast($2 AS bigint) WHERE endpoint = $1 AND floor_seq < $3", num, c.n, c.first)
		if err != nil {
			return err
		}
	}
	return nil
}

// announceEvents announces that events of some endpoints, given by number and with repetitions, changed.
func (tx *Tx) announceEvents(endpoints []int64) {
	slices.Sort(endpoints)
	for _, num := range slices.Compact(endpoints) {
		tx.Announce(TopicEvents(num))
	}
}
