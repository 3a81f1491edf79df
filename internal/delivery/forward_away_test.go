package delivery_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hookglass"
	"hookglass/internal/delivery"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// counting is a client without a network: all targets answer 200.
type counting struct {
	delivery.Client
	sent  atomic.Int32
	first func() // is called before the first answer
}

func (c *counting) Turn(context.Context, string, int64) (*outbound.Turn, error) { return nil, nil }

func (c *counting) Do(context.Context, outbound.Request) (*outbound.Response, error) {
	if c.sent.Add(1) == 1 {
		c.first()
	}
	return &outbound.Response{Status: 200}, nil
}

// A node keeps the outcomes of what it has sent while they cannot be stored, for longer than any lease. It runs in the
// time of a bubble, in which only an embedded database can be.
func TestWhatWasSentBeforeTheDatabaseWasAwayIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "hookglass.db")
		y := newYard(t, storetest.Open(t, store.Config{Path: path}))
		target := y.target(y.ep, "http://127.0.0.1:1/", 0)
		outside, err := sql.Open("sqlite", path)
		must(t, err)
		defer outside.Close()
		outside.SetMaxOpenConns(1)
		// While others write it does not sleep: in the bubble that would let minutes pass.
		do := func(statements string) {
			err := errors.New("SQLITE_BUSY")
			for err != nil && strings.Contains(err.Error(), "SQLITE_BUSY") {
				_, err = outside.ExecContext(t.Context(), "BEGIN IMMEDIATE; "+statements+"; COMMIT")
			}
			must(t, err)
		}
		client := &counting{Client: y.client, first: func() {
			// There is no row behind the last possible one: SQLite says that the disk is full.
			do(`CREATE TABLE full (n INTEGER PRIMARY KEY AUTOINCREMENT);
				INSERT INTO full VALUES (9223372036854775807);
				CREATE TRIGGER away BEFORE UPDATE ON forwards BEGIN INSERT INTO full VALUES (NULL); END`)
		}}
		y.client = client
		for range 10 { // they look for deliveries at different instants
			y.start(y.db)
			time.Sleep(100 * time.Millisecond)
		}
		y.capture(y.ep, "", "x")
		time.Sleep(time.Minute)
		do("DROP TRIGGER away")
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
		if n := client.sent.Load(); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
	})
}
