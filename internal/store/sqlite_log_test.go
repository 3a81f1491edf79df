package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// logged opens an embedded database in a file whose path it returns.
func logged(t *testing.T) (*store.DB, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hookglass.db")
	return storetest.Open(t, store.Config{Path: path}), path
}

func captureBody(ctx context.Context, db *store.DB, e hookglass.Endpoint, body string) (hookglass.EventID, error) {
	ev := newEvent(e, body)
	return ev.ID, db.CaptureWith(ctx, 0, ev, store.Work{})
}

// kept reports which of the ids a database made of these files holds.
func kept(t *testing.T, e hookglass.Endpoint, files map[string][]byte) map[hookglass.EventID]bool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hookglass.db")
	for suffix, content := range files {
		if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := storetest.Open(t, store.Config{Path: path})
	ids := make(map[hookglass.EventID]bool)
	err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
		page, err := v.Events(string(e.ID), store.EventList{Limit: 100})
		for _, ev := range page.Events {
			ids[ev.ID] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Whatever the power is cut after, what was acknowledged before is in what had been synced by then.
func TestWhatIsAnsweredIsOnDisk(t *testing.T) {
	db, path := logged(t)
	e := newEndpoint(t, db)
	base := read(t, path)
	var mu sync.Mutex
	var synced []byte // the log, as the disk has it
	db.OnSync(func(log *os.File) error {
		content, err := os.ReadFile(log.Name())
		if err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond) // others commit meanwhile
		mu.Lock()
		synced = content
		mu.Unlock()
		return nil
	})
	var wg sync.WaitGroup
	var checked atomic.Int64
	for range 4 {
		wg.Go(func() {
			for range 5 {
				id, err := captureBody(t.Context(), db, e, "x")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				disk := synced
				mu.Unlock()
				if !kept(t, e, map[string][]byte{"": base, "-wal": disk})[id] {
					t.Errorf("%s was acknowledged and is not on disk", id)
				}
				checked.Add(1)
			}
		})
	}
	wg.Wait()
	if checked.Load() != 20 {
		t.Errorf("%d captures were looked for, want 20", checked.Load())
	}
}

// A sync that succeeds after one that failed proves nothing of what was written before: the log is written again first,
// whoever is reading it.
func TestNothingRestsOnASyncThatFailed(t *testing.T) {
	db, path := logged(t)
	e := newEndpoint(t, db)
	var fail atomic.Bool
	var lost time.Time // when that was written of which a sync failed
	db.OnSync(func(log *os.File) error {
		info, err := log.Stat()
		if err != nil {
			return err
		}
		if fail.CompareAndSwap(true, false) {
			lost = info.ModTime()
			time.Sleep(20 * time.Millisecond) // the clock of files is coarse
			return errors.New("the disk says no")
		}
		if info.ModTime().Equal(lost) {
			t.Error("what a sync failed for was not written again before the next")
		}
		return store.SyncData(log)
	})
	err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
		if _, err := v.Ints("SELECT count(*) FROM events"); err != nil { // from here on it reads the log
			return err
		}
		fail.Store(true)
		_, err := captureBody(t.Context(), db, e, "refused")
		if !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("a capture whose sync failed: %v, want unavailable", err)
		}
		id, err := captureBody(t.Context(), db, e, "after") // while it reads: who waited for it would wait in vain
		if err != nil {
			return err
		}
		if !kept(t, e, map[string][]byte{"": read(t, path), "-wal": read(t, path+"-wal")})[id] {
			t.Error("what was acknowledged afterwards is not there")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// As long as syncs fail nothing is acknowledged, and nobody waits for long.
func TestASyncThatFailsForLong(t *testing.T) {
	db, _ := logged(t)
	e := newEndpoint(t, db)
	var broken atomic.Bool
	db.OnSync(func(log *os.File) error {
		if broken.Load() {
			return errors.New("the disk says no")
		}
		return store.SyncData(log)
	})
	broken.Store(true)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if _, err := captureBody(t.Context(), db, e, "x"); !hookglass.Is(err, hookglass.CodeUnavailable) {
					t.Errorf("got %v, want unavailable", err)
				}
			}
		})
	}
	wg.Wait()
	broken.Store(false)
	if _, err := captureBody(t.Context(), db, e, "x"); err != nil {
		t.Errorf("with a disk that syncs again: %v", err)
	}
}

