package store_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// holds waits until so many bytes are held in reserve, or all that should be for a negative number.
func holds(t *testing.T, path string, want int64) {
	t.Helper()
	var held, whole int64
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		held, whole, err = store.Reserve(path)
		if err == nil && (held == want || want < 0 && held == whole && whole > 0) {
			return
		}
	}
	t.Fatalf("%d of %d bytes are held in reserve, %v; want %d", held, whole, err, want)
}

// When the disk is full the reserve is given up in parts, nothing is captured, and all else is done. It is made again
// by itself, also after a restart, and captures go on.
func TestTheReserveIsGivenUpForDeletingAndMadeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hookglass.db")
	cfg := store.Config{Path: path, Reserve: true}
	db := storetest.Open(t, cfg)
	e := newEndpoint(t, db)
	holds(t, path, -1)
	id, err := captureBody(t.Context(), db, e, "before")
	if err != nil {
		t.Fatal(err)
	}

	if db.MakeRoom(errors.New("something else")) || db.OnReserve() {
		t.Error("the reserve is given up for what has nothing to do with the disk")
	}
	held, whole, _ := store.Reserve(path)
	db.WantReserve(1 << 60) // for which there is no room
	parts := 0
	for db.MakeRoom(syscall.ENOSPC) {
		now, _, err := store.Reserve(path)
		if parts++; err != nil || now >= held || parts > 8 {
			t.Fatalf("part %d: %d of %d bytes are held, %v", parts, now, whole, err)
		}
		held = now
		if _, err := captureBody(t.Context(), db, e, "full"); !hookglass.Is(err, hookglass.CodeUnavailable) || !store.NoRoom(err) {
			t.Errorf("a capture on a full disk: %v", err)
		}
	}
	if parts == 0 || held != 0 || !db.OnReserve() {
		t.Errorf("in %d parts, %d bytes are left, on reserve: %v", parts, held, db.OnReserve())
	}
	if facts, err := db.Health(t.Context()); err == nil || facts["reserve"] == "" {
		t.Errorf("health on a full disk: %v, %v", facts, err)
	}
	if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), string(id)) }); err != nil {
		t.Errorf("a deletion on a full disk: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	db = storetest.Open(t, cfg)
	holds(t, path, -1)
	for end := time.Now().Add(time.Minute); db.OnReserve() && time.Now().Before(end); <-time.After(10 * time.Millisecond) {
	}
	if _, err := captureBody(t.Context(), db, e, "after"); err != nil {
		t.Errorf("a capture when there is room again: %v", err)
	}
	if facts, err := db.Health(t.Context()); err != nil {
		t.Errorf("health with room: %v, %v", facts, err)
	}
}

// Commands open the database as well, and hold nothing in reserve.
func TestOnlyWhoKeepsAReserveMakesOne(t *testing.T) {
	db, path := logged(t)
	newEndpoint(t, db)
	if db.MakeRoom(syscall.ENOSPC) || db.OnReserve() {
		t.Error("a reserve was given up")
	}
	if _, _, err := store.Reserve(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a reserve was made: %v", err)
	}
}
