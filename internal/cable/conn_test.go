package cable_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"hookglass/internal/cable"
)

// hijacked is a response whose connection the handler takes over.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

// A client whose rights end is off within 5 s (spec: decisions, section 14), also one that reads and never answers.
func TestASocketEndsAlthoughItsClientDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine, theirs := net.Pipe()
		silent := make(chan struct{})
		go func() { defer close(silent); _, _ = io.Copy(io.Discard, theirs) }()
		r := httptest.NewRequest("GET", "/cable", nil)
		for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			r.Header.Set(name, value)
		}
		start := time.Now()
		must(t, cable.Dismiss(hijacked{httptest.NewRecorder(), mine}, r))
		<-silent
		if took := time.Since(start); took != cable.Farewell {
			t.Errorf("the socket ended after %s, want %s", took, cable.Farewell)
		}
	})
}