// What may be lost waits for no sync, and what comes with it does.
func TestWhatMayBeLostWaitsForNoSync(t *testing.T) {
	db, _ := logged(t)
	newEndpoint(t, db)
	var syncs atomic.Int64
	db.OnSync(func(log *os.File) error { syncs.Add(1); return store.SyncData(log) })
	write := func(mayBeLost bool) {
		t.Helper()
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			if mayBeLost {
				tx.MayBeLost()
			}
			return tx.Exec("UPDATE endpoint_stats SET event_count = event_count + 1")
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	write(true)
	if n := syncs.Load(); n != 0 {
		t.Errorf("%d syncs for what may be lost", n)
	}
	write(false)
	if n := syncs.Load(); n != 1 {
		t.Errorf("%d syncs for what may not be lost, want 1", n)
	}
}

// The log is copied into the database beside the writer, and does not grow without end under load.
func TestTheLogStaysShort(t *testing.T) {
	db, path := logged(t)
	e := newEndpoint(t, db)
	body := strings.Repeat("0123456789abcdef", 64<<10/16)
	const total = 160 << 20
	var longest int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range total / 4 / len(body) {
				if _, err := captureBody(t.Context(), db, e, body); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(5 * time.Millisecond):
		}
		if info, err := os.Stat(path + "-wal"); err == nil {
			longest = max(longest, info.Size())
		}
	}
	if most := int64(2 * store.LogPages * 8192); longest > most {
		t.Errorf("the log grew to %d bytes, want at most %d", longest, most)
	}
	if info, err := os.Stat(path); err != nil || info.Size() < total/2 {
		t.Errorf("the database has %d bytes (%v) of %d that were captured", info.Size(), err, total)
	}
}

// A power cut may take events that a reader has seen. Whoever reads on from there misses nothing of what comes after.
func TestNumbersAreNotGivenTwice(t *testing.T) {
	db, path := logged(t)
	e := newEndpoint(t, db)
	base, log := read(t, path), read(t, path+"-wal")
	seen := newEvent(e, "seen, and lost")
	if err := db.CaptureWith(t.Context(), 0, seen, store.Work{}); err != nil {
		t.Fatal(err)
	}
	after := filepath.Join(t.TempDir(), "hookglass.db")
	for suffix, content := range map[string][]byte{"": base, "-wal": log} {
		if err := os.WriteFile(after+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := storetest.Open(t, store.Config{Path: after})
	next := newEvent(e, "after the cut")
	if err := again.CaptureWith(t.Context(), 0, next, store.Work{}); err != nil {
		t.Fatal(err)
	}
	if next.Seq <= seen.Seq {
		t.Errorf("the event after the cut has number %d, and a reader had seen %d", next.Seq, seen.Seq)
	}
}

// Who looks at a database that another process serves changes nothing in it.
func TestALookSkipsNoNumbers(t *testing.T) {
	db, path := logged(t)
	e := newEndpoint(t, db)
	first, second := newEvent(e, "x"), newEvent(e, "x")
	if err := db.CaptureWith(t.Context(), 0, first, store.Work{}); err != nil {
		t.Fatal(err)
	}
	look, err := store.Open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := look.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.CaptureWith(t.Context(), 0, second, store.Work{}); err != nil {
		t.Fatal(err)
	}
	if second.Seq != first.Seq+1 {
		t.Errorf("the next event has number %d after %d", second.Seq, first.Seq)
	}
}

// The log is beside the file itself, wherever it is opened from.
func TestADatabaseBehindALink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "100%41", "hookglass.db")
	if err := errors.Join(os.Mkdir(filepath.Dir(link), 0o700), os.Symlink(filepath.Join(dir, "other.db"), link)); err != nil {
		t.Fatal(err)
	}
	db := storetest.Open(t, store.Config{Path: link})
	if _, err := captureBody(t.Context(), db, newEndpoint(t, db), "x"); err != nil {
		t.Error(err)
	}
}

