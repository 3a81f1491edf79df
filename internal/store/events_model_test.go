package store_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Whatever is done to events in whatever order: the lists have what is left, and the counters say how much.
func TestCountersAndListsStayRight(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		checks := "30"
		if db.Postgres() {
			checks = "10"
		}
		was := flag.Lookup("rapid.checks").Value.String()
		if err := flag.Set("rapid.checks", checks); err != nil {
			t.Fatal(err)
		}
		defer flag.Set("rapid.checks", was)
		rapid.Check(t, func(rt *rapid.T) {
			m := &logs{T: rt, tb: t, db: db, at: time.Now().UTC().Truncate(time.Microsecond)}
			for range 2 {
				m.endpoints = append(m.endpoints, &endpointLog{Endpoint: newEndpoint(t, db)})
			}
			rt.Repeat(map[string]func(*rapid.T){
				"":          m.check,
				"capture":   m.capture,
				"delete":    m.deleteOne,
				"range":     m.deleteRange,
				"deleteAll": m.deleteAll,
				"erase":     m.erase,
				"purge":     m.purge,
				"ignore":    m.ignore,
				"note":      m.note,
				"tag":       m.tag,
			})
			m.deleteEndpoints()
		})
	})
}

// logs is what the events of two endpoints should be.
type logs struct {
	*rapid.T
	tb        *testing.T
	db        *store.DB
	at        time.Time
	endpoints []*endpointLog
}

type endpointLog struct {
	hookglass.Endpoint
	events []*hookglass.Event // oldest first
	gone   []hookglass.EventID
}

func (m *logs) update(fn func(tx *store.Tx) error) error {
	return m.db.Update(m.tb.Context(), hookglass.System, fn)
}

func (m *logs) must(err error) {
	if err != nil {
		m.Fatal(err)
	}
}

func (m *logs) one(t *rapid.T) *endpointLog {
	return rapid.SampledFrom(m.endpoints).Draw(t, "endpoint")
}

// time is near that of the test, and not in the order of captures.
func (m *logs) time(t *rapid.T, name string) time.Time {
	return m.at.Add(time.Duration(rapid.IntRange(-5, 5).Draw(t, name)) * time.Second)
}

// event is one that is there or, now and then, one that was.
func (l *endpointLog) event(t *rapid.T) (id hookglass.EventID, e *hookglass.Event) {
	if len(l.gone) > 0 && (len(l.events) == 0 || rapid.IntRange(0, 4).Draw(t, "gone") == 0) {
		return rapid.SampledFrom(l.gone).Draw(t, "id"), nil
	}
	if len(l.events) == 0 {
		t.Skip("no events")
	}
	e = rapid.SampledFrom(l.events).Draw(t, "event")
	return e.ID, e
}

// remove takes away what go says.
func (l *endpointLog) remove(goes func(e *hookglass.Event) bool) (n int64) {
	l.events = slices.DeleteFunc(l.events, func(e *hookglass.Event) bool {
		if !goes(e) {
			return false
		}
		l.gone = append(l.gone, e.ID)
		n++
		return true
	})
	return n
}

func (m *logs) capture(t *rapid.T) {
	l := m.one(t)
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		e := newEvent(l.Endpoint, "x")
		e.ReceivedAt = m.time(t, "received")
		m.must(m.db.Capture(m.tb.Context(), 0, e))
		l.events = append(l.events, e)
	}
}

func (m *logs) deleteOne(t *rapid.T) {
	l := m.one(t)
	id, e := l.event(t)
	err := m.update(func(tx *store.Tx) error { return tx.DeleteEvent(string(l.ID), string(id)) })
	if e == nil {
		m.missing(err)
		return
	}
	m.must(err)
	l.remove(func(e *hookglass.Event) bool { return e.ID == id })
}

func (m *logs) missing(err error) {
	if !hookglass.Is(err, hookglass.CodeNotFound) {
		m.Fatalf("an event that was deleted: %v", err)
	}
}

func (m *logs) deleteRange(t *rapid.T) {
	l := m.one(t)
	var r store.EventRange
	if rapid.Bool().Draw(t, "has after") {
		r.After = m.time(t, "after")
	}
	if rapid.Bool().Draw(t, "has before") {
		r.Before = m.time(t, "before")
	}
	for !r.Done {
		m.must(m.update(func(tx *store.Tx) error {
			next, err := tx.DeleteEvents(string(l.ID), r)
			r = next
			return err
		}))
	}
	q := query.Between(r.After, r.Before)
	if n := l.remove(q.Match); n != r.Deleted {
		t.Fatalf("%d deleted between %v and %v, want %d", r.Deleted, r.After, r.Before, n)
	}
}

func (m *logs) deleteAll(t *rapid.T) {
	l := m.one(t)
	var n int64
	m.must(m.update(func(tx *store.Tx) (err error) {
		n, err = tx.DeleteAllEvents(string(l.ID))
		return err
	}))
	if want := l.remove(func(*hookglass.Event) bool { return true }); n != want {
		t.Fatalf("%d of %d deleted", n, want)
	}
}

func (m *logs) erase(t *rapid.T) {
	l := m.one(t)
	for done := false; !done; {
		m.must(m.update(func(tx *store.Tx) (err error) {
			done, err = tx.EraseEvents(l.Num)
			return err
		}))
	}
	reading(m.tb, m.db, func(v *store.View) error {
		n, err := v.Ints("SELECT count(*) FROM events WHERE endpoint = $1", l.Num)
		if err == nil && n[0] != int64(len(l.events)) {
			t.Fatalf("%d rows are left of %d events", n[0], len(l.events))
		}
		return err
	})
}

