package ingest_test

import (
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/ingest"
)

func TestASenderWithoutAnAnswerIsResetWhenItsTimeIsOver(t *testing.T) {
	for _, hold := range []time.Duration{0, 60 * time.Millisecond} {
		s := start(t, ingest.Config{}, replying(&hookglass.Reply{Source: hookglass.SourceCustom, Delay: hold}), nil)
		for _, path := range []string{hook(""), "/%68ooks/" + knownRef} {
			c, before := s.dial(), time.Now()
			c.send(get(path))
			n, err := io.Copy(io.Discard, c.r)
			if n != 0 || path == hook("") && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: %d bytes and %v, want a reset", path, n, err)
			}
			if took := time.Since(before); took < hold {
				t.Errorf("%s: reset after %v, want %v", path, took, hold)
			}
		}
	}
}

func TestAHeldSenderDoesNotKeepTheFrontFromStopping(t *testing.T) {
	s := start(t, ingest.Config{}, replying(&hookglass.Reply{Source: hookglass.SourceCustom, Delay: time.Hour}), nil)
	c := s.dial()
	c.send(get(hook("")))
	if err := s.front.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n, err := io.Copy(io.Discard, c.r); n != 0 || err == nil {
		t.Errorf("%d bytes and %v", n, err)
	}
}
