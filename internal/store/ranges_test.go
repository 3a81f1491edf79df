package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// rangesYard is a PostgreSQL database whose ranges hold few payloads.
type rangesYard struct {
	t  *testing.T
	db *store.DB
	ep hookglass.Endpoint
}

func newRangesYard(t *testing.T, least int64) *rangesYard {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	db.RangeLeast(least)
	return &rangesYard{t, db, newEndpoint(t, db)}
}

func (y *rangesYard) tend() {
	y.t.Helper()
	if err := y.db.TendPayloads(y.t.Context(), time.Hour); err != nil {
		y.t.Fatal(err)
	}
}

// capture stores events that came at a time and returns their ids.
func (y *rangesYard) capture(n int, at time.Time) []string {
	y.t.Helper()
	var ids []string
	for i := range n {
		ev := newEvent(y.ep, fmt.Sprint(i))
		ev.ReceivedAt = at
		if err := y.db.CaptureWith(y.t.Context(), 0, ev, store.Work{}); err != nil {
			y.t.Fatal(err)
		}
		ids = append(ids, string(ev.ID))
	}
	return ids
}

// purge deletes what came before a time as the retention of all.
func (y *rangesYard) purge(cutoff time.Time) {
	y.t.Helper()
	for more := true; more; {
		writing(y.t, y.db, func(tx *store.Tx) (err error) {
			_, more, err = tx.PurgeEvents(store.PurgeDue{EndpointNum: y.ep.Num, Cutoff: cutoff, Longest: true})
			return err
		})
	}
}

func (y *rangesYard) ranges() (names []string) {
	y.t.Helper()
	reading(y.t, y.db, func(v *store.View) (err error) {
		names, err = v.Texts("SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'payloads'::regclass ORDER BY length(c.relname), 1")
		return err
	})
	return names
}

func (y *rangesYard) count(table string) (n int64) {
	y.t.Helper()
	reading(y.t, y.db, func(v *store.View) error {
		found, err := v.Ints("SELECT count(*) FROM " + table)
		n = found[0]
		return err
	})
	return n
}

// readable checks that events are there with their bodies.
func (y *rangesYard) readable(ids []string) {
	y.t.Helper()
	for i, id := range ids {
		reading(y.t, y.db, func(v *store.View) error {
			ev, err := v.Event(string(y.ep.ID), id)
			if err == nil && string(ev.Body) != fmt.Sprint(i) {
				y.t.Errorf("%s has the body %q", id, ev.Body)
			}
			return err
		})
	}
}

func TestRangesOfPayloadsAreMadeAheadAndDroppedByRetention(t *testing.T) {
	y := newRangesYard(t, 10)
	y.tend()
	if got, want := y.ranges(), []string{"payloads_0_11", "payloads_rest", "payloads_11_21", "payloads_21_31"}; !slices.Equal(got, want) {
		t.Fatalf("at first there are %v, want %v", got, want)
	}
	old := time.Now().Add(-time.Hour)
	y.capture(12, old)
	kept := y.capture(3, time.Now())
	y.tend()
	y.readable(kept)
	if n := y.count("payloads_0_11") + y.count("payloads_11_21"); n != 15 {
		t.Errorf("%d payloads are in the first ranges", n)
	}

	y.purge(time.Now().Add(-time.Minute))
	if n := y.count("events"); n != 3 {
		t.Errorf("%d events are left", n)
	}
	// Those of the first range wait for it; those of the range of the newest event do not.
	if a, b := y.count("payloads_0_11"), y.count("payloads_11_21"); a != 10 || b != 3 {
		t.Errorf("%d and %d payloads are left", a, b)
	}
	d, _ := dump(t, y.db)
	if n := len(d.rows["payloads"]); n != 3 {
		t.Errorf("a dump has %d payloads", n)
	}
	y.tend()
	if got := y.ranges(); slices.Contains(got, "payloads_0_11") || !slices.Contains(got, "payloads_11_21") {
		t.Errorf("there are %v", got)
	}
	y.readable(kept)
}

// What people delete is gone at once, also from a range that is full.
func TestWhatIsDeletedDoesNotWaitForItsRange(t *testing.T) {
	y := newRangesYard(t, 5)
	y.tend()
	ids := y.capture(12, time.Now())
	writing(t, y.db, func(tx *store.Tx) error { return tx.DeleteEvent(string(y.ep.ID), ids[0]) })
	if n := y.count("payloads"); n != 11 {
		t.Errorf("%d payloads are left", n)
	}
}

// What came before there were ranges, or where none was made in time, becomes a range.
func TestWhatHasNoRangeIsAdopted(t *testing.T) {
	y := newRangesYard(t, 10)
	first := y.capture(4, time.Now())
	if n := y.count("payloads_rest"); n != 4 {
		t.Fatalf("%d payloads are in the default range", n)
	}
	y.tend()
	second := y.capture(40, time.Now()) // beyond what is made ahead
	if n := y.count("payloads_rest"); n == 0 {
		t.Fatal("nothing is in the default range")
	}
	y.tend()
	if n := y.count("payloads_rest"); n != 0 {
		t.Errorf("%d payloads are in the default range", n)
	}
	y.readable(first)
	y.readable(second)
	third := y.capture(30, time.Now())
	y.tend()
	y.readable(third)
	if n := y.count("payloads"); n != 74 {
		t.Errorf("%d payloads", n)
	}
}

