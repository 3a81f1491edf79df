package store_test

import (
	"slices"
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Workspaces may have tags of one name. What becomes of one, on its events too, is nothing to the other.
func TestATagIsOfItsWorkspaceAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		type place struct {
			tag    hookglass.Tag
			e      hookglass.Endpoint
			events []*hookglass.Event
		}
		made := func(w hookglass.Workspace) (p place) {
			t.Helper()
			p.tag = hookglass.Tag{WorkspaceID: w.ID, Name: "vip"}
			p.e = hookglass.Endpoint{ID: hookglass.NewEndpointID(), AccountID: w.AccountID, WorkspaceID: w.ID, Name: "test", Kind: hookglass.KindWebhook, Enabled: true}
			writing(t, db, func(tx *store.Tx) error {
				if err := tx.CreateTag(&p.tag); err != nil {
					return err
				}
				return tx.CreateEndpoint(&p.e, nil)
			})
			p.events = several(t, db, p.e, 2)
			for _, ev := range p.events {
				writing(t, db, func(tx *store.Tx) error { _, err := tx.TagEvent(string(p.e.ID), string(ev.ID), "vip"); return err })
			}
			return p
		}
		mine, others := made(n.first), made(n.second)
		tags := func(p place) (names []string) {
			t.Helper()
			reading(t, db, func(v *store.View) error {
				for _, ev := range p.events {
					found, err := v.ListedEvent(string(p.e.ID), string(ev.ID))
					if err != nil {
						return err
					}
					names = append(names, found.Tags...)
				}
				return nil
			})
			return names
		}
		writing(t, db, func(tx *store.Tx) error {
			changed := mine.tag
			changed.Name, changed.Color = "important", "red"
			if err := tx.SaveTag(changed); err != nil {
				return err
			}
			reached, err := tx.Retag(n.first.ID, mine.events[0].Seq, "vip", "important") // the first was done before
			if reached != 0 {
				t.Errorf("it is done up to %d", reached)
			}
			return err
		})
		if got, kept := tags(mine), tags(others); !slices.Equal(got, []string{"vip", "important"}) || !slices.Equal(kept, []string{"vip", "vip"}) {
			t.Errorf("renamed: %v, and of another workspace %v", got, kept)
		}
		list := func(what string, workspace, after int64, want ...string) {
			t.Helper()
			reading(t, db, func(v *store.View) error {
				all, err := v.Tags(workspace, after, 10)
				names := []string{}
				for _, tag := range all {
					names = append(names, tag.Name+tag.Color)
				}
				same(t, what, names, err, want)
				return nil
			})
		}
		list("all", 0, 0, "importantred", "vip")
		list("those of one workspace", n.first.ID, 0, "importantred")
		list("those behind the first", 0, mine.tag.ID, "vip")
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteTag(mine.tag.ID) })
		list("one was deleted", 0, 0, "vip")
	})
}
