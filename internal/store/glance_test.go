package store_test

import (
	"errors"
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Looks beside one another see what one after the other would, and fail as that would.
func TestLooksBesideOneAnother(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		one, other := newEndpoint(t, db), newEndpoint(t, db)
		first, second := errors.New("the first look fails"), errors.New("the second look fails")
		look := func(e hookglass.Endpoint, found *hookglass.Endpoint, err error) func(*store.View) error {
			return func(v *store.View) error {
				var missing error
				if *found, missing = v.Endpoint(string(e.ID)); missing != nil {
					return missing
				}
				return err
			}
		}
		for name, read := range map[string]func(func(*store.View) error) error{
			"at a glance":      func(fn func(*store.View) error) error { return db.Glance(t.Context(), hookglass.System, fn) },
			"in a transaction": func(fn func(*store.View) error) error { return db.View(t.Context(), hookglass.System, fn) },
		} {
			var a, b hookglass.Endpoint
			err := read(func(v *store.View) error { return v.Together(look(one, &a, nil), look(other, &b, nil)) })
			if err != nil || a.Num != one.Num || b.Num != other.Num {
				t.Errorf("%s: found %d and %d instead of %d and %d: %v", name, a.Num, b.Num, one.Num, other.Num, err)
			}
			for _, c := range []struct{ one, other, want error }{{first, nil, first}, {nil, second, second}, {first, second, first}} {
				if err := read(func(v *store.View) error { return v.Together(look(one, &a, c.one), look(other, &b, c.other)) }); !errors.Is(err, c.want) {
					t.Errorf("%s: with %v and %v it fails with %v", name, c.one, c.other, err)
				}
			}
		}
	})
}
