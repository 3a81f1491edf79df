package capture_test

import (
	"strings"
	"sync"
	"testing"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Two people may press the button at the same time, whatever the nodes that they reach.
func TestEventsAreJudgedAgainSideBySide(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		const events = 120
		for range events {
			b.post("POST", "/", "{}", "X-Signature", strings.Repeat("0", 64))
		}
		config, err := b.endpoints.CreateSignatureConfig(t.Context(), hookglass.System, string(b.ep.ID), endpoint.SignatureDraft{Provider: ptr("generic_hmac"), Secret: ptr("a secret of theirs")}, false)
		if err != nil {
			t.Fatal(err)
		}
		var judging sync.WaitGroup
		for range 4 {
			node := newService(db, b.endpoints, nil)
			judging.Go(func() {
				r, err := node.Rejudge(t.Context(), hookglass.System, string(b.ep.ID), config.ID)
				if want := (capture.Rejudged{Checked: events, Changed: r.Changed, Failed: events}); err != nil || r != want {
					t.Errorf("%+v %v", r, err)
				}
			})
		}
		judging.Wait()
		r, err := b.captures.Rejudge(t.Context(), hookglass.System, string(b.ep.ID), config.ID)
		if err != nil || r.Changed != 0 || r.Failed != events {
			t.Errorf("afterwards: %+v %v", r, err)
		}
	})
}