// An adoption that was cut off leaves a promise behind. It is kept by the next, or taken back when captures come near
// it.
func TestAnAdoptionThatWasCutOffGoesOn(t *testing.T) {
	for name, below := range map[string]int64{"with room": 100, "without": 24} {
		t.Run(name, func(t *testing.T) {
			y := newRangesYard(t, 10)
			ids := y.capture(20, time.Now())
			writing(t, y.db, func(tx *store.Tx) error {
				return tx.Exec(fmt.Sprintf("ALTER TABLE payloads_rest ADD CONSTRAINT payloads_rest_below_%d CHECK (seq >= 0 AND seq < %[1]d) NOT VALID", below))
			})
			y.tend()
			y.readable(ids)
			y.readable(y.capture(30, time.Now()))
			y.tend()
			if want := fmt.Sprintf("payloads_0_%d", below); slices.Contains(y.ranges(), want) != (below == 100) {
				t.Errorf("there are %v", y.ranges())
			}
		})
	}
}

// Who reads for long holds up a change of the ranges, and captures only for a moment.
func TestALongReaderHoldsUpNoCapture(t *testing.T) {
	dsn := storetest.Migrated(t)
	db := storetest.Open(t, store.Config{URL: dsn})
	db.RangeLeast(5)
	y := &rangesYard{t, db, newEndpoint(t, db)}
	y.tend()
	y.capture(12, time.Now().Add(-time.Hour))
	y.purge(time.Now())
	reader, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close(context.WithoutCancel(t.Context()))
	if _, err := reader.Exec(t.Context(), "BEGIN; SELECT count(*) FROM payloads"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- y.db.TendPayloads(ctx, time.Hour) }()
	waits := func() (n int64) {
		reading(t, y.db, func(v *store.View) error {
			all, err := v.Ints("SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'")
			n = all[0]
			return err
		})
		return n
	}
	// Captures go on while it waits for the reader, again and again. One that waits for as long as it does gives up.
	for n, seen, tending := 0, false, true; tending && (n < 50 || !seen); n++ {
		seen = seen || waits() > 0
		y.capture(1, time.Now())
		select {
		case <-ended:
			tending = false
			ended <- nil
		default:
		}
	}
	cancel()
	<-ended
	if !slices.Contains(y.ranges(), "payloads_0_6") {
		t.Error("a range was dropped under a reader")
	}
	if err := reader.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); time.Now().Before(until); { // each waits for nobody for long, as for a vacuum
		if y.tend(); !slices.Contains(y.ranges(), "payloads_0_6") {
			return
		}
	}
	t.Error("the range is still there")
}

// A capture that is on its way to the default partition when a range is made for its payload is stored in the range.
func TestACaptureIsStoredInTheRangeThatIsMadeMeanwhile(t *testing.T) {
	dsn := storetest.Migrated(t)
	db := storetest.Open(t, store.Config{URL: dsn})
	y := &rangesYard{t, db, newEndpoint(t, db)}
	maker, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer maker.Close(context.WithoutCancel(t.Context()))
	if _, err := maker.Exec(t.Context(), "BEGIN; CREATE TABLE payloads_0_100 (LIKE payloads INCLUDING ALL); ALTER TABLE payloads ATTACH PARTITION payloads_0_100 FOR VALUES FROM (0) TO (100)"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- db.CaptureWith(t.Context(), 0, newEvent(y.ep, "meanwhile"), store.Work{}) }()
	for waits := false; !waits; {
		if err := maker.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'payloads_rest'::regclass)").Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := maker.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := y.count("payloads_0_100"); n != 1 {
		t.Errorf("the range has %d payloads", n)
	}
}

func TestRangesArePostgreSQLsAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if err := db.TendPayloads(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
	})
}

// A database that has ranges is filled from one whose numbers are smaller than theirs.
func TestARestoreOverRangesTakesCapturesAndHasRangesOfItsOwn(t *testing.T) {
	y := newRangesYard(t, 10)
	old := time.Now().Add(-2 * time.Hour)
	for range 8 {
		y.capture(8, old)
		y.tend()
	}
	y.purge(time.Now().Add(-time.Hour))
	y.capture(3, time.Now())
	y.tend()
	source := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	few := &rangesYard{t, source, newEndpoint(t, source)}
	kept := few.capture(5, time.Now())
	version, _, err := source.SchemaVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := y.db.Load(t.Context(), version, true, func(to store.Sink) error { _, err := source.Dump(t.Context(), to); return err }); err != nil {
		t.Fatal(err)
	}
	y.ep = few.ep
	for range 6 {
		kept = append(kept, y.capture(6, time.Now())...)
		y.tend()
	}
	reading(t, y.db, func(v *store.View) error {
		for _, id := range kept {
			if ev, err := v.Event(string(y.ep.ID), id); err != nil || len(ev.Body) != 1 {
				t.Errorf("%s: %v", id, err)
			}
		}
		ranges, err := v.Ints("SELECT count(*) FROM pg_inherits WHERE inhparent = 'payloads'::regclass AND inhrelid::regclass::text LIKE 'payloads\\_%\\_%'")
		if err == nil && ranges[0] < 3 {
			t.Errorf("%d ranges", ranges[0])
		}
		return err
	})
}
