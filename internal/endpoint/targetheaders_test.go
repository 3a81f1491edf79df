package endpoint_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// The headers of a target are among the secrets by which a keyset is judged, open after a rotation, and open nowhere
// but at their endpoint.
func TestHeadersOfATargetAreSealed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		_, _, e := searched(t, db)
		keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
		must(err)
		s := endpoint.New(db, keys)
		name, url, headers := "Staging", "https://staging.example.com/", map[string]string{"X-B": "hush", "Authorization": "Bearer hush"}
		made, err := s.CreateForwardingTarget(t.Context(), hookglass.System, string(e.ID), endpoint.TargetDraft{Name: &name, URL: &url, Headers: &headers})
		must(err)
		_, err = s.CreateForwardingTarget(t.Context(), hookglass.System, string(e.ID), endpoint.TargetDraft{Name: &name, URL: &url})
		must(err)
		if !slices.Equal(made.HeaderNames, []string{"Authorization", "X-B"}) || bytes.Contains(made.Sealed, []byte("hush")) {
			t.Errorf("%+v", made)
		}
		var sealed []store.SealedSecret
		must(db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
			sealed, err = v.SealedSecrets(10)
			return err
		}))
		if len(sealed) != 1 {
			t.Fatalf("%d secrets are found", len(sealed))
		}
		_, err = keys.Open(sealed[0].Sealed, sealed[0].Where)
		must(err)
		must(keys.Rotate())
		for _, c := range []struct {
			headers map[string]string
			holds   bool
		}{
			{headers, true}, {map[string]string{"X-B": " hush ", "Authorization": "[redacted]"}, true}, {map[string]string{"X-B": "hush"}, false},
			{map[string]string{"X-B": "hush", "Authorization": "Bearer other"}, false}, {map[string]string{"X-B": "hush", "authorization": "Bearer hush"}, false}, {nil, false},
		} {
			if holds, err := s.HoldsHeaders(made, c.headers); err != nil || holds != c.holds {
				t.Errorf("%v: %v, %v", c.headers, holds, err)
			}
		}
		made.EndpointNum++
		if got, err := s.TargetHeaders(made); err == nil {
			t.Errorf("at another endpoint they open as %v", got)
		}
		disable := false
		_, err = s.UpdateForwardingTarget(t.Context(), hookglass.System, string(e.ID), made.ID, endpoint.TargetDraft{Enabled: &disable})
		must(err)
		var now hookglass.ForwardingTarget
		must(db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
			now, err = v.ForwardingTarget(string(e.ID), made.ID)
			return err
		}))
		if got, err := s.TargetHeaders(now); err != nil || len(got) != 2 {
			t.Errorf("a change of something else leaves %v, %v", got, err)
		}
	})
}
