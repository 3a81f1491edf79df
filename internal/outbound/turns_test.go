package outbound_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hookglass/internal/outbound"
)

// crowd is a client under whose bounds requests wait, and what they do.
type crowd struct {
	*outbound.Client
	ended chan outbound.Code // "" for an answer

	mu   sync.Mutex
	let  []string          // URLs' ports in the order in which they were let through
	open map[string]func() // lets the request to that port end
}

func newCrowd(t *testing.T, total, perKey int) *crowd {
	c := &crowd{Client: outbound.New(outbound.Config{MaxInFlight: total, MaxInFlightPerKey: perKey}), open: map[string]func(){}, ended: make(chan outbound.Code, 100)}
	c.OnConnect(func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
		ours, theirs := net.Pipe()
		release := make(chan struct{})
		name := fmt.Sprint(to.Port())
		c.mu.Lock()
		defer c.mu.Unlock()
		c.let = append(c.let, name)
		c.open[name] = func() { close(release) }
		go func() {
			defer theirs.Close()
			readRequest(theirs)
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				io.Copy(io.Discard, theirs)
			}()
			select {
			case <-release:
				io.WriteString(theirs, noContent)
			case <-gone:
			}
		}()
		return ours, nil
	})
	return c
}

// send starts a request, known by its port, and waits until it is under way or in the queue.
func (c *crowd) send(ctx context.Context, key string, port int) {
	go func() {
		_, err := c.Do(ctx, outbound.Request{Method: "GET", URL: fmt.Sprintf("http://8.8.8.8:%d/", port), Key: key, Timeout: time.Minute})
		code := outbound.Code("")
		if f, ok := err.(*outbound.Failure); ok {
			code = f.Code
		}
		c.ended <- code
	}()
	synctest.Wait()
}

func (c *crowd) started() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.let)
}

func (c *crowd) finish(ports ...int) {
	for _, p := range ports {
		c.mu.Lock()
		end := c.open[fmt.Sprint(p)]
		c.mu.Unlock()
		end()
		synctest.Wait()
	}
}

func TestTurnsOfOneKeyAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 100, 2)
		for p := 8001; p <= 8006; p++ {
			c.send(t.Context(), "a", p)
		}
		if !slices.Equal(c.started(), []string{"8001", "8002"}) {
			t.Fatal(c.started())
		}
		c.finish(8002, 8001, 8003, 8004, 8005, 8006)
		if !slices.Equal(c.started(), []string{"8001", "8002", "8003", "8004", "8005", "8006"}) {
			t.Error(c.started())
		}
		if taken, keys := c.InFlight(); taken != 0 || keys != 0 {
			t.Errorf("left: %d, %d", taken, keys)
		}
	})
}

// A tenant whose targets never answer delays itself alone, and under the total bound keys take turns.
func TestKeysDoNotDelayOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 3, 2)
		for p := 8001; p <= 8020; p++ {
			c.send(t.Context(), "black hole", p)
		}
		c.send(t.Context(), "b", 9001)
		c.send(t.Context(), "b", 9002)
		c.send(t.Context(), "c", 9101)
		c.send(t.Context(), "b", 9003)
		if want := []string{"8001", "8002", "9001"}; !slices.Equal(c.started(), want) {
			t.Fatalf("%v, want %v", c.started(), want)
		}
		c.finish(9001, 9002, 9101, 9003)
		if want := []string{"8001", "8002", "9001", "9002", "9101", "9003"}; !slices.Equal(c.started(), want) {
			t.Fatalf("%v, want %v", c.started(), want)
		}
		time.Sleep(time.Minute) // those of the black hole end, one way or the other
		synctest.Wait()
		if taken, keys := c.InFlight(); taken != 0 || keys != 0 {
			t.Errorf("left: %d, %d", taken, keys)
		}
	})
}

// Tenants whose targets never answer leave turns to those who come later, however many they are.
func TestKeysThatHoldOnLeaveSomeToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 16, 8)
		want := []string{}
		for i, most := range []int{8, 4, 2, 1} {
			for p := range 10 {
				c.send(t.Context(), fmt.Sprint("black hole ", i), 8100+100*i+p)
				if p < most {
					want = append(want, fmt.Sprint(8100+100*i+p))
				}
			}
		}
		c.send(t.Context(), "other", 9001)
		if want = append(want, "9001"); !slices.Equal(c.started(), want) {
			t.Errorf("%v, want %v", c.started(), want)
		}
		c.finish(9001)
		c.send(t.Context(), "other", 9002)
		if want = append(want, "9002"); !slices.Equal(c.started(), want) {
			t.Errorf("%v, want %v", c.started(), want)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if taken, keys := c.InFlight(); taken != 0 || keys != 0 {
			t.Errorf("left: %d, %d", taken, keys)
		}
	})
}