// What a load commits is copied as it goes, or it would need the room twice.
func TestALoadKeepsTheLogShort(t *testing.T) {
	from, _ := logged(t)
	e := newEndpoint(t, from)
	body := strings.Repeat("0123456789abcdef", 1<<20/16)
	for range 100 {
		if _, err := captureBody(t.Context(), from, e, body); err != nil {
			t.Fatal(err)
		}
	}
	to, path := logged(t)
	schema, _, err := from.SchemaVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = to.Load(t.Context(), schema, true, func(sink store.Sink) error {
		_, err := from.Dump(t.Context(), sink)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() > 64<<20 {
		t.Errorf("the log has %d bytes after a load of 100 MB (%v)", info.Size(), err)
	}
}

// What goes along lets others pass, and has its turn however many they are.
func TestWhatGoesAlongLetsOthersPass(t *testing.T) {
	db, _ := logged(t)
	hold, held := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var order []string
	note := func(name string) func(*store.Tx) error {
		return func(*store.Tx) error { mu.Lock(); order = append(order, name); mu.Unlock(); return nil }
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = db.Update(t.Context(), hookglass.System, func(*store.Tx) error { close(held); <-hold; return nil })
	})
	<-held
	wg.Go(func() {
		if err := db.UpdateAlong(t.Context(), hookglass.System, note("along")); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		if err := db.Update(t.Context(), hookglass.System, note("other")); err != nil {
			t.Error(err)
		}
	})
	for began := time.Now(); db.Queued() < 2 && time.Since(began) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	close(hold)
	wg.Wait()
	if strings.Join(order, " ") != "other along" {
		t.Errorf("they were written in the order %v", order)
	}

	ctx, cancel := context.WithCancel(t.Context())
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = db.Update(t.Context(), hookglass.System, func(*store.Tx) error { return nil })
			}
		})
	}
	for range 20 { // an update without its turn among others that never end gives up
		if err := db.UpdateAlong(t.Context(), hookglass.System, func(*store.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	wg.Wait()
}

// waited is a context that says when somebody waits for its end, or that of a write: the write is in its queue by then.
type waited struct {
	context.Context
	once  sync.Once
	begun chan struct{}
}

func (w *waited) Done() <-chan struct{} {
	w.once.Do(func() { close(w.begun) })
	return w.Context.Done()
}

// What comes while a sync is on its way could not be synced before it ends, so it is one commit.
func TestFewThatComeDuringASyncAreCommittedTogether(t *testing.T) {
	var mu sync.Mutex
	var groups []int
	db := storetest.Open(t, store.Config{
		Path: filepath.Join(t.TempDir(), "hookglass.db"),
		OnCapture: func(events int, _ int64, _ time.Duration) {
			mu.Lock()
			groups = append(groups, events)
			mu.Unlock()
		},
	})
	e := newEndpoint(t, db)
	begun, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	db.OnSync(func(log *os.File) error {
		first.Do(func() {
			close(begun)
			<-goOn
		})
		return store.SyncData(log)
	})
	var wg sync.WaitGroup
	send := func() *waited {
		ctx := &waited{Context: t.Context(), begun: make(chan struct{})}
		wg.Go(func() {
			if err := db.Capture(ctx, 0, newEvent(e, "x")); err != nil {
				t.Error(err)
			}
		})
		return ctx
	}
	send()
	<-begun
	for range 5 {
		<-send().begun
		time.Sleep(5 * time.Millisecond) // time to be committed alone
	}
	close(goOn)
	wg.Wait()
	observed := func() []int { // a group is observed when its senders have been answered
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(groups)
	}
	sum := func(groups []int) (n int) {
		for _, g := range groups {
			n += g
		}
		return n
	}
	for until := time.Now().Add(time.Minute); sum(observed()) < 6 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if got, want := observed(), []int{1, 5}; !slices.Equal(got, want) {
		t.Errorf("groups of %v captures, want %v", got, want)
	}
}

// Who moves the database away and puts another in its place, under the running service, is told: what would be stored
// goes where nobody looks.
func TestADatabaseThatWasReplacedTakesNothing(t *testing.T) {
	db, path := logged(t)
	e := newEndpoint(t, db)
	if _, err := captureBody(t.Context(), db, e, "before"); err != nil {
		t.Fatal(err)
	}
	place := filepath.Dir(path)
	away := place + ".away"
	if err := os.Rename(place, away); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(place, os.DirFS(away)); err != nil {
		t.Fatal(err)
	}
	for range 3 { // after the first the log counts as not whole, and is written once more
		if _, err := captureBody(t.Context(), db, e, "replaced"); !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("a capture into a database that was replaced: %v", err)
		}
	}
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, place); err != nil {
		t.Fatal(err)
	}
	if _, err := captureBody(t.Context(), db, e, "back"); err != nil {
		t.Errorf("a capture when it is back: %v", err)
	}
}

// On macOS a plain sync may leave data in the disk's cache. If the log restarted over a copy that is only there, a power
// cut would lose what was acknowledged.
func TestTheLogRestartsOnlyAfterAFullSyncOfItsCopy(t *testing.T) {
	db, _ := logged(t)
	full, err := db.Copying(t.Context(), "PRAGMA checkpoint_fullfsync")
	if err != nil || !slices.Equal(full, []int64{1, 1}) {
		t.Errorf("full syncs by the connections that copy the log: %v, %v", full, err)
	}
}
