//go:build linux

package faults_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// program is the path of the binary under test, built once for all tests of the process, and scratch a directory that is
// removed when they are over.
var program, scratch string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hookglass-faults")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch, program = dir, filepath.Join(dir, "hookglass")
	os.Unsetenv("GOGC") // which script/test sets for test programs, and which would tune the program under test
	// Linked without what a debugger needs, which is half of what linking takes.
	build := exec.Command("go", "build", "-ldflags=-s -w", "-buildvcs=false", "-o", program, "hookglass/cmd/hookglass")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	flag.Parse()
	// How many work at once is said by places.
	if err := flag.Set("test.parallel", "100"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// places are for the tests that work at once: more than there are processors, for they wait more than they work. One at
// a time waits for its first place, at the door, so that who comes back to a place finds one soon.
var (
	places = make(chan struct{}, 3)
	door   sync.Mutex
)

// beside lets a test run beside others, once it has a place.
func beside(t *testing.T) {
	t.Helper()
	t.Parallel()
	door.Lock()
	places <- struct{}{}
	door.Unlock()
	t.Cleanup(func() { <-places })
}

// takenOver is eventually for what waits for the lease of a process that was killed to end, which takes up to a minute.
// Another test has its place meanwhile, if it has one. Nobody waits for a second place, so each that is taken is given
// back.
func takenOver(t *testing.T, limit time.Duration, what string, ask func() bool) time.Duration {
	t.Helper()
	select {
	case <-places:
		defer func() { places <- struct{}{} }()
	default: // no test has one: it runs alone
	}
	return eventually(t, limit, what, ask)
}

// long reports whether the long form was asked for.
func long() bool { return os.Getenv("HOOKGLASS_LONG") == "1" }

// pick is a figure of the short and of the long form.
func pick[T any](short, whole T) T {
	if long() {
		return whole
	}
	return short
}

// patience is for what comes on the way to what a test is about. A busy machine takes its time; only what never comes
// takes so long.
const patience = 2 * time.Minute

// eventually asks until it is answered true, and fails the test when that takes longer than limit. It returns how
// long it took. Time in which nothing ran is not counted. What takes long is asked about less often, but once more at the
// limit: a minute of asking every hundredth of a second keeps a processor busy for half of it.
func eventually(t *testing.T, limit time.Duration, what string, ask func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ask() {
		took := passed(began, time.Now())
		if took > limit {
			t.Fatalf("%s: not within %v", what, limit)
		}
		<-time.After(max(min(took/16, 300*time.Millisecond, limit-took), 10*time.Millisecond))
	}
	return passed(began, time.Now())
}

// needsRoot ends a test that only root can make: skipped on a desk, failed where the environment says CI=true.
func needsRoot(t *testing.T, why string) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("needs root:", why)
	}
	t.Skip("needs root:", why)
}
