package cputime_test

import (
	"testing"
	"time"

	"hookglass/internal/cputime"
)

// failed is a test that remembers whether it failed.
type failed struct {
	testing.TB
	yes bool
}

func (f *failed) Helper()               {}
func (f *failed) Errorf(string, ...any) { f.yes = true }

func TestWorkCountsAndWaitingDoesNot(t *testing.T) {
	waits, works := &failed{TB: t}, &failed{TB: t}
	cputime.AtMost(waits, 50*time.Millisecond, "waiting", func() { time.Sleep(200 * time.Millisecond) })
	if waits.yes {
		t.Error("waiting counts")
	}
	cputime.AtMost(works, time.Microsecond, "work", func() {
		for began, n := time.Now(), 0; time.Since(began) < 200*time.Millisecond; n++ {
			_ = n
		}
	})
	if !works.yes {
		t.Error("work does not count")
	}
}
