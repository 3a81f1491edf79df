package capture_test

import (
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// What the sender sends again is told by an id of its own, a header, a value in the body or all of it. Where that is
// missing, or may be that of something else, an event is like no other.
func TestWhatIsTheSameToATarget(t *testing.T) {
	github := func(id string) []string { return []string{"X-GitHub-Event", "push", "X-GitHub-Delivery", id} }
	gitlab := func(headers ...string) []string { return append([]string{"X-Gitlab-Event", "Push Hook"}, headers...) }
	stripe := func(id string) string { return `{"object":"event","id":"evt_` + id + `","type":"charge.refunded"}` }
	long := strings.Repeat("a", 600)
	type sent struct {
		path, body string
		headers    []string
	}
	for _, c := range []struct {
		name      string
		by        hookglass.DedupeBy
		one, next sent
		same      bool
	}{
		{"a delivery id", "id", sent{"/", `{"n":1}`, github("1")}, sent{"/", `{"n":2}`, github("1")}, true},
		{"another delivery id", "id", sent{"/", `{}`, github("1")}, sent{"/", `{}`, github("2")}, false},
		{"Standard Webhooks", "id", sent{"/", `1`, []string{"Webhook-Id", "m"}}, sent{"/", `2`, []string{"Webhook-Id", "m"}}, true},
		{"an event id that is of one event", "id", sent{"/", stripe("1"), nil}, sent{"/a", stripe("1"), nil}, true},
		{"another event id", "id", sent{"/", stripe("1"), nil}, sent{"/", stripe("2"), nil}, false},
		{"no id", "id", sent{"/", `{"id":1}`, nil}, sent{"/", `{"id":1}`, nil}, false},
		{"GitLab's id of a delivery", "id", sent{"/", `{}`, gitlab("Idempotency-Key", "k")}, sent{"/", `{}`, gitlab("Idempotency-Key", "k")}, true},
		{"GitLab's id that hooks caused by hooks share", "id", sent{"/", `{}`, gitlab("X-Gitlab-Event-UUID", "u")}, sent{"/", `{}`, gitlab("X-Gitlab-Event-UUID", "u")}, false},
		{"an id that is cut", "id", sent{"/", `{}`, github(long + "1")}, sent{"/", `{}`, github(long + "2")}, false},
		{"a header", "header.idempotency-KEY", sent{"/", "1", []string{"Idempotency-Key", "k"}}, sent{"/b", "2", []string{"idempotency-key", "k"}}, true},
		{"another value", "header.X-A", sent{"/", "", []string{"X-A", "1"}}, sent{"/", "", []string{"X-A", "2"}}, false},
		{"a header's case", "header.X-A", sent{"/", "", []string{"X-A", "a"}}, sent{"/", "", []string{"X-A", "A"}}, false},
		{"a long header", "header.X-A", sent{"/", "", []string{"X-A", long + "1"}}, sent{"/", "", []string{"X-A", long + "2"}}, false},
		{"no header", "header.X-A", sent{"/", "1", nil}, sent{"/", "1", nil}, false},
		{"an empty header", "header.X-A", sent{"/", "1", []string{"X-A", ""}}, sent{"/", "1", []string{"X-A", ""}}, false},
		{"a string", "/data/id", sent{"/", `{"data":{"id":"a"},"n":1}`, nil}, sent{"/", `{"data": {"id": "a"}}`, nil}, true},
		{"a number", "/0/id", sent{"/", `[{"id":17}]`, nil}, sent{"/", `[{"id":17,"n":2}]`, nil}, true},
		{"a number and a string", "/id", sent{"/", `{"id":17}`, nil}, sent{"/", `{"id":"17"}`, nil}, false},
		{"null", "/id", sent{"/", `{"id":null}`, nil}, sent{"/", `{"id":null}`, nil}, false},
		{"an object", "/id", sent{"/", `{"id":{}}`, nil}, sent{"/", `{"id":{}}`, nil}, false},
		{"true", "/id", sent{"/", `{"id":true}`, nil}, sent{"/", `{"id":true}`, nil}, false},
		{"an empty string", "/id", sent{"/", `{"id":""}`, nil}, sent{"/", `{"id":""}`, nil}, false},
		{"no JSON", "/id", sent{"/", `id=1`, nil}, sent{"/", `id=1`, nil}, false},
		{"bytes that are no UTF-8", "/id", sent{"/", "{\"id\":\"\xff\"}", nil}, sent{"/", "{\"id\":\"\xfe\"}", nil}, false},
		{"a number that goes on behind what is looked at", "/id",
			sent{"/", strings.Repeat(" ", 1<<20-8) + `{"id":17}`, nil}, sent{"/", strings.Repeat(" ", 1<<20-8) + `{"id":17}`, nil}, false},
		{"the body", "body", sent{"/a?b", "x", nil}, sent{"/a?b", "x", []string{"X-A", "1"}}, true},
		{"another body", "body", sent{"/", "x", nil}, sent{"/", "y", nil}, false},
		{"another path", "body", sent{"/a", "x", nil}, sent{"/b", "x", nil}, false},
		{"no body", "body", sent{"/", "", nil}, sent{"/", "", nil}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := storetest.SQLite(t)
			b := newBench(t, db)
			target := hookglass.ForwardingTarget{EndpointNum: b.ep.Num, Name: "there", URL: "https://a.example.com/", Enabled: true, Timeout: time.Second, Dedupe: hookglass.Dedupe{By: c.by, Window: time.Hour}}
			if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) }); err != nil {
				t.Fatal(err)
			}
			first := b.event(b.post("POST", c.one.path, c.one.body, c.one.headers...))
			next := b.event(b.post("POST", c.next.path, c.next.body, c.next.headers...))
			err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
				f, _, err := v.Forward(string(b.ep.ID), target.ID, next.ID)
				if err != nil {
					return err
				}
				found, err := v.Duplicates([]int64{f.Num})
				if d, same := found[f.Num]; same != c.same || same && d.Of != first.ID {
					t.Errorf("%+v, want %t", found, c.same)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A request that the condition leaves out is the first of nothing.
func TestTheConditionOfATargetComesFirst(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		target := hookglass.ForwardingTarget{EndpointNum: b.ep.Num, Name: "there", URL: "https://a.example.com/", Enabled: true, Timeout: time.Second, When: "method:POST", Dedupe: hookglass.Dedupe{By: "header.X-Id", Window: time.Hour}}
		if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) }); err != nil {
			t.Fatal(err)
		}
		b.event(b.post("PUT", "/", "x", "X-Id", "1"))
		first := b.event(b.post("POST", "/", "x", "X-Id", "1"))
		second := b.event(b.post("POST", "/", "x", "X-Id", "1"))
		err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
			for _, c := range []struct {
				event, same hookglass.EventID
			}{{first.ID, ""}, {second.ID, first.ID}} {
				f, _, err := v.Forward(string(b.ep.ID), target.ID, c.event)
				if err != nil {
					return err
				}
				found, err := v.Duplicates([]int64{f.Num})
				if err != nil {
					return err
				}
				if found[f.Num].Of != c.same {
					t.Errorf("%s is the same as %q, want %q", c.event, found[f.Num].Of, c.same)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
