package store_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// capture stores events and returns them in the order of their seqs, oldest first.
func capture(t testing.TB, db *store.DB, events ...*hookglass.Event) []*hookglass.Event {
	t.Helper()
	for _, e := range events {
		if err := db.Capture(t.Context(), 0, e); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

// several stores n small events.
func several(t testing.TB, db *store.DB, e hookglass.Endpoint, n int) []*hookglass.Event {
	t.Helper()
	var events []*hookglass.Event
	for i := range n {
		events = append(events, newEvent(e, fmt.Sprint(i)))
	}
	return capture(t, db, events...)
}

func reading(t testing.TB, db *store.DB, fn func(v *store.View) error) {
	t.Helper()
	if err := db.View(t.Context(), hookglass.System, fn); err != nil {
		t.Fatal(err)
	}
}

func writing(t testing.TB, db *store.DB, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := db.Update(t.Context(), hookglass.System, fn); err != nil {
		t.Fatal(err)
	}
}

// statement is one that was recorded ([store.View.Record]).
type statement struct {
	text string
	args []any
}

func list(t testing.TB, db *store.DB, e hookglass.Endpoint, l store.EventList) (page store.EventPage) {
	t.Helper()
	reading(t, db, func(v *store.View) (err error) {
		page, err = v.Events(string(e.ID), l)
		return err
	})
	return page
}

func parse(t testing.TB, q string) query.Query {
	t.Helper()
	parsed, err := query.Filter{Q: q}.Parse(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func ids(events []*hookglass.Event) []hookglass.EventID {
	all := []hookglass.EventID{}
	for _, e := range events {
		all = append(all, e.ID)
	}
	return all
}

// newestFirst returns the ids of events given oldest first.
func newestFirst(events []*hookglass.Event) []hookglass.EventID {
	all := ids(events)
	slices.Reverse(all)
	return all
}

func sameEvents(t testing.TB, what string, got, want []hookglass.EventID) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %d events %v, want %d %v", what, len(got), got, len(want), want)
	}
}

func TestAnEventComesBackAsItWasCaptured(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		at := time.Date(2026, 11, 20, 12, 0, 0, 123456000, time.UTC)
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		long := strings.Repeat("é\x00\xff", 3000)
		webhook := &hookglass.Event{
			ID: hookglass.NewEventID(hookglass.EventWebhook, at), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook, ReceivedAt: at,
			Method: "PUT", Path: "/a%2Fb//\xff\x00é", RawQuery: string(every), URL: "http://h/\xfe", Proto: "HTTP/1.0", ContentType: "text/\xe9", IP: "::1",
			Size: 256, Status: 418, Provider: "stripe", EventType: long, EventRef: "evt\xff", DeliveryID: "d\x00", SignatureStatus: hookglass.SignatureFailed, SignatureReason: "mismatch",
			Payload: &hookglass.Payload{
				Headers:  hookglass.Headers{{Name: "X-B", Value: "caf\xe9"}, {Name: "x-b", Value: ""}, {Name: "X-B", Value: "  "}},
				Trailers: hookglass.Headers{{Name: "Sum", Value: "1"}}, Body: every,
				Reply: &hookglass.Reply{Status: 418, Source: hookglass.SourceCustom, Delay: 1500 * time.Millisecond,
					Headers: hookglass.Headers{{Name: "Content-Type", Value: "x"}}, Body: []byte("short\x00stout")},
			},
		}
		mail := &hookglass.Event{
			ID: hookglass.NewEventID(hookglass.EventEmail, at), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventEmail, ReceivedAt: at,
			Method: "EMAIL", Path: "a@localhost", Size: 3, Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked,
			From: "\xff <a@b>", To: strings.Repeat("b@c, ", 2000), Subject: long,
			Authentication: hookglass.Authentication{SPF: hookglass.AuthPending, DKIM: hookglass.AuthPending, DMARC: hookglass.AuthPending},
			Payload: &hookglass.Payload{Headers: hookglass.Headers{}, Body: []byte("\r\n\xff"),
				Envelope: &hookglass.Envelope{From: "bounce@é.test", To: []string{"a+x@localhost"}, Helo: "m\x00x", Protocol: "ESMTPS"}},
		}
		for _, want := range capture(t, db, webhook, mail) {
			reading(t, db, func(v *store.View) error {
				got, err := v.Event(string(e.ID), string(want.ID))
				if err != nil {
					return err
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the detail form: %s", diff)
				}
				page, err := v.Events(string(e.ID), store.EventList{Query: parse(t, "id:"+string(want.ID)), Limit: 1})
				if err != nil {
					return err
				}
				short := *want
				short.Payload, short.URL, short.Proto = nil, "", ""
				if diff := cmp.Diff([]*hookglass.Event{&short}, page.Events); diff != "" {
					t.Errorf("the list form: %s", diff)
				}
				return nil
			})
		}
	})
}

