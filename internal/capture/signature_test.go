package capture_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
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
		config, err := b.endpoints.CreateSignatureConfig(t.Context(), hookglass.System, string(b.ep.ID), endpoint.SignatureDraft{Provider: new("generic_hmac"), Secret: new("a secret of theirs")}, false)
		if err != nil {
			t.Fatal(err)
		}
		heard := db.Listen(store.TopicEvents(b.ep.Num)) // by the pages that show them
		defer heard.Close()
		var judging sync.WaitGroup
		var changed atomic.Int64
		for range 4 {
			node := newService(db, b.endpoints, nil)
			judging.Go(func() {
				r, err := node.Rejudge(t.Context(), hookglass.System, string(b.ep.ID), config.ID)
				changed.Add(int64(r.Changed))
				if want := (capture.Rejudged{Checked: events, Changed: r.Changed, Failed: events}); err != nil || r != want {
					t.Errorf("%+v %v", r, err)
				}
			})
		}
		judging.Wait()
		if changed.Load() < events {
			t.Errorf("%d verdicts were changed", changed.Load())
		}
		if heard.Heard() == 0 {
			t.Error("nobody was told of the verdicts")
		}
		r, err := b.captures.Rejudge(t.Context(), hookglass.System, string(b.ep.ID), config.ID)
		if err != nil || r.Changed != 0 || r.Failed != events {
			t.Errorf("afterwards: %+v %v", r, err)
		}
		// Why it failed may be another reason now.
		options := hookglass.GenericOptions{Header: "X-Other"}
		if _, err := b.endpoints.UpdateSignatureConfig(t.Context(), hookglass.System, string(b.ep.ID), config.ID, endpoint.SignatureDraft{Options: &options, NamesOptions: true}); err != nil {
			t.Fatal(err)
		}
		r, err = b.captures.Rejudge(t.Context(), hookglass.System, string(b.ep.ID), config.ID)
		if err != nil || r.Changed != events || r.Failed != events {
			t.Errorf("with a header that none has: %+v %v", r, err)
		}
		err = db.View(t.Context(), hookglass.System, func(v *store.View) error {
			page, err := v.Events(string(b.ep.ID), store.EventList{Limit: events})
			for _, e := range page.Events {
				if e.SignatureStatus != hookglass.SignatureFailed || e.SignatureReason != "missing_signature" {
					t.Errorf("%s is on record as %s: %s", e.ID, e.SignatureStatus, e.SignatureReason)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A proxy that passes on neither the public host nor the public path leaves only --public-url to tell what was signed.
func TestASignatureOfTheURLMayCoverThePublicAddress(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for base, public := range map[string]string{
			"":           "https://public.test",
			"/some/path": "https://public.test:8443/some/path",
		} {
			b := newBench(t, db)
			at, err := url.Parse(public)
			if err != nil {
				t.Fatal(err)
			}
			b.set(func(e *hookglass.Endpoint) {
				e.Response = &hookglass.Response{Status: 200, Body: `{"id":"{{event.id}}"}`}
			})
			b.captures = capture.New(db, capture.Config{Verifiers: b.endpoints, PublicURL: at}, slog.New(slog.DiscardHandler))
			const token = "12345"
			_, err = b.endpoints.CreateSignatureConfig(t.Context(), hookglass.System, string(b.ep.ID), endpoint.SignatureDraft{Provider: new("twilio"), Secret: new(token)}, false)
			if err != nil {
				t.Fatal(err)
			}
			for host, want := range map[string]hookglass.SignatureStatus{public: hookglass.SignatureVerified, "https://other.test": hookglass.SignatureFailed} {
				mac := hmac.New(sha1.New, []byte(token))
				mac.Write([]byte(host + "/hooks/" + string(b.ep.ID) + "/sms?a=%20b" + "BodyhiTo+1"))
				e := b.event(b.post("POST", "/sms?a=%20b", "To=%2B1&Body=hi", "Content-Type", "application/x-www-form-urlencoded",
					"X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil))))
				if e.URL != "http://hooks.test/hooks/"+string(b.ep.ID)+"/sms?a=%20b" || e.SignatureStatus != want {
					t.Errorf("below %q, signed for %s: %s (%s) at %s", base, host, e.SignatureStatus, e.SignatureReason, e.URL)
				}
			}
		}
	})
}
