package ingest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/ingest"
)

func (sv *service) shutdown() <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		done <- sv.front.Shutdown(ctx)
	}()
	return done
}

func TestShutdownAnswersWhatHasBegunAndEndsTheIdle(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := func() { entered <- struct{}{}; <-leave }
	s := &stub{capture: func(_ context.Context, _ capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
		if a.Path == "/slow" {
			slow()
		}
		return nil, nil
	}}
	sv := start(t, ingest.Config{}, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			slow()
		}
		echo(w, r)
	}))
	silent, idle, idleRest := sv.dial(), sv.dial(), sv.dial()
	idle.send(get(hook("")))
	idle.want(200)
	idleRest.send(get("/api"))
	idleRest.want(200)

	hookBusy, restBusy, mixedBusy := sv.dial(), sv.dial(), sv.dial()
	hookBusy.send(get(hook("/slow")))
	<-entered
	restBusy.send(get("/slow"))
	<-entered
	mixedBusy.send(get("/api")) // net/http believes it idle while the hook is served
	mixedBusy.want(200)
	mixedBusy.send(get(hook("/slow")))
	<-entered
	halfBody := sv.dial()
	halfBody.send("POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo")

	probe := sv.dial() // connections are accepted in order: once this one is served, the half body's is known
	probe.send(get(hook("")))
	probe.want(200)

	done := sv.shutdown()
	silent.wantEnd()
	idle.wantEnd()
	idleRest.wantEnd()
	probe.wantEnd()
	select {
	case err := <-done:
		t.Fatalf("shut down before the requests were answered: %v", err)
	default:
	}
	halfBody.send("dy")
	close(leave)
	for name, c := range map[string]*sender{"hook": hookBusy, "rest": restBusy, "mixed": mixedBusy, "half": halfBody} {
		if a := c.want(200); !a.Close {
			t.Errorf("%s: the answer does not end the connection", name)
		}
		c.wantEnd()
	}
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-sv.done; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("serve: %v", err)
	}
	if got := len(s.all()); got != 5 {
		t.Errorf("%d arrivals, want 5", got)
	}
}

// A sender whose answer said nothing of an end may send again before it could know of the end, also if the server stops
// just after that answer.
func TestShutdownAnswersWhatFollowsAnAnswerThatEndedNothing(t *testing.T) {
	for _, path := range []string{hook(""), hook("/refused")} {
		synctest.Test(t, func(t *testing.T) {
			s := &stub{capture: func(_ context.Context, _ capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
				if a.Path == "/refused" {
					return nil, hookglass.NotFound("endpoint")
				}
				return nil, nil
			}}
			b := inBubble(t, nil, ingest.Config{}, s)
			ours, theirs := net.Pipe()
			wrote := make(chan struct{})
			b.ln <- writingConn{theirs, wrote}
			c := &piped{t, ours, bufio.NewReader(ours)}
			go io.WriteString(c.nc, get(path))
			if res := c.answer(); res.Close {
				t.Error("the first answer ends the connection")
			}
			stopped := make(chan struct{})
			go func() { b.stop(); close(stopped) }()
			synctest.Wait() // it drains
			close(wrote)
			synctest.Wait()
			go io.WriteString(c.nc, get(path))
			if res := c.answer(); !res.Close {
				t.Error("the second answer does not end the connection")
			}
			c.end()
			<-stopped
		})
	}
}

// writingConn goes on after a write once wrote is closed.
type writingConn struct {
	net.Conn
	wrote chan struct{}
}

func (c writingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	<-c.wrote
	return n, err
}