func TestAnEventOfAnotherEndpointDoesNotExist(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		mine, other := newEndpoint(t, db), newEndpoint(t, db)
		event := several(t, db, mine, 1)[0]
		stranger := hookglass.Principal{Account: 77}
		key := hookglass.Principal{Endpoint: other.ID}
		for name, c := range map[string]struct {
			who hookglass.Principal
			ref hookglass.EndpointID
			id  string
		}{
			"by another endpoint": {hookglass.System, other.ID, string(event.ID)},
			"by another account":  {stranger, mine.ID, string(event.ID)},
			"by another key":      {key, mine.ID, string(event.ID)},
			"unheard of":          {hookglass.System, mine.ID, string(hookglass.NewEventID(hookglass.EventWebhook, time.Now()))},
			"no id":               {hookglass.System, mine.ID, "x'; DROP TABLE events; --"},
		} {
			reads := map[string]func(v *store.View) error{
				"Event": func(v *store.View) error { _, err := v.Event(string(c.ref), c.id); return err },
			}
			if c.who.Account != 0 || c.who.Endpoint != "" {
				reads["Events"] = func(v *store.View) error { _, err := v.Events(string(c.ref), store.EventList{Limit: 1}); return err }
				reads["EventsAfter"] = func(v *store.View) error { _, err := v.EventsAfter(string(c.ref), 0, 1); return err }
				reads["MoreAfter"] = func(v *store.View) error { _, err := v.MoreAfter(string(c.ref), 0, 1); return err }
				reads["NewestSeq"] = func(v *store.View) error { _, err := v.NewestSeq(string(c.ref)); return err }
			}
			for read, fn := range reads {
				if err := db.View(t.Context(), c.who, fn); !hookglass.Is(err, hookglass.CodeNotFound) {
					t.Errorf("%s, %s: %v", name, read, err)
				}
			}
			for write, fn := range map[string]func(tx *store.Tx) error{
				"DeleteEvent": func(tx *store.Tx) error { return tx.DeleteEvent(string(c.ref), c.id) },
				"SetIgnored":  func(tx *store.Tx) error { return tx.SetIgnored(string(c.ref), c.id, "noise") },
				"SetNote":     func(tx *store.Tx) error { return tx.SetNote(string(c.ref), c.id, "x") },
				"TagEvent":    func(tx *store.Tx) error { _, err := tx.TagEvent(string(c.ref), c.id, "x"); return err },
				"UntagEvent":  func(tx *store.Tx) error { _, err := tx.UntagEvent(string(c.ref), c.id, "x"); return err },
			} {
				if err := db.Update(t.Context(), c.who, fn); !hookglass.Is(err, hookglass.CodeNotFound) {
					t.Errorf("%s, %s: %v", name, write, err)
				}
			}
		}
		if got, err := endpointNow(t, db, mine); err != nil || got.EventCount != 1 {
			t.Errorf("afterwards there are %d events, %v", got.EventCount, err)
		}
		// The older form of an id names the same event.
		reading(t, db, func(v *store.View) error {
			_, err := v.Event(string(mine.ID), "wr_"+strings.TrimPrefix(string(event.ID), "req_"))
			return err
		})
	})
}

