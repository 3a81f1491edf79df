package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hookglass/internal/server"
)

// An EventSource that is refused while the service starts would not come again: it waits, and nothing else does.
func TestStreamsWaitForTheStart(t *testing.T) {
	draining := make(chan struct{})
	g, open := server.NewGate(draining)
	ask := func(method, accept string) <-chan int {
		answered := make(chan int, 1)
		go func() {
			r := httptest.NewRequest(method, "/api/v1/endpoints/ep_1/stream", nil)
			r.Header.Set("Accept", accept)
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			answered <- w.Code
		}()
		return answered
	}
	want := func(what string, answered <-chan int, code int) {
		t.Helper()
		select {
		case got := <-answered:
			if got != code {
				t.Errorf("%s: %d, want %d", what, got, code)
			}
		case <-time.After(patience):
			t.Fatalf("%s: no answer", what)
		}
	}
	want("another request", ask(http.MethodGet, "application/json"), http.StatusServiceUnavailable)
	want("a call of MCP", ask(http.MethodPost, "application/json, text/event-stream"), http.StatusServiceUnavailable)
	stream := ask(http.MethodGet, "text/event-stream")
	select {
	case code := <-stream:
		t.Fatalf("a stream was answered %d before the start", code)
	case <-time.After(20 * time.Millisecond):
	}
	open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	want("a stream, once open", stream, http.StatusOK)

	g, _ = server.NewGate(draining)
	stream = ask(http.MethodGet, "text/event-stream")
	close(draining)
	want("a stream, when stopping", stream, http.StatusServiceUnavailable)
}