func TestShutdownCutsADelayShort(t *testing.T) {
	captured := make(chan struct{}, 1)
	s := &stub{capture: func(context.Context, capture.Target, *capture.Arrival) (*hookglass.Reply, error) {
		captured <- struct{}{}
		return &hookglass.Reply{Status: 200, Delay: time.Hour}, nil
	}}
	sv := start(t, ingest.Config{}, s, nil)
	c := sv.dial()
	c.send(get(hook("")))
	<-captured
	done := sv.shutdown()
	c.want(200)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestShutdownEndsTheWaitForALocalMachine(t *testing.T) {
	waiting := make(chan struct{})
	s := replying(&hookglass.Reply{Status: 200, Awaits: &hookglass.Event{}})
	s.answer = func(ctx context.Context, r *hookglass.Reply) *hookglass.Reply {
		close(waiting)
		<-ctx.Done()
		return &hookglass.Reply{Status: 202}
	}
	sv := start(t, ingest.Config{}, s, nil)
	c := sv.dial()
	c.send(get(hook("")))
	<-waiting
	done := sv.shutdown()
	c.want(202)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestShutdownGivesUpWhenItsTimeEnds(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := &stub{capture: func(context.Context, capture.Target, *capture.Arrival) (*hookglass.Reply, error) {
		close(entered)
		<-leave
		return nil, nil
	}}
	sv := start(t, ingest.Config{}, s, nil)
	c := sv.dial()
	c.send(get(hook("")))
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := sv.front.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(leave)
	if _, err := c.r.ReadByte(); err == nil {
		t.Error("the connection was answered")
	}
}

// lateListener accepts nothing before it is told when to end, and then stands still for longer than that.
type lateListener struct {
	*net.TCPListener
	told chan struct{}
	once *sync.Once
}

func (l lateListener) Accept() (net.Conn, error) {
	<-l.told
	return l.TCPListener.Accept()
}

func (l lateListener) SetDeadline(t time.Time) error {
	l.once.Do(func() {
		t = time.Now().Add(-time.Second)
		defer close(l.told)
	})
	return l.TCPListener.SetDeadline(t)
}

func TestShutdownAnswersWhatWasConnectedAndNotAccepted(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := new(stub)
	sv := startWith(t, lateListener{ln.(*net.TCPListener), make(chan struct{}), new(sync.Once)}, nil, ingest.Config{}, s, nil)
	hooks := []*sender{sv.dial(), sv.dial(), sv.dial()}
	for _, c := range hooks {
		c.send(get(hook("")))
	}
	done := sv.shutdown()
	for _, c := range hooks {
		c.want(200)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := len(s.all()); got != len(hooks) {
		t.Errorf("%d arrivals, want %d", got, len(hooks))
	}
}

func TestServeAfterShutdown(t *testing.T) {
	sv := start(t, ingest.Config{}, new(stub), nil)
	if err := <-sv.shutdown(); err != nil {
		t.Fatal(err)
	}
	if err := <-sv.done; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("got %v", err)
	}
}

func TestShutdownDoesNotWaitForWhoGoesOnSending(t *testing.T) {
	unread := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	for name, c := range map[string]struct {
		path   string
		length int
		status int
	}{
		"net/http": {"/api", 64 << 20, 401},
		"a hook":   {hook(""), 1 << 30, 413},
	} {
		t.Run(name, func(t *testing.T) {
			sv := start(t, ingest.Config{}, new(stub), unread)
			sending := sv.dial()
			sending.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nbo", c.path, c.length))
			sending.want(c.status)
			sending.wantEnd() // of the server's side: it lingers now
			begun := time.Now()
			if err := <-sv.shutdown(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took > 9*time.Second { // it would linger for 10 s
				t.Errorf("it took %v", took)
			}
		})
	}
}

// stillListener accepts connections of which nothing is read before they are told to end, which takes longer than they
// have then.
type stillListener struct{ *net.TCPListener }

func (l stillListener) Accept() (net.Conn, error) {
	nc, err := l.TCPListener.Accept()
	if err != nil {
		return nil, err
	}
	return &stillConn{Conn: nc, told: make(chan struct{})}, nil
}

type stillConn struct {
	net.Conn
	told chan struct{}
	once sync.Once
}

func (c *stillConn) Read(p []byte) (int, error) {
	<-c.told
	return c.Conn.Read(p)
}

func (c *stillConn) SetReadDeadline(t time.Time) error {
	if time.Until(t) < time.Second { // not the time for a head
		c.once.Do(func() {
			t = time.Now().Add(-time.Second)
			defer close(c.told)
		})
	}
	return c.Conn.SetReadDeadline(t)
}

func TestShutdownAnswersWhatCameWhileTheProcessStoodStill(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := new(stub)
	sv := startWith(t, stillListener{ln.(*net.TCPListener)}, nil, ingest.Config{HeaderTimeout: patience}, s, nil)
	came, silent := sv.dial(), sv.dial()
	came.send(get(hook("")))
	done := sv.shutdown()
	came.want(200)
	silent.wantEnd()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := len(s.all()); got != 1 {
		t.Errorf("%d arrivals", got)
	}
}
