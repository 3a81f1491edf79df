package ingest_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/ingest"
)

// TestLargeBodiesHaveTurnsWithTheStorage has a storage that takes a while for each large body: with all of them at once
// the last would run out of time there. Whatever else comes does not wait for the turns.
func TestLargeBodiesHaveTurnsWithTheStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, most = 5 << 20, 8<<20 + 5<<20
		store := make(chan struct{}, 1)
		var mu sync.Mutex
		held := 0
		hold := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			if held += n; held > most {
				t.Errorf("%d bytes wait for the storage", held)
			}
		}
		s := &stub{capture: func(ctx context.Context, _ capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
			if len(a.Body) < size {
				return nil, nil
			}
			hold(len(a.Body))
			defer hold(-len(a.Body))
			select {
			case store <- struct{}{}:
				time.Sleep(2 * time.Second)
				<-store
				return nil, nil
			case <-ctx.Done():
				return nil, &hookglass.Error{Code: hookglass.CodeUnavailable}
			}
		}}
		b := inBubble(t, nil, ingest.Config{}, s)
		large := strings.Repeat("b", size)
		var senders sync.WaitGroup
		for i := range 8 {
			c := b.dial()
			path := hook("")
			if i%2 == 1 {
				path = escapedHook // by net/http
			}
			senders.Go(func() {
				go io.WriteString(c.nc, post(path, large))
				if res := c.answer(); res.StatusCode != 200 {
					t.Errorf("a large body: %s", res.Status)
				}
				c.nc.Close()
			})
		}
		synctest.Wait()
		c, begun := b.dial(), time.Now()
		go io.WriteString(c.nc, post(hook(""), "small"))
		if res, took := c.answer(), time.Since(begun); res.StatusCode != 200 || took > 0 {
			t.Errorf("a small body: %s after %v", res.Status, took)
		}
		c.nc.Close()
		senders.Wait()
		b.stop()
		if n := len(s.all()); n != 9 {
			t.Errorf("%d arrivals", n)
		}
	})
}

// Who gets no turn in time is refused, and the log says so.
func TestTheLogSaysThatLargeBodiesHaveNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{capture: func(context.Context, capture.Target, *capture.Arrival) (*hookglass.Reply, error) {
			time.Sleep(2 * time.Second)
			return nil, nil
		}}
		log := new(syncBuffer)
		b := inBubbleWith(t, slog.New(slog.NewTextHandler(log, nil)), nil, ingest.Config{BudgetWait: time.Second}, s, echo)
		large := strings.Repeat("b", 9<<20)
		var senders sync.WaitGroup
		var refused atomic.Int64
		for range 3 {
			c := b.dial()
			senders.Go(func() {
				go io.WriteString(c.nc, post(hook(""), large))
				if res := c.answer(); res.StatusCode == 503 {
					refused.Add(1)
				}
				c.nc.Close()
			})
		}
		senders.Wait()
		b.stop()
		if refused.Load() != 2 || strings.Count(log.String(), "large webhooks are refused") != 1 {
			t.Errorf("%d are refused, and the log says %q", refused.Load(), log)
		}
	})
}

// When the storage has stopped answering, those that wait for their turn hear of it together with the first.
func TestWhoWaitsForATurnIsRefusedWithTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{capture: func(ctx context.Context, _ capture.Target, _ *capture.Arrival) (*hookglass.Reply, error) {
			<-ctx.Done()
			return nil, &hookglass.Error{Code: hookglass.CodeUnavailable}
		}}
		b := inBubble(t, nil, ingest.Config{CaptureTimeout: 6 * time.Second}, s)
		large, begun := strings.Repeat("b", 9<<20), time.Now()
		var senders sync.WaitGroup
		for range 3 {
			c := b.dial()
			senders.Go(func() {
				go io.WriteString(c.nc, post(hook(""), large))
				if res, took := c.answer(), time.Since(begun); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || took != 6*time.Second {
					t.Errorf("%s, Retry-After %q, after %v", res.Status, res.Header.Get("Retry-After"), took)
				}
				c.nc.Close()
			})
		}
		senders.Wait()
		b.stop()
	})
}

// Those that wait for room are told to come back when the storage answers nobody any more, not when it was too slow for
// one of them.
func TestWhoWaitsIsRefusedByASilentStorageOnly(t *testing.T) {
	for _, row := range []struct {
		name   string
		stores bool // meanwhile
		status int
	}{{"slow", true, 200}, {"silent", false, 503}} {
		synctest.Test(t, func(t *testing.T) {
			s := &stub{capture: func(ctx context.Context, _ capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
				if a.Path != "/late" {
					return nil, nil
				}
				<-ctx.Done()
				return nil, &hookglass.Error{Code: hookglass.CodeUnavailable}
			}}
			b := inBubble(t, nil, ingest.Config{MaxBodyBytes: 3 << 20, InFlightBytes: 4 << 20, CaptureTimeout: 6 * time.Second}, s) // room for one
			begin := func(path, body string) *piped {
				c := b.dial()
				go io.WriteString(c.nc, post(hook(path), body))
				synctest.Wait()
				return c
			}
			c := begin("/", "small") // before all else
			c.answer()
			c.nc.Close()
			large := strings.Repeat("b", 3<<20)
			late, waits := begin("/late", large), begin("/", large)
			time.Sleep(5 * time.Second)
			if row.stores {
				c := begin("/", "small")
				c.answer()
				c.nc.Close()
			}
			if res := late.answer(); res.StatusCode != 503 {
				t.Errorf("%s: the late one: %s", row.name, res.Status)
			}
			begun := time.Now()
			if res := waits.answer(); res.StatusCode != row.status || time.Since(begun) > 0 {
				t.Errorf("%s: the one that waits: %s after %v", row.name, res.Status, time.Since(begun))
			}
			late.nc.Close()
			waits.nc.Close()
			b.stop()
		})
	}
}
