package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/server"
)

// door is what each of those who came to a gate was told.
type door struct {
	t *testing.T
	http.Handler
}

func (d door) ask(method, accept string) <-chan int {
	answered := make(chan int, 1)
	go func() {
		r := httptest.NewRequest(method, "/api/v1/endpoints/ep_1/stream", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		answered <- w.Code
	}()
	return answered
}

func (d door) want(what string, answered <-chan int, code int) {
	d.t.Helper()
	select {
	case got := <-answered:
		if got != code {
			d.t.Errorf("%s: %d, want %d", what, got, code)
		}
	case <-time.After(patience):
		d.t.Fatalf("%s: no answer", what)
	}
}

// waits fails the test if an answer is there before the start.
func (d door) waits(what string, answered <-chan int) {
	d.t.Helper()
	select {
	case code := <-answered:
		d.t.Fatalf("%s was answered %d before the start", what, code)
	case <-time.After(20 * time.Millisecond):
	}
}

var served = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })

// An EventSource that is refused while the service starts would not come again: it waits when nothing else does.
func TestStreamsWaitForALongStart(t *testing.T) {
	draining := make(chan struct{})
	g, open := server.NewGate(draining, 0)
	d := door{t, g}
	d.want("another request", d.ask(http.MethodGet, "application/json"), http.StatusServiceUnavailable)
	d.want("a call of MCP", d.ask(http.MethodPost, "application/json, text/event-stream"), http.StatusServiceUnavailable)
	if _, err := g.Admit(t.Context(), "ep_1"); !hookglass.Is(err, hookglass.CodeUnavailable) {
		t.Errorf("a webhook: %v", err)
	}
	stream := d.ask(http.MethodGet, "text/event-stream")
	d.waits("a stream", stream)
	open(served, nil)
	d.want("a stream, once open", stream, http.StatusOK)

	g, _ = server.NewGate(draining, 0)
	d = door{t, g}
	stream = d.ask(http.MethodGet, "text/event-stream")
	close(draining)
	d.want("a stream, when stopping", stream, http.StatusServiceUnavailable)
}

// errHere is what the service says to all that it is asked, once it has started.
var errHere = errors.New("it has started")

type here struct{ server.Capturer }

func (here) Admit(context.Context, string) (t capture.Target, err error)        { return t, errHere }
func (here) AdmitMail(context.Context, string) (t capture.Target, err error)    { return t, errHere }
func (here) AdmitMailbox(context.Context, string) (t capture.Target, err error) { return t, errHere }

// Nobody who comes in the moment of a usual start is refused: not a caller, not a webhook, not a mail.
func TestThoseWhoComeWithTheStartWaitForIt(t *testing.T) {
	draining := make(chan struct{})
	g, open := server.NewGate(draining, time.Hour)
	d := door{t, g}
	admissions := map[string]func(context.Context, string) (capture.Target, error){"a webhook": g.Admit, "a mail": g.AdmitMail, "a posted mail": g.AdmitMailbox}
	admitted := make(map[string]chan error)
	for what, admit := range admissions {
		answered := make(chan error, 1)
		go func() {
			_, err := admit(t.Context(), "ep_1")
			answered <- err
		}()
		admitted[what] = answered
	}
	call := d.ask(http.MethodGet, "application/json")
	d.waits("a call", call)
	open(served, here{})
	d.want("a call, once open", call, http.StatusOK)
	for what, answered := range admitted {
		select {
		case err := <-answered:
			if !errors.Is(err, errHere) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s: no answer", what)
		}
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	g, _ = server.NewGate(draining, time.Hour)
	if _, err := g.Admit(gone, "ep_1"); !hookglass.Is(err, hookglass.CodeUnavailable) {
		t.Errorf("a sender who has gone: %v", err)
	}
	close(draining)
	d = door{t, g}
	d.want("a call, when stopping", d.ask(http.MethodGet, "application/json"), http.StatusServiceUnavailable)
}
