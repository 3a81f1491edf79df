package intake_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hookglass/internal/intake"
)

// TestThatNothingCanBeAcceptedIsSaidNowAndThen is about a process without descriptors: whenever one is given back a
// connection comes in, and the next fails.
func TestThatNothingCanBeAcceptedIsSaidNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		short := &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		var a intake.Accepting
		failures, waited := 0, time.Duration(0)
		for began := time.Now(); time.Since(began) < 25*time.Second; failures++ {
			pause, again := a.Failed(short, log)
			if !again || pause <= 0 || pause > time.Second {
				t.Fatalf("after %d failures it waits %v, again: %v", failures, pause, again)
			}
			time.Sleep(pause)
			if waited = pause; failures%3 == 0 {
				a.Went()
			}
		}
		if lines := strings.Count(out.String(), "accept failed"); lines != 3 || !strings.Contains(out.String(), "not_logged=") {
			t.Errorf("%d lines of %d failures in 25 s:\n%s", lines, failures, &out)
		}
		a.Went()
		for range 20 {
			waited, _ = a.Failed(short, log)
		}
		if waited != time.Second {
			t.Errorf("after many failures in a row it waits %v", waited)
		}
	})
}

func TestAListenerAtItsEndIsNotTriedAgain(t *testing.T) {
	for _, err := range []error{net.ErrClosed, &net.OpError{Op: "accept", Err: net.ErrClosed}, errors.New("other")} {
		var out bytes.Buffer
		if _, again := new(intake.Accepting).Failed(err, slog.New(slog.NewTextHandler(&out, nil))); again || out.Len() != 0 {
			t.Errorf("%v: again %v, %s", err, again, &out)
		}
	}
}
