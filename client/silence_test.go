package client_test

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"hookglass/api"
	"hookglass/client"
)

// piped serves clients through pipes, on which time is the test's.
type piped chan net.Conn

func (p piped) Accept() (net.Conn, error) {
	if conn, open := <-p; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (piped) Close() error   { return nil }
func (piped) Addr() net.Addr { return &net.TCPAddr{} }

// pipe returns a client of a server with one handler. stop ends the server.
func pipe(t *testing.T, handler http.HandlerFunc) (c *client.Client, stop func()) {
	t.Helper()
	c, err := client.New("http://hooks.example.com", "hg_token")
	if err != nil {
		t.Fatal(err)
	}
	p := make(piped)
	c.Through(func() (net.Conn, error) {
		here, there := net.Pipe()
		p <- there
		return here, nil
	})
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(p) }()
	return c, func() {
		close(p)
		_ = server.Close()
		synctest.Wait()
	}
}

// Only a server that is not heard is silent: who handles a message for long finds the next one behind it.
func TestASocketIsNotSilentWhileNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := pipe(t, func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{api.CableProtocol}})
			if err != nil {
				t.Error(err)
				return
			}
			for range 10 {
				if conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"ping"}`)) != nil {
					return
				}
				time.Sleep(3 * time.Second)
			}
			_, _, _ = conn.Read(r.Context()) // until the client has had enough
		})
		defer stop()
		s := must[*client.Cable](t)(c.OpenCable(t.Context(), api.TunnelTicket{Ticket: "tt_1"}))
		defer s.Close()
		for i := range 10 {
			if m, err := s.Read(t.Context()); err != nil || m.Type != "ping" {
				t.Fatalf("message %d is %+v, %v", i, m, err)
			}
			time.Sleep(time.Minute)
		}
		began := time.Now()
		if m, err := s.Read(t.Context()); err == nil || time.Since(began) != 12*time.Second {
			t.Errorf("after %v came %+v, %v; want silence after 12 s", time.Since(began), m, err)
		}
	})
}

func TestAStreamIsNotSilentWhileNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connections := 0
		c, stop := pipe(t, func(w http.ResponseWriter, r *http.Request) {
			connections++
			w.Header().Set("Content-Type", "text/event-stream")
			for _, id := range []string{"1", "2"} {
				_, _ = w.Write([]byte("id: req_" + id + "\ndata: {\"id\":\"req_" + id + "\"}\n\n"))
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		})
		defer stop()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for e, err := range c.Stream(ctx, "ep_1", client.Filter{}, "", nil) {
			if err != nil || connections > 1 {
				t.Fatalf("%d connections, %v", connections, err)
			}
			if e.ID == "req_2" {
				break
			}
			time.Sleep(time.Hour)
		}
	})
}

// The longest wait is as long as any call waits for its answer, and the answer has a way to go.
func TestAFlowIsWaitedForToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := pipe(t, func(w http.ResponseWriter, r *http.Request) {
			seconds, err := strconv.Atoi(r.URL.Query().Get("timeout"))
			if err != nil {
				t.Error(err)
			}
			time.Sleep(time.Duration(seconds)*time.Second + 300*time.Millisecond)
			_, _ = w.Write([]byte(`{"data": {"id": "flow_1", "state": "pending"}}`))
		})
		defer stop()
		if f, err := c.WaitFlow(t.Context(), "flow_1", 0, 60); err != nil || f.State != "pending" {
			t.Errorf("got %+v, %v", f, err)
		}
	})
}

// An answer may take what time it takes as long as it goes on; one that is begun and not ended is given up.
func TestAnAnswerThatIsBegunAndNotEndedIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pieces, status := 0, http.StatusOK
		c, stop := pipe(t, func(w http.ResponseWriter, r *http.Request) {
			n := pieces
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			for _, piece := range []string{`{"da`, `ta":[`, `{"id":`, `"tgap_1"`, `}`, `]}`}[:n] {
				_, _ = w.Write([]byte(piece))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(40 * time.Second)
			}
			if n < 6 {
				<-r.Context().Done()
			}
		})
		defer stop()
		pieces = 6
		if gaps, err := c.Gaps(t.Context(), []string{"ep_1"}); err != nil || len(gaps) != 1 {
			t.Errorf("slow: %+v, %v", gaps, err)
		}
		for pieces = 1; pieces < 6; pieces++ {
			began := time.Now()
			want := time.Duration(pieces-1)*40*time.Second + time.Minute
			if gaps, err := c.Gaps(t.Context(), []string{"ep_1"}); err == nil || time.Since(began) != want {
				t.Errorf("%d pieces, and after %v: %+v, %v", pieces, time.Since(began), gaps, err)
			}
		}
		pieces = 1
		began := time.Now()
		if text, err := c.Message(t.Context(), []byte(`{}`), nil); err == nil || time.Since(began) != time.Minute {
			t.Errorf("a message, after %v: %s, %v", time.Since(began), text, err)
		}
		status = http.StatusServiceUnavailable
		began = time.Now()
		if gaps, err := c.Gaps(t.Context(), []string{"ep_1"}); err == nil || time.Since(began) != time.Minute {
			t.Errorf("a refusal, after %v: %+v, %v", time.Since(began), gaps, err)
		}
	})
}