func (m *logs) purge(t *rapid.T) {
	l := m.one(t)
	cutoff := m.time(t, "cutoff")
	var n int64
	for more := true; more; {
		var deleted int64
		m.must(m.update(func(tx *store.Tx) (err error) {
			deleted, more, err = tx.PurgeEvents(store.PurgeDue{EndpointNum: l.Num, Cutoff: cutoff})
			return err
		}))
		n += deleted
	}
	if want := l.remove(func(e *hookglass.Event) bool { return e.ReceivedAt.Before(cutoff) }); n != want {
		t.Fatalf("%d purged, want %d", n, want)
	}
}

func (m *logs) ignore(t *rapid.T) {
	l := m.one(t)
	id, e := l.event(t)
	reason := rapid.SampledFrom([]string{"", "noise", "test"}).Draw(t, "reason")
	err := m.update(func(tx *store.Tx) error { return tx.SetIgnored(string(l.ID), string(id), reason) })
	if e == nil {
		m.missing(err)
		return
	}
	m.must(err)
	e.Ignored = reason
}

func (m *logs) note(t *rapid.T) {
	l := m.one(t)
	id, e := l.event(t)
	note := rapid.SampledFrom([]string{"", "a note", "é\n\tb \U0010FFFF"}).Draw(t, "note")
	err := m.update(func(tx *store.Tx) error { return tx.SetNote(string(l.ID), string(id), note) })
	if e == nil {
		m.missing(err)
		return
	}
	m.must(err)
	e.Note = note
}

func (m *logs) tag(t *rapid.T) {
	l := m.one(t)
	id, e := l.event(t)
	tag := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tag")
	off := rapid.Bool().Draw(t, "off")
	var tags []string
	err := m.update(func(tx *store.Tx) (err error) {
		if off {
			tags, err = tx.UntagEvent(string(l.ID), string(id), tag)
		} else {
			tags, err = tx.TagEvent(string(l.ID), string(id), tag)
		}
		return err
	})
	if e == nil {
		m.missing(err)
		return
	}
	m.must(err)
	e.Tags = slices.DeleteFunc(e.Tags, func(s string) bool { return s == tag })
	if !off {
		e.Tags = append(e.Tags, tag)
		slices.Sort(e.Tags)
	}
	if !slices.Equal(tags, e.Tags) {
		t.Fatalf("the tags are %v, want %v", tags, e.Tags)
	}
}

func (m *logs) check(t *rapid.T) {
	reading(m.tb, m.db, func(v *store.View) error {
		for _, l := range m.endpoints {
			if err := l.check(t, v); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *endpointLog) check(t *rapid.T, v *store.View) error {
	counters, err := v.Ints("SELECT event_count FROM endpoint_stats WHERE endpoint = $1 UNION ALL SELECT ignored_count FROM endpoint_stats WHERE endpoint = $1", l.Num)
	if err != nil {
		return err
	}
	shown := 0
	for _, f := range []query.Filter{{}, {Ignored: "true"}, {Ignored: "any"}, {Q: "-tag:a"}, {Q: "tag:*", Ignored: "any"}} {
		q, err := f.Parse(time.Now())
		if err != nil {
			return err
		}
		want := []string{}
		for _, e := range slices.Backward(l.events) {
			if q.Match(e) {
				want = append(want, fmt.Sprint(e.ID, e.Ignored, e.Tags, e.Note))
			}
		}
		page, err := v.Events(string(l.ID), store.EventList{Query: q, Limit: 1000, Total: true})
		if err != nil {
			return err
		}
		got := []string{}
		for _, e := range page.Events {
			got = append(got, fmt.Sprint(e.ID, e.Ignored, e.Tags, e.Note))
		}
		if !slices.Equal(got, want) || page.Total != int64(len(want)) || !page.Exact {
			t.Fatalf("%+v: %d of %d events\n%v\nwant %d\n%v", f, len(got), page.Total, got, len(want), want)
		}
		if f.Ignored == "true" {
			shown = len(want)
		}
	}
	if want := []int64{int64(len(l.events)), int64(shown)}; !slices.Equal(counters, want) {
		t.Fatalf("the counters of events and ignored ones are %v, want %v", counters, want)
	}
	after, err := v.EventsAfter(string(l.ID), 0, 1000)
	if err == nil && !slices.Equal(ids(after), ids(l.events)) {
		t.Fatalf("a stream has %v, want %v", ids(after), ids(l.events))
	}
	return err
}

// deleteEndpoints ends with nothing left in any table.
func (m *logs) deleteEndpoints() {
	for _, l := range m.endpoints {
		m.must(m.update(func(tx *store.Tx) error { return tx.DeleteEndpoint(&l.Endpoint) }))
		for done := false; !done; {
			m.must(m.update(func(tx *store.Tx) (err error) {
				done, err = tx.EraseEvents(l.Num)
				return err
			}))
		}
	}
	reading(m.tb, m.db, func(v *store.View) error {
		for _, table := range []string{"events", "payloads", "endpoints", "endpoint_stats"} {
			n, err := v.Ints("SELECT count(*) FROM " + table)
			if err != nil {
				return err
			}
			if n[0] != 0 {
				m.Fatalf("%d rows are left in %s", n[0], table)
			}
		}
		return nil
	})
}