func TestPages(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		var events []*hookglass.Event
		for range 10 {
			events = append(events, several(t, db, e, 3)...)
			several(t, db, other, 2)
		}
		all := newestFirst(events)
		check := func(what string, l store.EventList, want []hookglass.EventID) store.EventPage {
			t.Helper()
			l.Total = true
			page := list(t, db, e, l)
			sameEvents(t, what, ids(page.Events), want)
			if page.Total != int64(len(all)) || !page.Exact {
				t.Errorf("%s: total %d, exact %t", what, page.Total, page.Exact)
			}
			return page
		}
		for _, q := range []string{"", "is:webhook", "method:post", "x-test", "-header.x-test:nothing", "query.a:b", "-query.a:b"} {
			if q == "query.a:b" {
				if page := list(t, db, e, store.EventList{Query: parse(t, q), Limit: 5, Total: true}); len(page.Events) != 0 || page.Total != 0 || !page.Exact || page.Next != 0 {
					t.Errorf("%s: %+v", q, page)
				}
				continue
			}
			parsed := parse(t, q)
			for _, offset := range []int64{0, 1, 7, 14, 15, 16, 25, 29, 30, 31, 1 << 40, math.MaxInt64} {
				from := min(offset, 30)
				page := check(fmt.Sprintf("%q from %d", q, offset), store.EventList{Query: parsed, Limit: 5, Offset: offset}, all[from:min(from+5, 30)])
				if (page.Next == 0) != (from+5 >= 30) {
					t.Errorf("%q from %d: next %d", q, offset, page.Next)
				}
			}
			got, before, pages := []hookglass.EventID{}, int64(0), 0
			for {
				page := list(t, db, e, store.EventList{Query: parsed, Limit: 7, Before: before, Total: true})
				got = append(got, ids(page.Events)...)
				if before = page.Next; before == 0 {
					break
				}
				if pages++; pages > 30 {
					t.Fatal("the cursor goes round")
				}
				if page.Total != 30 || !page.Exact {
					t.Errorf("%q by cursor: total %d, exact %t", q, page.Total, page.Exact)
				}
			}
			sameEvents(t, fmt.Sprintf("%q by cursor", q), got, all)
			middle := events[20]
			check(fmt.Sprintf("%q by cursor and offset", q), store.EventList{Query: parsed, Limit: 3, Offset: 2, Before: middle.Seq}, all[30-20+2:30-20+5])
		}
	})
}

// A search that runs out of time says so, has a cursor to go on, and misses nothing on the way.
func TestASearchThatRunsOutOfTimeGoesOnByItsCursor(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		var want []hookglass.EventID
		const n = 4200
		flood(t, db, e, time.Now(), n)
		reading(t, db, func(v *store.View) error {
			for _, q := range []string{`"\"n\":77"`, "size:7 header.x-test:*", "size:<9"} {
				page, err := v.Events(string(e.ID), store.EventList{Query: parse(t, q), Limit: n, Total: true})
				if err != nil {
					return err
				}
				if want = ids(page.Events); len(want) < 10 || !page.Exact {
					t.Fatalf("%s finds %d", q, len(want))
				}
				got, before, short := []hookglass.EventID{}, int64(0), 0
				for pages := 0; ; pages++ {
					page, err := v.EventsInNoTime(string(e.ID), store.EventList{Query: parse(t, q), Limit: 25, Before: before, Total: true})
					if err != nil {
						return err
					}
					got = append(got, ids(page.Events)...)
					if page.Exact || page.Total > int64(len(want)) {
						t.Errorf("%s: without time the total is %d, exact %t", q, page.Total, page.Exact)
					}
					if len(page.Events) < 25 {
						short++
					}
					if before = page.Next; before == 0 {
						break
					}
					if pages > n {
						t.Fatal("the cursor goes round")
					}
				}
				sameEvents(t, q, got, want)
				if short < 2 {
					t.Errorf("%s: no page was cut short", q)
				}
			}
			return nil
		})
	})
}

