package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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

// listening waits until nodes hear one another, which they do a moment after their start, and have woken everybody.
func listening(t *testing.T, nodes ...*store.DB) {
	t.Helper()
	for began := time.Now(); slices.ContainsFunc(nodes, func(db *store.DB) bool { return !db.Listens() }); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("a node hears nothing")
		}
	}
}

// What a command of the administration changes is told although it ends at once.
func TestWhatIsAnnouncedLastIsTold(t *testing.T) {
	dsn := storetest.Migrated(t)
	node, command := storetest.Open(t, store.Config{URL: dsn}), storetest.Open(t, store.Config{URL: dsn})
	listening(t, node, command)
	heard := node.Listen(store.TopicTokens)
	defer heard.Close()
	err := command.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		tx.Announce(store.TopicTokens)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-heard.C:
	case <-time.After(time.Minute):
		t.Error("nothing was heard")
	}
}

// A node that stands still is waited for, however much is told at once, but not for ever.
func TestANodeThatDoesNotAnswerIsWaitedForAWhile(t *testing.T) {
	dsn := storetest.Migrated(t)
	node := storetest.Open(t, store.Config{URL: dsn})
	listening(t, node)
	limit := 200 * time.Millisecond
	node.TellFor(limit)
	tell := func(topics int) time.Duration {
		t.Helper()
		began := time.Now()
		err := node.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			for i := range topics {
				tx.AnnounceAtOnce(store.TopicEvents(int64(i)), store.TopicEndpoints)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["application_name"] = "hookglass listening"
	frozen, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close(context.WithoutCancel(t.Context()))
	for _, topics := range []int{1, 5_000} {
		if took := tell(topics); took < limit {
			t.Errorf("%d topics were told in %v, though one node has not heard", topics, took)
		}
	}
}

func TestWhatIsSetIsHeardEverywhereWhenItIsAnswered(t *testing.T) {
	dsn := storetest.Migrated(t)
	whatIsSetIsHeard(t, storetest.Open(t, store.Config{URL: dsn}), storetest.Open(t, store.Config{URL: dsn}))
}

func whatIsSetIsHeard(t *testing.T, node, other *store.DB) {
	t.Helper()
	e := newEndpoint(t, node)
	listening(t, node, other)
	node.TellFor(time.Minute)
	heard := other.Listen(store.TopicEndpoints)
	defer heard.Close()
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
	dsn := storetest.Migrated(t)
	other := storetest.Open(t, store.Config{URL: dsn})
	e := newEndpoint(t, other)
	heard := other.Listen(store.TopicEndpoints)
	defer heard.Close()
	for began := time.Now(); heard.Heard() < 3; {
		if time.Since(began) > time.Minute {
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

// Topics travel between nodes as words of one text.
func TestEveryTopicIsHeardByOtherNodes(t *testing.T) {
	dsn := storetest.Migrated(t)
	node, other := storetest.Open(t, store.Config{URL: dsn}), storetest.Open(t, store.Config{URL: dsn})
	listening(t, node, other)
	for _, topic := range []string{
		store.TopicEndpoints, store.TopicJobs, store.TopicForwards, store.TopicNotifications, store.TopicSecrets, store.TopicTokens, store.TopicFlows,
		store.TopicTasks(store.TaskActions), store.TopicEvents(1), store.TopicAccount(1), store.TopicTunnel(1), store.TopicCommands(1), store.TopicFlow(1),
	} {
		heard := other.Listen(topic)
		defer heard.Close()
		err := node.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			tx.Announce(topic)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-heard.C:
		case <-time.After(time.Minute):
			t.Errorf("%q was not heard", topic)
		}
	}
}
