package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestTheFeedShowsWhatHappened(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Now().UTC().Truncate(time.Microsecond)
		ada, bob := newTenant(t, db, "ada@example.com"), newTenant(t, db, "bob@example.com")
		first, second, foreign := endpointIn(t, db, ada.first), endpointIn(t, db, ada.second), endpointIn(t, db, bob.first)
		mailbox := hookglass.Endpoint{ID: hookglass.NewEndpointID(), AccountID: ada.account.ID, WorkspaceID: ada.first.ID, Name: "mail", Kind: hookglass.KindEmail, EmailLocalPart: "box", Enabled: true}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateEndpoint(&mailbox, nil) })

		hook := func(e hookglass.Endpoint, age time.Duration, contentType string) *hookglass.Event {
			event := newEvent(e, "four")
			event.ReceivedAt, event.ContentType = now.Add(-age), contentType
			return event
		}
		mail := newEvent(mailbox, "mail!")
		mail.ID, mail.Type, mail.Method, mail.Path = hookglass.NewEventID(hookglass.EventEmail, now), hookglass.EventEmail, "EMAIL", "box@localhost"
		mail.From, mail.To, mail.Subject, mail.ReceivedAt = "a@b", "box@localhost", "hi", now.Add(-3*time.Minute)
		one, two, old, deleted := hook(first, 5*time.Minute, "application/json"), hook(second, time.Minute, ""), hook(first, 48*time.Hour, "old"), hook(second, time.Second, "")
		capture(t, db, old, one, two, mail, deleted, hook(foreign, 0, ""))
		failed := hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: now.Add(-2 * time.Minute), EndpointID: first.ID, EventID: one.ID, Data: map[string]any{"status_code": 502.0}}
		alert := hookglass.Activity{Type: hookglass.ActivityAlertTriggered, OccurredAt: now.Add(-4 * time.Minute), EndpointID: second.ID, Data: map[string]any{"name": "quiet"}}
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.DeleteEvent(string(second.ID), string(deleted.ID)); err != nil {
				return err
			}
			if err := tx.AddActivity(alert); err != nil {
				return err
			}
			if err := tx.AddActivity(failed); err != nil {
				return err
			}
			long := failed
			long.OccurredAt = now.Add(-72 * time.Hour)
			return tx.AddActivity(long)
		})

		gotOne := hookglass.Activity{Type: hookglass.ActivityWebhookReceived, OccurredAt: one.ReceivedAt, EndpointID: first.ID, EventID: one.ID,
			Data: map[string]any{"method": "POST", "path": "/", "content_type": "application/json", "size": int64(4)}}
		gotTwo := hookglass.Activity{Type: hookglass.ActivityWebhookReceived, OccurredAt: two.ReceivedAt, EndpointID: second.ID, EventID: two.ID,
			Data: map[string]any{"method": "POST", "path": "/", "content_type": nil, "size": int64(4)}}
		gotMail := hookglass.Activity{Type: hookglass.ActivityEmailReceived, OccurredAt: mail.ReceivedAt, EndpointID: mailbox.ID, EventID: mail.ID,
			Data: map[string]any{"from": "a@b", "to": "box@localhost", "subject": "hi", "size": int64(5)}}
		day := now.Add(-24 * time.Hour)
		for name, c := range map[string]struct {
			who   hookglass.Principal
			kind  hookglass.ActivityType
			since time.Time
			limit int
			want  []hookglass.Activity
		}{
			"the account's":  {ada.everywhere, "", day, 50, []hookglass.Activity{gotTwo, failed, gotMail, alert, gotOne}},
			"the newest":     {ada.everywhere, "", day, 2, []hookglass.Activity{gotTwo, failed}},
			"a workspace's":  {ada.firstAllowed, "", day, 50, []hookglass.Activity{failed, gotMail, gotOne}},
			"since a moment": {ada.everywhere, "", now.Add(-3 * time.Minute), 50, []hookglass.Activity{gotTwo, failed, gotMail}},
			"webhooks":       {ada.everywhere, hookglass.ActivityWebhookReceived, day, 50, []hookglass.Activity{gotTwo, gotOne}},
			"mail":           {ada.everywhere, hookglass.ActivityEmailReceived, day, 50, []hookglass.Activity{gotMail}},
			"failures":       {ada.everywhere, hookglass.ActivityForwardingFailed, day, 50, []hookglass.Activity{failed}},
			"one endpoint's": {hookglass.Principal{Endpoint: second.ID}, "", day, 50, []hookglass.Activity{gotTwo, alert}},
			"nothing":        {ada.everywhere, "", now.Add(time.Hour), 50, []hookglass.Activity{}},
			"nobody's":       {hookglass.Principal{Account: 4711}, "", day, 50, []hookglass.Activity{}},
		} {
			view(t, db, c.who, func(v *store.View) {
				got, err := v.Activity(c.kind, c.since, c.limit)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				} else if diff := cmp.Diff(c.want, lines(t, got)); diff != "" {
					t.Errorf("%s (-want +got): %s", name, diff)
				}
			})
		}
		err := db.Update(t.Context(), bob.everywhere, func(tx *store.Tx) error { return tx.AddActivity(failed) })
		if !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("a line at a foreign endpoint: %v", err)
		}
		feed := []hookglass.Activity{failed, alert, {Type: failed.Type, EventID: deleted.ID}, failed}
		view(t, db, ada.everywhere, func(v *store.View) {
			if err := v.NameFailures(feed); err != nil {
				t.Fatal(err)
			}
		})
		if e := feed[0].Captured; e == nil || e.ID != one.ID || e.Path != one.Path || feed[3].Captured != e || feed[1].Captured != nil || feed[2].Captured != nil {
			t.Errorf("failures are named %+v", feed)
		}
		writing(t, db, func(tx *store.Tx) error {
			_, err := tx.DeleteAllEvents(string(first.ID))
			return err
		})
		feed = []hookglass.Activity{failed}
		view(t, db, ada.everywhere, func(v *store.View) {
			if err := v.NameFailures(feed); err != nil || feed[0].Captured != nil {
				t.Errorf("a failure has a request that was deleted with all others: %+v, %v", feed, err)
			}
		})
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteEndpoint(&second) })
		view(t, db, ada.everywhere, func(v *store.View) {
			got, err := v.Activity("", day, 50)
			same(t, "without a deleted endpoint", lines(t, got), err, []hookglass.Activity{failed, gotMail})
		})
	})
}

