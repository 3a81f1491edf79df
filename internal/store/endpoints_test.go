package store_test

import (
	"slices"
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestEndpointsAreFoundByTheWordsOfTheirNamesAndIds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		made := map[string]hookglass.Endpoint{}
		for _, e := range []hookglass.Endpoint{
			{Name: "Stripe staging", CustomID: "pay-1"},
			{Name: "Stripe live 100%_\\"},
			{Name: "Übung", EmailLocalPart: "orders.inbox", Kind: hookglass.KindEmail},
			{Name: "gone staging"},
		} {
			e.ID, e.Enabled = hookglass.NewEndpointID(), true
			if e.Kind == "" {
				e.Kind = hookglass.KindWebhook
			}
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.CreateEndpoint(&e, nil) })
			if err != nil {
				t.Fatal(err)
			}
			made[e.Name] = e
		}
		gone := made["gone staging"]
		if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEndpoint(&gone) }); err != nil {
			t.Fatal(err)
		}
		named := func(who hookglass.Principal, limit int, words ...string) (names []string) {
			err := db.View(t.Context(), who, func(v *store.View) error {
				found, err := v.EndpointsNamed(words, limit)
				for _, e := range found {
					names = append(names, e.Name)
				}
				return err
			})
			if err != nil {
				t.Fatalf("%q: %v", words, err)
			}
			return names
		}
		for _, c := range []struct {
			words []string
			limit int
			want  []string
		}{
			{[]string{"stripe"}, 0, []string{"Stripe staging", "Stripe live 100%_\\"}},
			{[]string{"stripe"}, 1, []string{"Stripe staging"}},
			{[]string{"STAGING", "pe"}, 0, []string{"Stripe staging"}},
			{[]string{"Pay-1"}, 0, []string{"Stripe staging"}},
			{[]string{"orders.in"}, 0, []string{"Übung"}},
			{[]string{"Übung"}, 0, []string{"Übung"}},
			{[]string{string(made["Übung"].ID)}, 0, []string{"Übung"}},
			{[]string{"0%_\\"}, 0, []string{"Stripe live 100%_\\"}},
			{[]string{"s%g"}, 0, nil},
			{[]string{"\x00\xff"}, 0, nil},
			{[]string{"stripe", "nowhere"}, 0, nil},
		} {
			if got := named(hookglass.System, c.limit, c.words...); !slices.Equal(got, c.want) {
				t.Errorf("%q: %q, want %q", c.words, got, c.want)
			}
		}
		if got := named(hookglass.Principal{Account: 77}, 0, "stripe"); got != nil {
			t.Errorf("another account finds %q", got)
		}
	})
}