func TestIgnoredEventsAreLeftOutUnlessAskedFor(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		events := several(t, db, e, 6)
		ignore := func(i int, reason string) {
			writing(t, db, func(tx *store.Tx) error { return tx.SetIgnored(string(e.ID), string(events[i].ID), reason) })
		}
		ignore(1, "noise")
		ignore(4, "test")
		ignore(4, "noise") // another reason is no second event
		ignore(4, "noise")
		ignore(5, "mistake")
		ignore(5, "")
		ignore(5, "")
		for _, c := range []struct {
			filter query.Filter
			want   []int
		}{
			{query.Filter{}, []int{5, 3, 2, 0}},
			{query.Filter{Ignored: "false"}, []int{5, 3, 2, 0}},
			{query.Filter{Ignored: "true"}, []int{4, 1}},
			{query.Filter{Ignored: "any"}, []int{5, 4, 3, 2, 1, 0}},
			{query.Filter{Q: "is:ignored method:POST"}, []int{4, 1}},
		} {
			q, err := c.filter.Parse(time.Now())
			if err != nil {
				t.Fatal(err)
			}
			want := []hookglass.EventID{}
			for _, i := range c.want {
				want = append(want, events[i].ID)
			}
			page := list(t, db, e, store.EventList{Query: q, Limit: 10, Total: true})
			sameEvents(t, fmt.Sprintf("%+v", c.filter), ids(page.Events), want)
			if page.Total != int64(len(want)) || !page.Exact {
				t.Errorf("%+v: total %d", c.filter, page.Total)
			}
			beyond := list(t, db, e, store.EventList{Query: q, Limit: 10, Offset: int64(len(want)), Total: true})
			if len(beyond.Events) != 0 || beyond.Total != int64(len(want)) || beyond.Next != 0 {
				t.Errorf("%+v beyond the end: %+v", c.filter, beyond)
			}
		}
	})
}

func TestTags(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		id := string(several(t, db, e, 2)[0].ID)
		tag := func(name string, want ...string) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error {
				got, err := tx.TagEvent(string(e.ID), id, name)
				if !slices.Equal(got, want) {
					t.Errorf("with %q: %q, want %q", name, got, want)
				}
				return err
			})
		}
		tag("noise", "noise")
		tag("a b", "a b", "noise")
		tag("noise", "a b", "noise")
		tag(`q"%_\é`, "a b", "noise", `q"%_\é`)
		for q, want := range map[string]int{
			"tag:noise": 1, "tag:NOISE": 1, "tag:nois": 0, `tag:"a b"`: 1, "tag:a*": 1, "tag:*": 1, `tag:"q\"%_\\é"`: 1, `tag:"q\"%%\\é"`: 0, "tag:q": 0, "-tag:noise": 1, "-tag:*": 1, "-tag:n*": 1,
			`tag:"a b\",\"noise"`: 0, `tag:","`: 0,
		} {
			if page := list(t, db, e, store.EventList{Query: parse(t, q), Limit: 5, Total: true}); len(page.Events) != want || page.Total != int64(want) {
				t.Errorf("%s finds %d of %d", q, len(page.Events), page.Total)
			}
		}
		writing(t, db, func(tx *store.Tx) error {
			got, err := tx.UntagEvent(string(e.ID), id, "a b")
			if !slices.Equal(got, []string{"noise", `q"%_\é`}) {
				t.Errorf("left are %q", got)
			}
			return err
		})
		for range 2 { // the second time changes nothing
			writing(t, db, func(tx *store.Tx) error {
				if _, err := tx.UntagEvent(string(e.ID), id, "noise"); err != nil {
					return err
				}
				got, err := tx.UntagEvent(string(e.ID), id, `q"%_\é`)
				if len(got) != 0 {
					t.Errorf("left are %q", got)
				}
				return err
			})
		}
		if page := list(t, db, e, store.EventList{Query: parse(t, "tag:*"), Limit: 5}); len(page.Events) != 0 {
			t.Error("an event without tags is found by a tag")
		}
		for _, bad := range []string{"", " x", "x\n", "\xff", "a\x00b", strings.Repeat("é", hookglass.MaxTagLength+1)} {
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { _, err := tx.TagEvent(string(e.ID), id, bad); return err })
			if !hookglass.Is(err, hookglass.CodeValidationFailed) {
				t.Errorf("tag %q: %v", bad, err)
			}
		}
		for i := range hookglass.MaxEventTags {
			writing(t, db, func(tx *store.Tx) error { _, err := tx.TagEvent(string(e.ID), id, fmt.Sprint(i)); return err })
		}
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { _, err := tx.TagEvent(string(e.ID), id, "more"); return err })
		if !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("one tag too many: %v", err)
		}
	})
}

