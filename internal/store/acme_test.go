package store_test

import (
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestWhatACMEKeepsIsReplacedAndForgotten(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		update := func(f func(*store.Tx) error) {
			t.Helper()
			if err := db.Update(t.Context(), hookglass.System, f); err != nil {
				t.Fatal(err)
			}
		}
		read := func(name string) (sealed []byte, err error) {
			err = db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
				sealed, err = v.ACME(name)
				return err
			})
			return sealed, err
		}
		if _, err := read("a.example"); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("nothing is there, and it answers %v", err)
		}
		update(func(tx *store.Tx) error { return tx.PutACME("a.example", []byte("first")) })
		update(func(tx *store.Tx) error { return tx.PutACME("b.example", []byte("other")) })
		update(func(tx *store.Tx) error { return tx.PutACME("a.example", []byte("second")) })
		if got, err := read("a.example"); err != nil || string(got) != "second" {
			t.Errorf("%q, %v", got, err)
		}
		var sealed []store.SealedSecret
		if err := db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
			sealed, err = v.SealedSecrets(10)
			return err
		}); err != nil || len(sealed) != 2 || sealed[0].Where != "acme:sealed:a.example" && sealed[1].Where != "acme:sealed:a.example" {
			t.Errorf("of the sealed it shows %v, %v", sealed, err)
		}
		update(func(tx *store.Tx) error { return tx.DeleteACME("a.example") })
		update(func(tx *store.Tx) error { return tx.DeleteACME("a.example") })
		if _, err := read("a.example"); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("after it was forgotten: %v", err)
		}
		if got, err := read("b.example"); err != nil || string(got) != "other" {
			t.Errorf("what was kept besides: %q, %v", got, err)
		}
	})
}
