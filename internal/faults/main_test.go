//go:build linux

package faults_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	// Linked without what a debugger needs, which is half of what linking takes.
	build := exec.Command("go", "build", "-ldflags=-s -w", "-buildvcs=false", "-o", program, "hookglass/cmd/hookglass")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	flag.Parse()
	// These tests wait more than they work.
	if err := flag.Set("test.parallel", "3"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
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
// long it took. Time in which nothing ran is not counted.
func eventually(t *testing.T, limit time.Duration, what string, ask func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !ask() {
		if passed(began, time.Now()) > limit {
			t.Fatalf("%s: not within %v", what, limit)
		}
		<-again.C
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