func TestATagIsMadeInTheWorkspaceOfItsEndpoint(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		home := newTenant(t, db, "tags@example.com")
		e := endpointIn(t, db, home.first)
		event := several(t, db, e, 1)[0]
		for range 2 {
			writing(t, db, func(tx *store.Tx) error { _, err := tx.TagEvent(string(e.ID), string(event.ID), "new"); return err })
		}
		reading(t, db, func(v *store.View) error {
			got, err := v.Ints("SELECT count(*) FROM tags WHERE workspace_id = $1 AND name = 'new'", home.first.ID)
			if !slices.Equal(got, []int64{1}) {
				t.Errorf("the workspace has %d such tags", got)
			}
			return err
		})
	})
}

func TestAStreamGoesOnWhereItWas(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		newest := func() (seq int64) {
			reading(t, db, func(v *store.View) (err error) { seq, err = v.NewestSeq(string(e.ID)); return err })
			return seq
		}
		if newest() != 0 {
			t.Error("an endpoint without events has a newest one")
		}
		first := several(t, db, e, 3)
		several(t, db, other, 3)
		begin := newest()
		later := several(t, db, e, 5)
		writing(t, db, func(tx *store.Tx) error { return tx.SetIgnored(string(e.ID), string(later[1].ID), "noise") })
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), string(first[2].ID)) })
		got := []hookglass.EventID{}
		for seq := begin; ; {
			var events []*hookglass.Event
			reading(t, db, func(v *store.View) (err error) { events, err = v.EventsAfter(string(e.ID), seq, 2); return err })
			if len(events) == 0 {
				break
			}
			got = append(got, ids(events)...)
			seq = events[len(events)-1].Seq
		}
		sameEvents(t, "the stream", got, ids(later))
		writing(t, db, func(tx *store.Tx) error { _, err := tx.DeleteAllEvents(string(e.ID)); return err })
		reading(t, db, func(v *store.View) error {
			events, err := v.EventsAfter(string(e.ID), 0, 10)
			sameEvents(t, "after all were deleted", ids(events), nil)
			return err
		})
	})
}

