package capture_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/provider"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// heldVerifiers counts the times that an endpoint is read. The first waits for release, and fails if it gets an error.
type heldVerifiers struct {
	of      capture.Verifiers
	reads   atomic.Int64
	begun   chan struct{}
	release chan error
}

func (h *heldVerifiers) Verifiers(v *store.View, ref string) ([]provider.Config, error) {
	if h.reads.Add(1) == 1 {
		close(h.begun)
		if err := <-h.release; err != nil {
			return nil, err
		}
	}
	return h.of.Verifiers(v, ref)
}

// waiting is a context that says when somebody waits for its end.
type waiting struct {
	context.Context
	once  sync.Once
	waits chan struct{}
}

func (w *waiting) Done() <-chan struct{} {
	w.once.Do(func() { close(w.waits) })
	return w.Context.Done()
}

// The senders of an endpoint that is not known, or no more, do not each read it: many would wait for one another.
func TestAnEndpointIsReadOnceForAllThatWaitForIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b, changed := newBench(t, db), db.Listen(store.TopicEndpoints)
		defer changed.Close()
		for _, c := range []struct {
			name  string
			ends  error // of the read of the first sender
			reads int64
		}{{"one reads for all", nil, 1}, {"another reads where the first is gone", errors.New("it is gone"), 2}} {
		again:
			heard := changed.Heard()
			held := &heldVerifiers{of: b.endpoints, begun: make(chan struct{}), release: make(chan error)}
			captures := capture.New(db, capture.Config{Retention: time.Hour, Verifiers: held}, slog.New(slog.DiscardHandler))
			first := make(chan error, 1)
			go func() { _, err := captures.Admit(t.Context(), string(b.ep.ID)); first <- err }()
			<-held.begun
			var senders sync.WaitGroup
			for range 20 {
				ctx := &waiting{Context: t.Context(), waits: make(chan struct{})}
				senders.Go(func() {
					if got, err := captures.Admit(ctx, string(b.ep.ID)); err != nil || got.Endpoint.ID != b.ep.ID {
						t.Errorf("%s: %+v, %v", c.name, got.Endpoint, err)
					}
				})
				<-ctx.waits
			}
			held.release <- c.ends
			if err := <-first; (err == nil) != (c.ends == nil) {
				t.Errorf("%s: the first got %v", c.name, err)
			}
			senders.Wait()
			if changed.Heard() != heard {
				goto again // the node heard its own start, or of the endpoint's: what was read before is not for those after it
			}
			if n := held.reads.Load(); n != c.reads {
				t.Errorf("%s: %d reads, want %d", c.name, n, c.reads)
			}
		}
	})
}

// Who changed an endpoint and then sends finds the change, also while another sender reads what was before.
func TestAReadThatBeganBeforeAChangeIsNotForThoseAfterIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		held := &heldVerifiers{of: b.endpoints, begun: make(chan struct{}), release: make(chan error)}
		captures := capture.New(db, capture.Config{Retention: time.Hour, Verifiers: held}, slog.New(slog.DiscardHandler))
		first := make(chan error, 1)
		go func() { _, err := captures.Admit(t.Context(), string(b.ep.ID)); first <- err }()
		<-held.begun
		b.set(func(e *hookglass.Endpoint) { e.Name = "new" })
		if got, err := captures.Admit(t.Context(), string(b.ep.ID)); err != nil || got.Endpoint.Name != "new" {
			t.Errorf("%q, %v", got.Endpoint.Name, err)
		}
		held.release <- nil
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}
