package capture_test

import (
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A sample is signed by the clock that stamps what is captured, whatever that of the node shows (decision 0025).
func TestASampleIsGenuineOnANodeWhoseClockIsWrong(t *testing.T) {
	late := func() time.Time { return time.Now().Add(-time.Hour) }
	b := newBench(t, storetest.Open(t, store.Config{URL: storetest.Migrated(t), Clock: late}))
	stripe, secret := "stripe", "whsec_test"
	if _, err := b.endpoints.CreateSignatureConfig(t.Context(), hookglass.System, string(b.ep.ID), endpoint.SignatureDraft{Provider: &stripe, Secret: &secret}, false); err != nil {
		t.Fatal(err)
	}
	id, err := b.captures.SendTest(t.Context(), hookglass.System, string(b.ep.ID), "https://hooks.test", capture.TestRequest{Provider: stripe, EventType: "payment_intent.succeeded"})
	if err != nil {
		t.Fatal(err)
	}
	var e *hookglass.Event
	if err := b.db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
		e, err = v.Event(string(b.ep.ID), string(id))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if e.SignatureStatus != hookglass.SignatureVerified {
		t.Errorf("%s, %s", e.SignatureStatus, e.SignatureReason)
	}
}