func TestAnExportHasEveryEventThatTheFilterMeans(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		var want []*hookglass.Event
		for i := range 150 {
			event := newEvent(e, fmt.Sprint("even ", i%2))
			event.Size = int64(i%3) << 20 // as large as it says, for how many are read together
			capture(t, db, event)
			if i%2 == 0 {
				want = append(want, event)
			}
		}
		var got []*hookglass.Event
		err := db.EachEvent(t.Context(), hookglass.System, string(e.ID), parse(t, `"even 0"`), store.NoBound, func(event *hookglass.Event) error {
			if event.Payload == nil || string(event.Body) != "even 0" || event.Reply == nil {
				t.Fatalf("not the detail form: %+v", event)
			}
			if len(got) == 3 {
				capture(t, db, newEvent(e, "even 0")) // the export ends all the same, and without it
			}
			got = append(got, event)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		sameEvents(t, "the export", ids(got), ids(want))

		enough := errors.New("enough")
		n := 0
		err = db.EachEvent(t.Context(), hookglass.System, string(e.ID), query.Query{}, store.NoBound, func(*hookglass.Event) error {
			if n++; n == 2 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || n != 2 {
			t.Errorf("ended after %d with %v", n, err)
		}
		empty := newEndpoint(t, db)
		if err := db.EachEvent(t.Context(), hookglass.System, string(empty.ID), query.Query{}, store.NoBound, func(*hookglass.Event) error { return enough }); err != nil {
			t.Error(err)
		}
	})
}

// What the query language says of one event, and what SQL selects, is the same, whatever is in the event.
func TestSQLAndMatchAgree(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		now := time.Now().UTC().Truncate(time.Microsecond)
		odd := []string{"", "a", "A%_\\b", "é", "É", "\xff\xfe", "x\x00y", "\U0010ffab", "in.voice", "application/JSON;x", "application/jsonl", "\"q\"", "*"}
		for i, s := range odd {
			event := newEvent(e, `{"a":["`+s+`"]}`)
			event.ReceivedAt = now.Add(-time.Duration(i) * time.Minute)
			event.Path, event.RawQuery, event.ContentType = "/"+s, "a="+s, s
			event.EventType, event.From, event.To, event.Subject = s, s+"@x", "to "+s, s+s
			event.Headers = append(event.Headers, hookglass.Header{Name: "X-Odd", Value: strings.ReplaceAll(s, "\x00", "")})
			event.Size = int64(i * 100)
			event.Reply.Status = 200 + 50*(i%5)
			event.SignatureStatus = []hookglass.SignatureStatus{hookglass.SignatureFailed, hookglass.SignatureVerified}[i%2]
			if i == 3 {
				event.Type, event.Method, event.Reply, event.ID = hookglass.EventEmail, "EMAIL", nil, hookglass.NewEventID(hookglass.EventEmail, now)
				event.Body = []byte("Content-Disposition: attachment; filename=Bill.pdf\r\n\r\n" + string(event.Body))
				event.Envelope = &hookglass.Envelope{From: "bounces@y", To: []string{"first@y", "blind@y"}, Protocol: "ESMTP"}
			}
			capture(t, db, event)
			writing(t, db, func(tx *store.Tx) error {
				if i%4 == 0 {
					if err := tx.SetIgnored(string(e.ID), string(event.ID), "test"); err != nil {
						return err
					}
				}
				if hookglass.ValidTag(s) {
					_, err := tx.TagEvent(string(e.ID), string(event.ID), s)
					return err
				}
				return nil
			})
		}
		var stored []*hookglass.Event
		if err := db.EachEvent(t.Context(), hookglass.System, string(e.ID), query.Query{}, store.NoBound, func(event *hookglass.Event) error {
			stored = append(stored, event)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(stored) != len(odd) {
			t.Fatalf("%d events are stored", len(stored))
		}
		var queries []string
		for _, s := range []string{`a`, `A%_\b`, `"A%_\\b"`, `"A?_\\b"`, `é`, `É`, "\"x\x00y\"", "\U0010ffab", "in.*", "in_voice", "*", "*a*", `application/json`, `application/*`, `json`, `"\"q\""`, `"\*"`, `/`, `"to *"`, `*@x`, "blind@y"} {
			for _, f := range []string{"", "event:", "path:", "header.x-odd:", "body./a/0:", "query.a:", "content_type:", "from:", "to:", "subject:", "tag:", "provider:", "ip:", "id:"} {
				queries = append(queries, f+s, "-"+f+s)
			}
		}
		for _, s := range []string{"status:200", "status:3xx", "size:>500", "size:0", "sig:failed", "method:post", "method:email", "is:ignored", "is:email", "type:webhook", "has:attachment", "attachment:bill", "attachment:*.png", "after:5m", "before:5m"} {
			queries = append(queries, s, "-"+s)
		}
		reading(t, db, func(v *store.View) error {
			for _, text := range queries {
				q, err := query.Parse(text, now)
				if err != nil {
					t.Errorf("%s: %v", text, err)
					continue
				}
				want := []hookglass.EventID{}
				for _, event := range slices.Backward(stored) {
					if q.Match(event) {
						want = append(want, event.ID)
					}
				}
				page, err := v.Events(string(e.ID), store.EventList{Query: q, Limit: 100, Total: true})
				if err != nil {
					t.Errorf("%q: %v", text, err)
					return err
				}
				sameEvents(t, fmt.Sprintf("%q", text), ids(page.Events), want)
				if page.Total != int64(len(want)) || !page.Exact {
					t.Errorf("%q: total %d of %d", text, page.Total, len(want))
				}
			}
			return nil
		})
	})
}

// endpointIn stores an endpoint of a workspace.
func endpointIn(t testing.TB, db *store.DB, w hookglass.Workspace) hookglass.Endpoint {
	t.Helper()
	e := hookglass.Endpoint{ID: hookglass.NewEndpointID(), AccountID: w.AccountID, WorkspaceID: w.ID, Name: "test", Kind: hookglass.KindWebhook, Enabled: true}
	writing(t, db, func(tx *store.Tx) error { return tx.CreateEndpoint(&e, nil) })
	return e
}

// Captures stand behind who takes a tag off, so that few events are looked through at a time, wherever the tag is.
func TestATagIsTakenOffPieceByPiece(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		home := newTenant(t, db, "retag@example.com")
		e := endpointIn(t, db, home.first)
		events := several(t, db, e, 10)
		for _, i := range []int{0, 1, 8, 9} {
			writing(t, db, func(tx *store.Tx) error {
				_, err := tx.TagEvent(string(e.ID), string(events[i].ID), "old")
				return err
			})
		}
		var reached []int64
		for after := int64(0); ; {
			writing(t, db, func(tx *store.Tx) (err error) {
				after, err = tx.RetagLooking(home.first.ID, after, "old", "new", 3)
				return err
			})
			if reached = append(reached, after); after == 0 {
				break
			}
		}
		if want := []int64{events[2].Seq, events[5].Seq, events[8].Seq, 0}; !slices.Equal(reached, want) {
			t.Errorf("it came to %v, want %v", reached, want)
		}
		reading(t, db, func(v *store.View) error {
			left, err := v.Ints("SELECT count(*) FROM events WHERE tags LIKE '%old%'")
			made, err2 := v.Ints("SELECT count(*) FROM events WHERE tags LIKE '%new%'")
			if !slices.Equal(left, []int64{0}) || !slices.Equal(made, []int64{4}) {
				t.Errorf("%d have the tag still, %d the other", left, made)
			}
			return errors.Join(err, err2)
		})
	})
}

