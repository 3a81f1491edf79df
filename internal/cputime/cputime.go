// Package cputime bounds what a test may take of a processor. The time of a clock says how busy the machine is; what
// grows with the square of its input takes the time of a processor, on a busy machine and on an idle one alike.
package cputime

import (
	"runtime"
	"testing"
	"time"
)

// AtMost runs f and fails the test when f takes more processor time than most; what names it in the message. It counts
// the goroutine of f alone. The race detector makes code slower: under it, f may take ten times as long.
func AtMost(t testing.TB, most time.Duration, what string, f func()) {
	t.Helper()
	if detectsRaces {
		most *= 10
	}
	if took := Of(f); took > most {
		t.Errorf("%s takes %v of a processor, at most %v is right", what, took, most)
	}
}

// Of runs f and returns the processor time that its goroutine took.
func Of(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := ofThread()
	f()
	return ofThread() - before
}
