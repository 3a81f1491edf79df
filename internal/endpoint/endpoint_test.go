package endpoint_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// searched is an endpoint of somebody's.
func searched(t *testing.T, db *store.DB) (*endpoint.Service, hookglass.Principal, hookglass.Endpoint) {
	t.Helper()
	s := endpoint.New(db, nil)
	owner, err := account.New(db, slog.New(slog.DiscardHandler)).Register(t.Context(), account.Registration{Email: "ada@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	who, name := hookglass.Principal{Account: owner.Account.ID, User: owner.User.ID}, "Searched"
	e, err := s.Create(t.Context(), who, endpoint.Draft{Name: &name})
	if err != nil {
		t.Fatal(err)
	}
	return s, who, e
}

func TestASavedSearchIsReplacedWhereNoneCanBeAdded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s, who, e := searched(t, db)
		for i := range 50 {
			if _, err := s.SaveSearch(t.Context(), who, string(e.ID), fmt.Sprintf("search %d", i), "sig:failed"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.SaveSearch(t.Context(), who, string(e.ID), "search 50", "sig:failed"); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("the 51st is answered %v", err)
		}
		for _, q := range []string{"a\x00b", "a\xffb"} {
			if _, err := s.SaveSearch(t.Context(), who, string(e.ID), "search 7", q); !hookglass.Is(err, hookglass.CodeValidationFailed) {
				t.Errorf("%q: %v", q, err)
			}
		}
		saved, err := s.SaveSearch(t.Context(), who, string(e.ID), "search 7", "sig:verified")
		if err != nil || saved.Query != "sig:verified" {
			t.Errorf("one of the 50 is not replaced: %+v, %v", saved, err)
		}
	})
}

// Faults come in the order of the names: a map has another order each time, and the same request the same answer.
func TestWhatIsWrongOfAnAnswersHeadersIsSaidInOrder(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s, who, e := searched(t, db)
		headers, want := map[string]string{}, []string(nil)
		for _, letter := range "abcdefgh" {
			headers[string(letter)+" x"] = "1"
			want = append(want, fmt.Sprintf("has the invalid name %q", string(letter)+" x"))
		}
		answer := &hookglass.Response{Status: 200, Headers: headers}
		for range 3 {
			_, err := s.Update(t.Context(), who, string(e.ID), endpoint.Draft{Response: &answer})
			var refused *hookglass.Error
			if !errors.As(err, &refused) {
				t.Fatal(err)
			}
			var got []string
			for _, f := range refused.Details {
				got = append(got, f.Message)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// Who saves at the same time as others is counted with them.
func TestNoMoreSearchesAreSavedAtOnceThanThereMayBe(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s, who, e := searched(t, db)
		var saved atomic.Int64
		var savers sync.WaitGroup
		for i := range 60 {
			savers.Go(func() {
				if _, err := s.SaveSearch(t.Context(), who, string(e.ID), fmt.Sprintf("search %d", i), "sig:failed"); err == nil {
					saved.Add(1)
				} else if !hookglass.Is(err, hookglass.CodeValidationFailed) {
					t.Error(err)
				}
			})
		}
		savers.Wait()
		if saved.Load() != 50 {
			t.Errorf("%d were saved", saved.Load())
		}
	})
}

// plain seals nothing.
type plain struct{}

func (plain) Seal(text []byte, _ string) ([]byte, error) { return text, nil }
func (plain) Open(text []byte, _ string) ([]byte, error) { return text, nil }

// A secret that takes the place of another stays, also where something else of the config is changed at the same time.
func TestASecretThatWasReplacedIsNotPutBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		_, who, e := searched(t, db)
		s, id, enabled := endpoint.New(db, plain{}), "github", true
		first := "first"
		c, err := s.CreateSignatureConfig(t.Context(), who, string(e.ID), endpoint.SignatureDraft{Provider: &id, Secret: &first}, false)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 40 {
			secret := fmt.Sprintf("secret %d", n)
			var both sync.WaitGroup
			both.Go(func() {
				if _, err := s.CreateSignatureConfig(t.Context(), who, string(e.ID), endpoint.SignatureDraft{Provider: &id, Secret: &secret}, true); err != nil {
					t.Error(err)
				}
			})
			both.Go(func() {
				if _, err := s.UpdateSignatureConfig(t.Context(), who, string(e.ID), c.ID, endpoint.SignatureDraft{Enabled: &enabled}); err != nil {
					t.Error(err)
				}
			})
			both.Wait()
			now, err := s.SignatureConfigs(t.Context(), who, string(e.ID))
			if err != nil || len(now) != 1 {
				t.Fatalf("%d configs, %v", len(now), err)
			}
			if holds, err := s.HoldsSecret(now[0], secret); err != nil || !holds {
				t.Fatalf("after %d times the secret is an older one, %v", n+1, err)
			}
		}
	})
}