// Who has no room for what is large sees the list form of it, and how much it is.
func TestASparingViewLeavesOutWhatIsLarge(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ep := newEndpoint(t, db)
		events := capture(t, db, newEvent(ep, strings.Repeat("x", 700)), newEvent(ep, strings.Repeat("y", 500)), newEvent(ep, "z"))
		writing(t, db, func(tx *store.Tx) error {
			_, err := tx.RecordReport(string(ep.ID), string(events[2].ID), &hookglass.DeliveryReport{StatusCode: 200, Evidence: &hookglass.DeliveryEvidence{Body: make([]byte, 2000)}})
			return err
		})
		reading(t, db, func(v *store.View) error {
			whole := func(v *store.View, e *hookglass.Event) bool {
				got, err := v.ReportedEvent(string(ep.ID), string(e.ID))
				if err != nil || got.Size != e.Size {
					t.Fatal(got, err)
				}
				return got.Payload != nil
			}
			light, weight := v.Sparing(1000)
			if !whole(light, events[0]) || weight() != 700 {
				t.Errorf("one that is small is left out, of %d bytes", weight())
			}
			if whole(light, events[1]) || weight() != 1200 {
				t.Errorf("what is large together is read, %d bytes", weight())
			}
			light, weight = v.Sparing(1000)
			if whole(light, events[2]) || weight() < 2000 {
				t.Errorf("what was reported of an event counts for nothing beside its %d bytes", weight())
			}
			if !whole(v, events[0]) || !whole(v, events[1]) || !whole(v, events[2]) {
				t.Error("the view itself leaves something out")
			}
			_, err := light.Event(string(ep.ID), string(hookglass.NewEventID(hookglass.EventWebhook, time.Now())))
			if !hookglass.Is(err, hookglass.CodeNotFound) {
				t.Errorf("one that is not there: %v", err)
			}
			return nil
		})
	})
}