// lines takes the events off lines, once they are seen to be those of the captures.
func lines(t *testing.T, feed []hookglass.Activity) []hookglass.Activity {
	t.Helper()
	for i := range feed {
		e := feed[i].Captured
		if captured := strings.HasSuffix(string(feed[i].Type), ".received"); captured != (e != nil) || captured && e.ID != feed[i].EventID {
			t.Errorf("the line %+v has the event %+v", feed[i], e)
		}
		feed[i].Captured = nil
	}
	return feed
}

// Many busy endpoints, a short feed: those whose last event is older than the feed reaches are not read.
func TestQuietEndpointsAreNotRead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Now().UTC().Truncate(time.Microsecond)
		var want []hookglass.EventID
		for i := range 12 {
			e := newEndpoint(t, db)
			for j := range 3 {
				event := newEvent(e, "x")
				event.ReceivedAt = now.Add(-time.Duration(i*10+j) * time.Second)
				capture(t, db, event)
				if len(want) < 5 {
					want = append(want, event.ID)
				}
			}
		}
		reading(t, db, func(v *store.View) error {
			reads := 0
			v.Record(func(string, []any) { reads++ })
			feed, err := v.Activity(hookglass.ActivityWebhookReceived, now.Add(-time.Hour), 5)
			got := []hookglass.EventID{}
			for _, line := range feed {
				got = append(got, line.EventID)
			}
			sameEvents(t, "the feed", got, want)
			if reads > 1+3 {
				t.Errorf("%d statements for a feed of five", reads)
			}
			return err
		})
	})
}

