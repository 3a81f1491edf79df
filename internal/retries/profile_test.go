package retries_test

import (
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/endpoint"
	"hookglass/internal/retries"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// arriving makes an endpoint and returns what captures attempts of a delivery at it.
func arriving(t *testing.T, db *store.DB) (ref string, arrive func(delivery, body string)) {
	t.Helper()
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	endpoints := endpoint.New(db, keys)
	captures := capture.New(db, capture.Config{Retention: time.Hour, Verifiers: endpoints}, slog.New(slog.DiscardHandler))
	e, _, err := endpoints.CreateTemporary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(e.ID), func(delivery, body string) {
		t.Helper()
		target, err := captures.Admit(t.Context(), string(e.ID))
		if err != nil {
			t.Fatal(err)
		}
		_, err = captures.Capture(t.Context(), target, &capture.Arrival{
			Method: "POST", Path: "/", Target: "/hooks/x", Proto: "HTTP/1.1", Host: "x", Scheme: "http", Client: netip.MustParseAddr("192.0.2.7"), Body: []byte(body), At: time.Now(),
			Headers: hookglass.Headers{{Name: "X-GitHub-Event", Value: "push"}, {Name: "X-GitHub-Delivery", Value: delivery}, {Name: "User-Agent", Value: "GitHub-Hookshot/1"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func profile(t *testing.T, s *retries.Service, ref string) hookglass.RetryProfile {
	t.Helper()
	p, err := s.Profile(t.Context(), hookglass.System, ref, retries.Options{Events: 100, Groups: 10})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The newest events are looked at first, so that an answer comes in time, and says that there are older ones.
func TestAProfileEndsForItsTime(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ref, arrive := arriving(t, db)
		arrive("oldest", "{}")
		const later = 70
		for n := range later {
			arrive("one", strings.Repeat(" ", n%2)+"{}")
		}
		s := retries.New(db)
		p := profile(t, s, ref)
		if p.More || p.Events != later+1 || p.Summary.Deliveries != 2 || len(p.Groups) != 2 || p.Groups[0].Total != later || len(p.Groups[0].Attempts) != 50 {
			t.Fatalf("in time: %d events, more %t, %+v", p.Events, p.More, p.Summary)
		}
		if a := p.Groups[0].Attempts; a[0].MoreChange || a[1].MoreChange || len(a[1].Changes) != 1 || p.Summary.Renewed[hookglass.RoleBody] != hookglass.RenewalChanged {
			t.Errorf("what changes: %+v, %v", a[1], p.Summary.Renewed)
		}
		s.Within(0)
		p = profile(t, s, ref)
		if !p.More || p.Events == 0 || p.Events > later || p.Summary.Deliveries != 1 || p.Groups[0].Total != p.Events {
			t.Fatalf("without time: %d events, more %t, %+v", p.Events, p.More, p.Summary)
		}
		if a := p.Groups[0].Attempts; a[0].MoreChange || !a[1].MoreChange || len(a[1].Changes) != 0 {
			t.Errorf("what nobody looked at: %+v", a[:2])
		}
	})
}

func TestABodyThatIsTooLargeToBeComparedMayHaveChanged(t *testing.T) {
	db := storetest.SQLite(t)
	ref, arrive := arriving(t, db)
	arrive("one", "{}")
	arrive("one", `"`+strings.Repeat("x", 256<<10)+`"`)
	p := profile(t, retries.New(db), ref)
	if len(p.Groups) != 1 || len(p.Groups[0].Attempts) != 2 || !p.Groups[0].Attempts[1].MoreChange {
		t.Errorf("%+v", p.Groups)
	}
}
