package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// What must not be forgotten is tried until the storage answers, or the caller's time is over. What it refuses for
// another reason is not.
func TestWhatMustNotBeForgottenIsTriedUntilTheStorageAnswers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		away := &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "away"}
		tries := 0
		err := db.Persist(t.Context(), time.Minute, hookglass.System, func(*store.Tx) error {
			if tries++; tries < 3 {
				return away
			}
			return nil
		})
		if err != nil || tries != 3 {
			t.Errorf("storage that answers the third time: %v after %d tries", err, tries)
		}

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tries = 0
		err = db.Persist(ctx, time.Minute, hookglass.System, func(*store.Tx) error {
			tries++
			cancel()
			return away
		})
		if !errors.Is(err, away) || tries != 1 {
			t.Errorf("a caller that has no time left: %v after %d tries", err, tries)
		}
		if err := db.Persist(ctx, time.Minute, hookglass.System, func(*store.Tx) error { return nil }); err != nil {
			t.Errorf("a caller that is gone, and storage that answers: %v", err)
		}
		err = db.Persist(t.Context(), time.Millisecond, hookglass.System, func(*store.Tx) error { return away })
		if !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("storage that is away for longer than is waited: %v", err)
		}

		tries = 0
		err = db.Persist(t.Context(), time.Minute, hookglass.System, func(*store.Tx) error { tries++; return hookglass.NotFound("run") })
		if !hookglass.Is(err, hookglass.CodeNotFound) || tries != 1 {
			t.Errorf("a refusal: %v after %d tries", err, tries)
		}
	})
}