// Of an endpoint that is busy as well, the events that are older than the feed reaches stay in the database. Their times
// tell, not their order: the clock may have been behind for a while.
func TestEventsThatTheFeedDoesNotReachAreNotRead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Now().UTC().Truncate(time.Microsecond)
		busy, other := newEndpoint(t, db), newEndpoint(t, db)
		at := func(e hookglass.Endpoint, age int) hookglass.EventID {
			event := newEvent(e, "x")
			event.ReceivedAt = now.Add(-time.Duration(age) * time.Second)
			return capture(t, db, event)[0].ID
		}
		for _, age := range []int{8, 6} {
			at(busy, age)
		}
		four, two, first := at(busy, 4), at(busy, 2), at(busy, 0)
		three := at(other, 3)
		for _, age := range []int{80, 70, 60} {
			at(other, age)
		}
		one := at(other, 1)
		reading(t, db, func(v *store.View) error {
			var seen []statement
			v.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
			feed, err := v.Activity(hookglass.ActivityWebhookReceived, now.Add(-time.Hour), 5)
			got := []hookglass.EventID{}
			for _, line := range feed {
				got = append(got, line.EventID)
			}
			sameEvents(t, "the feed", got, []hookglass.EventID{first, one, two, three, four})
			if last := seen[len(seen)-1]; !slices.Contains(last.args, any(now.Add(-8*time.Second).UnixMicro())) {
				t.Errorf("the other endpoint's events are read by %s with %v", last.text, last.args)
			}
			return err
		})
	})
}

// Lines about captures go with their events. Those that are kept by themselves go as soon, also where the clock was two
// days ahead for a while.
func TestLinesOfTheFeedGoWithTheRetention(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Now().UTC().Truncate(time.Microsecond)
		ada, bob := newTenant(t, db, "ada@example.com"), newTenant(t, db, "bob@example.com")
		of, short, temporary := endpointIn(t, db, ada.first), endpointIn(t, db, bob.first), newEndpoint(t, db)
		line := func(e hookglass.Endpoint, age time.Duration) hookglass.Activity {
			return hookglass.Activity{Type: hookglass.ActivityAlertTriggered, OccurredAt: now.Add(-age), EndpointID: e.ID, Data: map[string]any{"name": "quiet"}}
		}
		const old = 1_200 // more than one transaction deletes
		writing(t, db, func(tx *store.Tx) error {
			ada.account.Retention, bob.account.Retention = 0, time.Hour
			if err := errors.Join(tx.UpdateAccount(ada.account), tx.UpdateAccount(bob.account)); err != nil {
				return err
			}
			if err := tx.AddActivity(line(of, -48*time.Hour)); err != nil {
				return err
			}
			for range old {
				if err := tx.AddActivity(line(of, 49*time.Hour)); err != nil {
					return err
				}
			}
			for _, l := range []hookglass.Activity{line(of, 2*time.Hour), line(short, 2*time.Hour), line(short, time.Minute), line(temporary, 49*time.Hour), line(temporary, 2*time.Hour)} {
				if err := tx.AddActivity(l); err != nil {
					return err
				}
			}
			return nil
		})
		pieces := 0
		var due []store.Overdue
		reading(t, db, func(v *store.View) (err error) { due, err = v.ActivityDue(now, 24*time.Hour); return err })
		for ; len(due) > 0; pieces++ {
			writing(t, db, func(tx *store.Tx) (err error) { due, err = tx.PurgeActivity(due); return err })
		}
		if pieces < 3 {
			t.Errorf("%d lines were deleted in %d pieces", old, pieces)
		}
		for name, c := range map[string]struct {
			who  hookglass.Principal
			want []hookglass.Activity
		}{
			"the installation's retention": {ada.everywhere, []hookglass.Activity{line(of, -48*time.Hour), line(of, 2*time.Hour)}},
			"an account's":                 {bob.everywhere, []hookglass.Activity{line(short, time.Minute)}},
			"of a temporary endpoint":      {hookglass.Principal{Endpoint: temporary.ID}, []hookglass.Activity{line(temporary, 2*time.Hour)}},
		} {
			view(t, db, c.who, func(v *store.View) {
				got, err := v.Activity("", time.Time{}, 50)
				same(t, name, got, err, c.want)
			})
		}
	})
}

