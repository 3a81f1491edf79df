package store_test

import (
	"context"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// set changes what people set, as a call to the API does.
func set(t *testing.T, db *store.DB, e hookglass.Endpoint) {
	t.Helper()
	if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.SaveEndpoint(&e) }); err != nil {
		t.Fatal(err)
	}
}

// declared is set as a declaration does.
func declared(t *testing.T, db *store.DB, e hookglass.Endpoint) {
	t.Helper()
	err := db.Together(t.Context(), func(ctx context.Context) error {
		return db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.SaveEndpoint(&e) })
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsSetIsHeardEverywhereWhenItIsAnswered(t *testing.T) {
	dsn := storetest.Postgres(t)
	node, other := storetest.Open(t, store.Config{URL: dsn}), storetest.Open(t, store.Config{URL: dsn})
	e := newEndpoint(t, node)
	heard := other.Listen(store.TopicEndpoints)
	defer heard.Close()
	for began := time.Now(); heard.Heard() < 3; { // a node that starts listens after a moment
		if time.Since(began) > 10*time.Second {
			t.Fatal("the other node hears nothing")
		}
		set(t, node, e)
	}
	for range 20 {
		before := heard.Heard()
		set(t, node, e)
		if heard.Heard() == before {
			t.Fatal("the other node goes by what was set before")
		}
		before = heard.Heard()
		declared(t, node, e)
		if heard.Heard() == before {
			t.Fatal("the other node goes by what was set before the declaration")
		}
	}
}

// What sets something and ends, as a command of administration does, is heard all the same.
func TestWhatIsSetIsHeardWhenWhoSetItIsGone(t *testing.T) {
	dsn := storetest.Postgres(t)
	other := storetest.Open(t, store.Config{URL: dsn})
	e := newEndpoint(t, other)
	heard := other.Listen(store.TopicEndpoints)
	defer heard.Close()
	for began := time.Now(); heard.Heard() < 3; {
		if time.Since(began) > 10*time.Second {
			t.Fatal("nothing was heard")
		}
		command, err := store.Open(t.Context(), store.Config{URL: dsn})
		if err != nil {
			t.Fatal(err)
		}
		set(t, command, e)
		if err := command.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
