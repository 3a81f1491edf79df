package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// A server that writes to the terminal of whoever listens: none of its texts moves the cursor or changes the title.
func TestListenPrintsNoOrdersToTheTerminal(t *testing.T) {
	const escape = "\x1b]0;owned\x07\u009b2J\u202e"
	text := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	endpoint := map[string]any{
		"id": "ep_" + escape, "name": escape, "kind": "webhook", "webhook_url": "http://x/" + escape, "tunnel_key": "tk_" + escape, "expires_at": "2026-11-20T10:00:00Z", "tunnel_active": true,
	}
	event := map[string]any{
		"type": "webhook_request", "id": "req_" + escape, "endpoint_id": "ep_" + escape, "method": "G" + escape, "path": "/" + escape, "query_string": escape, "detected_provider": escape,
		"provider_event_data": map[string]any{"event_type": escape}, "body": escape, "body_encoding": "utf8", "requested_at": "2026-11-20T10:00:00Z", "content_type": escape, "ip_address": escape,
	}
	mux := http.NewServeMux()
	reply := func(pattern string, status int, v any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status); fmt.Fprint(w, text(v)) })
	}
	reply("POST /api/v1/temporary_endpoints", 201, map[string]any{"data": endpoint})
	reply("GET /api/v1/endpoints/{id}", 200, map[string]any{"data": endpoint})
	reply("GET /api/v1/endpoints", 200, map[string]any{"data": []any{endpoint, endpoint}, "meta": map[string]any{}})
	reply("POST /api/v1/tunnel/connect", 200, map[string]any{"ticket": "tt_x", "expires_in": 30, "endpoint_id": "ep_x"})
	reply("POST /api/v1/tunnel/delivery_reports", 422, map[string]any{"error": escape, "message": escape})
	reply("POST /api/v1/tunnel/replay_results", 422, map[string]any{"error": escape, "message": escape})
	reply("GET /api/v1/tunnel/gaps", 422, map[string]any{"error": escape, "message": escape})
	mux.HandleFunc("GET /cable", func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"actioncable-v1-json"}})
		if err != nil {
			return
		}
		defer conn.CloseNow()
		send := func(v any) { _ = conn.Write(r.Context(), websocket.MessageText, []byte(text(v))) }
		send(map[string]any{"type": "welcome"})
		_, said, err := conn.Read(r.Context())
		var command struct{ Identifier string }
		if err != nil || json.Unmarshal(said, &command) != nil {
			t.Errorf("the client said %q, %v", said, err)
			return
		}
		send(map[string]any{"type": "confirm_subscription", "identifier": command.Identifier})
		on := func(message any) { send(map[string]any{"identifier": command.Identifier, "message": message}) }
		on(map[string]any{"type": "tunnel_replay_command", "command_id": "tcmd_" + escape, "method": "G" + escape, "url": "/" + escape, "result_token": escape})
		on(map[string]any{"type": "webhook_request", "id": escape + strings.Repeat("x", 1000)})
		on(event)
		send(map[string]any{"type": "disconnect", "reason": escape, "reconnect": true})
		_, _, _ = conn.Read(r.Context())
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	handler, _ := receiver(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for i, args := range [][]string{
		{"listen", "--server", s.URL}, // which goes on for ever
		{"listen", "--server", s.URL, "--token", "hg_x"},
		{"listen", "--server", s.URL, "--token", "hg_x", "-e", "ep_x", "--exit-after", "1", "--show-body", "--output", "compact"},
		{"listen", handler, "--server", s.URL, "--token", "hg_x", "-e", "ep_x", "--exit-after", "1", "--show-body", "--output", "compact"},
		{"listen", "--server", s.URL, "--token", "hg_x", "-e", "ep_x", "--exit-after", "1", "--show-body", "--output", "json"},
	} {
		g := begin(t, strings.NewReader(""), args...)
		if i == 0 {
			g.err.wait(t, "connection lost")
			g.stop()
		}
		select {
		case <-g.code:
		case <-time.After(patience):
			t.Fatalf("%v goes on:\n%s", args, g.err)
		}
		if said := g.out.String() + g.err.String(); !strings.Contains(said, "owned") || strings.ContainsAny(said, "\x1b\x07\u009b\u202e") {
			t.Errorf("%v: %q, %q", args, g.out, g.err)
		}
	}
}
