package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A database takes some characters for one another; a search does not.
func TestASearchTellsRareCharactersApart(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		rare := []string{"\ufffd", "\ufffe", "\uffff", "\U0010ffff", "\ue000"}
		for _, c := range rare {
			ev := newEvent(e, "{}")
			ev.Path = "/a" + c + "b"
			if err := db.Capture(t.Context(), 0, ev); err != nil {
				t.Fatal(err)
			}
			if c != "\ufffd" { // no tag can have the others
				continue
			}
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				_, err := tx.TagEvent(string(e.ID), string(ev.ID), "t"+c)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range rare {
			for _, q := range []string{"path:/*" + c + "*", "path:/a" + c, "tag:t" + c, "tag:*" + c, "-path:*" + c + "*", "-tag:t" + c} {
				parsed, err := query.Parse(q, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				var listed []string
				reading(t, db, func(v *store.View) error {
					page, err := v.Events(string(e.ID), store.EventList{Query: parsed, Limit: 10})
					for _, found := range page.Events {
						listed = append(listed, found.Path)
					}
					return err
				})
				tagged := c == "\ufffd" || !strings.Contains(q, "tag:")
				var want []string // newest first
				for _, other := range slices.Backward(rare) {
					if has := tagged && other == c; has != strings.HasPrefix(q, "-") {
						want = append(want, "/a"+other+"b")
					}
				}
				if !slices.Equal(listed, want) {
					t.Errorf("%+q: %+q, want %+q", q, listed, want)
				}
			}
		}
	})
}

// The database has the bytes that a sender wrote, and a search means what is shown of them.
func TestASearchFindsWhatIsNotUTF8AsItIsShown(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		for _, path := range []string{"/caf\xe9", "/café", "/\xe9é", "/cafe"} {
			ev := newEvent(e, "{}")
			ev.Path, ev.EventType, ev.ContentType = path, path[1:], "text/"+path[1:]
			if err := db.Capture(t.Context(), 0, ev); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			q    string
			want []string
		}{
			{"path:/café", []string{"/café", "/caf\xe9"}},
			{"path:*fé", []string{"/café", "/caf\xe9"}},
			{"-path:café", []string{"/cafe", "/\xe9é"}},
			{"path:Ã©", []string{"/\xe9é"}},
			{"path:é", []string{"/\xe9é", "/café", "/caf\xe9"}},
			{"path:/cafe", []string{"/cafe"}},
			{"event:café", []string{"/café", "/caf\xe9"}},
			{"event:*é", []string{"/café", "/caf\xe9"}},
			{"content_type:text/café", []string{"/café", "/caf\xe9"}},
		} {
			parsed, err := query.Parse(c.q, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			var listed []string
			reading(t, db, func(v *store.View) error {
				page, err := v.Events(string(e.ID), store.EventList{Query: parsed, Limit: 10})
				for _, found := range page.Events {
					listed = append(listed, found.Path)
				}
				return err
			})
			if !slices.Equal(listed, c.want) {
				t.Errorf("%s: %+q, want %+q", c.q, listed, c.want)
			}
		}
	})
}

// Among many events an id is looked up before the search. None holds a NUL, nor does PostgreSQL.
func TestASearchAmongManyEventsTakesAnyID(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		if err := db.Capture(t.Context(), 0, newEvent(e, "{}")); err != nil {
			t.Fatal(err)
		}
		writing(t, db, func(tx *store.Tx) error {
			return tx.Exec("UPDATE endpoint_stats SET event_count = 1000000 WHERE endpoint = $1", e.Num)
		})
		q, err := query.Parse("id:req_\x00", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		reading(t, db, func(v *store.View) error {
			page, err := v.Events(string(e.ID), store.EventList{Query: q, Limit: 10})
			if len(page.Events) > 0 {
				t.Errorf("found %d events", len(page.Events))
			}
			return err
		})
	})
}