// A feed of the last hour does not read what failed in the month before.
func TestAFeedOfAShortTimeReadsNoOldLines(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Now().UTC().Truncate(time.Microsecond)
		ada, bob := newTenant(t, db, "ada@example.com"), newTenant(t, db, "bob@example.com")
		e, other := endpointIn(t, db, ada.first), endpointIn(t, db, bob.first)
		line := func(of hookglass.Endpoint, age time.Duration) hookglass.Activity {
			return hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: now.Add(-age), EndpointID: of.ID, Data: map[string]any{"age": age.String()}}
		}
		const old = 500
		lines := []hookglass.Activity{}
		for i := range old {
			lines = append(lines, line(e, time.Duration(2*old-i)*time.Hour), line(other, 0))
		}
		// The clock may have been off by hours.
		late, fresh := line(e, 10*time.Minute), line(e, 20*time.Minute)
		lines = append(lines, late, line(e, 20*time.Hour), fresh, line(e, 5*time.Hour))
		writing(t, db, func(tx *store.Tx) error {
			for _, l := range lines {
				if err := tx.AddActivity(l); err != nil {
					return err
				}
			}
			return nil
		})
		view(t, db, ada.everywhere, func(v *store.View) {
			above := int64(0)
			v.Record(func(text string, args []any) {
				if strings.Contains(text, "FROM activities a ") {
					for _, arg := range args {
						if n, ok := arg.(int64); ok && n < 4*old {
							above = max(above, n)
						}
					}
				}
			})
			got, err := v.Activity("", now.Add(-time.Hour), 50)
			same(t, "the last hour", got, err, []hookglass.Activity{late, fresh})
			if above < 2*old-2 {
				t.Errorf("the feed reads lines from the %d. on, behind %d old ones", above, 2*old)
			}
			got, err = v.Activity(hookglass.ActivityForwardingFailed, time.Time{}, 3*old)
			if err != nil || len(got) != old+4 {
				t.Errorf("%d lines since ever, %v", len(got), err)
			}
		})
	})
}

// An endpoint whose last event was deleted is no reason to stop before others.
func TestTheFeedGoesBeyondEndpointsWhoseLastEventIsGone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Now().UTC().Truncate(time.Microsecond)
		var kept []hookglass.EventID // the later an endpoint's last event was, the older is the one before
		for i := range 7 {
			e := newEndpoint(t, db)
			before, last := newEvent(e, "x"), newEvent(e, "x")
			before.ReceivedAt, last.ReceivedAt = now.Add(time.Duration(i-100)*time.Second), now.Add(-time.Duration(i)*time.Second)
			capture(t, db, before)
			capture(t, db, last)
			writing(t, db, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), string(last.ID)) })
			kept = append(kept, before.ID)
		}
		reading(t, db, func(v *store.View) error {
			feed, err := v.Activity("", now.Add(-time.Hour), 2)
			if err == nil && (len(feed) != 2 || feed[0].EventID != kept[6] || feed[1].EventID != kept[5]) {
				t.Errorf("the feed is %v, want %s and %s", feed, kept[6], kept[5])
			}
			return err
		})
	})
}

// Where one account has nearly all lines, PostgreSQL does not read them for the others.
func TestAccountsWithoutLinesReadNoneOfOthers(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	ada, bob := newTenant(t, db, "ada@example.com"), newTenant(t, db, "bob@example.com")
	e := endpointIn(t, db, bob.first)
	writing(t, db, func(tx *store.Tx) error {
		for range 1_000 {
			if err := tx.AddActivity(hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: tx.Now, EndpointID: e.ID}); err != nil {
				return err
			}
		}
		return tx.Exec("ANALYZE activities")
	})
	var seen []statement
	record := func(text string, args []any) { seen = append(seen, statement{text, args}) }
	view(t, db, ada.everywhere, func(v *store.View) {
		v.Record(record)
		if _, err := v.Activity("", v.Now.Add(-time.Hour), 50); err != nil {
			t.Error(err)
		}
	})
	writing(t, db, func(tx *store.Tx) error {
		tx.Record(record)
		due, err := tx.ActivityDue(tx.Now, time.Hour)
		if err == nil {
			_, err = tx.PurgeActivity(due)
		}
		return err
	})
	looked := 0
	for _, s := range seen {
		plan, err := db.Plan(t.Context(), s.text, s.args...)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(plan, "\n")
		if looked += strings.Count(text, "activities_account"); strings.Contains(text, "activities_pkey") {
			t.Errorf("%s\n%s", s.text, text)
		}
	}
	if looked != 3 {
		t.Errorf("%d scans were looked at", looked)
	}
}