// One line of a key whose targets never answer leaves turns to the others of the key.
func TestLinesOfAKeyDoNotDelayOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10, 4)
		took := make(chan int64, 10)
		take := func(line int64) (cancel func()) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if turn, err := c.Turn(ctx, "a", line); err == nil {
					took <- line
					<-ctx.Done()
					turn.End()
				}
			}()
			synctest.Wait()
			return cancel
		}
		taken := func(want ...int64) {
			t.Helper()
			var got []int64
			for len(took) > 0 {
				got = append(got, <-took)
			}
			if !slices.Equal(got, want) {
				t.Errorf("took %v, want %v", got, want)
			}
		}
		var hole []func()
		for range 5 {
			hole = append(hole, take(1))
		}
		taken(1, 1) // of 4: a third would be more than are left
		other := take(2)
		taken(2)
		last := take(2) // what is left is for a line that has none
		take(3)
		taken(3)
		other()
		synctest.Wait()
		taken(2) // whoever waits first of the lines that may: that of 1 may not
		for _, cancel := range append(hole, last) {
			cancel()
		}
		synctest.Wait()
		taken()
		c.send(t.Context(), "a", 8001) // which is of no line, as is what Do waits for
		c.send(t.Context(), "a", 8002)
		c.send(t.Context(), "a", 8003)
		if !slices.Equal(c.started(), []string{"8001", "8002", "8003"}) {
			t.Error(c.started())
		}
		c.finish(8001, 8002, 8003)
	})
}

// A request with a turn has all of its time, however long it was waited for.
func TestATurnIsNotPartOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 1)
		go c.Do(t.Context(), outbound.Request{Method: "GET", URL: "http://8.8.8.8:8001/", Timeout: 50 * time.Second})
		synctest.Wait()
		turn, err := c.Turn(t.Context(), "", 7)
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan error)
		go func() {
			_, err := c.Do(t.Context(), outbound.Request{Method: "GET", URL: "http://8.8.8.8:8002/", Timeout: 30 * time.Second, Turn: turn})
			answered <- err
		}()
		time.Sleep(29 * time.Second)
		c.finish(8002)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Turn(ctx, "", 7); err == nil {
			t.Error("two turns of one")
		} else if f := failure(t, err); f.Code != outbound.CodeBusy || f.Sent != outbound.NotSent {
			t.Error(f.Code)
		}
		turn.End()
		if taken, keys := c.InFlight(); taken != 0 || keys != 0 {
			t.Errorf("left: %d, %d", taken, keys)
		}
	})
}

func TestWaitingForATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10, 1)
		c.send(t.Context(), "a", 8001)
		time.Sleep(30 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		c.send(ctx, "a", 8002)
		c.send(t.Context(), "a", 8003)
		cancel()
		if code := <-c.ended; code != outbound.CodeCanceled {
			t.Errorf("canceled: %s", code)
		}
		if code := <-c.ended; code != outbound.CodeTimeout { // of 8001, which lets 8003 through
			t.Errorf("first: %s", code)
		}
		c.send(t.Context(), "a", 8004)
		if code := <-c.ended; code != outbound.CodeTimeout { // of 8003
			t.Errorf("second: %s", code)
		}
		synctest.Wait()
		c.finish(8004)
		if code := <-c.ended; code != "" {
			t.Errorf("third: %s", code)
		}
		c.send(t.Context(), "a", 8005)
		busy := make(chan error)
		go func() {
			_, err := c.Do(t.Context(), outbound.Request{Method: "GET", URL: "http://8.8.8.8/", Key: "a", Timeout: time.Second})
			busy <- err
		}()
		if f := failure(t, <-busy); f.Code != outbound.CodeBusy || f.Sent != outbound.NotSent {
			t.Errorf("%v, %v", f, f.Sent)
		}
		c.finish(8005)
		<-c.ended
		if taken, keys := c.InFlight(); taken != 0 || keys != 0 {
			t.Errorf("left: %d, %d", taken, keys)
		}
	})
}
