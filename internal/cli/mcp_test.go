package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hookglass/internal/cli"
)

func TestMCPPassesMessagesOn(t *testing.T) {
	a := running(t)
	in, out := io.Pipe()
	var answers, notes bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- cli.Main(t.Context(), []string{"mcp", "--server", a.server, "--token", a.reading}, in, &answers, &notes)
	}()
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		``,
		`{"jsonrpc":"2.0","id":"two","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"create_endpoint","arguments":{"name":"x"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"nothing"}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"list_endpoints","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`no message`,
	} {
		if _, err := io.WriteString(out, m+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	out.Close()
	if code := <-done; code != 0 || notes.Len() > 0 {
		t.Fatalf("exit %d: %s", code, notes.String())
	}
	got := map[string]string{}
	for line := range strings.Lines(answers.String()) {
		var m struct {
			ID     json.RawMessage
			Result json.RawMessage
			Error  *struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("not a message: %s", line)
		}
		got[string(m.ID)] = string(m.Result)
		if m.Error != nil {
			got[string(m.ID)] = m.Error.Message
		}
	}
	for id, want := range map[string]string{
		"1": `"protocolVersion":"2025-11-25"`, `"two"`: `"list_endpoints"`, "3": "scope write", "4": "Method not found", "5": `"structuredContent"`, "null": "Parse error",
	} {
		if !strings.Contains(got[id], want) {
			t.Errorf("answer to %s: %.200s, want %s", id, got[id], want)
		}
	}
	if len(got) != 6 {
		t.Errorf("%d answers: %v", len(got), answers.String())
	}
}

func TestMCPSaysWhatIsWrongWithTheServer(t *testing.T) {
	a := running(t)
	fails(t, 3, "not signed in", "mcp", "--server", a.server)
	var answers, notes bytes.Buffer
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	if code := cli.Main(t.Context(), []string{"mcp", "--server", a.server, "--token", "hg_wrong"}, in, &answers, &notes); code != 0 || !strings.Contains(answers.String(), `"id":1`) || !strings.Contains(answers.String(), "token") {
		t.Errorf("a token that is wrong: exit %d, %s%s", code, answers.String(), notes.String())
	}
	answers.Reset()
	in = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	if code := cli.Main(t.Context(), []string{"mcp", "--server", "http://127.0.0.1:1", "--token", "hg_x"}, in, &answers, &notes); code != 0 || !strings.Contains(answers.String(), `"error"`) {
		t.Errorf("a server that is not there: exit %d, %s", code, answers.String())
	}
}

// An agent waits for each answer, so what is none of a server is told as an error.
func TestMCPAnswersWhateverTheServerSays(t *testing.T) {
	for _, said := range []string{`{"jsonrpc":"2.0","id":1,"result":{`, `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 16<<20) + `"}`, "Hello"} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, said)
		}))
		in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
		var answers, notes bytes.Buffer
		if code := cli.Main(t.Context(), []string{"mcp", "--server", other.URL, "--token", "hg_x"}, in, &answers, &notes); code != 0 || !strings.Contains(answers.String(), `"error":`) || !strings.Contains(answers.String(), `"id":1`) {
			t.Errorf("%.50s: exit %d, %.500s%s", said, code, answers.String(), notes.String())
		}
		other.Close()
	}
}

func TestMCPAnswersNoCallThatWasCancelledAtOnce(t *testing.T) {
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(patience):
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{}}`)
		}
	}))
	t.Cleanup(slow.Close)
	var in strings.Builder
	for id := range 50 {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait_for_request","arguments":{}}}`+"\n", id)
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id)
	}
	var answers, notes bytes.Buffer
	if code := cli.Main(t.Context(), []string{"mcp", "--server", slow.URL, "--token", "hg_x"}, strings.NewReader(in.String()), &answers, &notes); code != 0 || answers.Len() > 0 {
		t.Errorf("exit %d, %s%s", code, answers.String(), notes.String())
	}
}

func TestMCPFailsWhenItsAnswersAreLost(t *testing.T) {
	a := running(t)
	in, out := io.Pipe() // stays open: the agent waits for its answer
	defer out.Close()
	var notes bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- cli.Main(t.Context(), []string{"mcp", "--server", a.server, "--token", a.reading}, in, full{}, &notes)
	}()
	if _, err := io.WriteString(out, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != 1 || !strings.Contains(notes.String(), "no space left") {
		t.Errorf("exit %d: %s", code, notes.String())
	}
}

func TestMCPRefusesALongMessageAndGoesOn(t *testing.T) {
	a := running(t)
	long := strings.Repeat("x", 2<<20)
	in := `{"params":{"text":"` + long + `"},"method":"tools/call","jsonrpc":"2.0","id":"long"}` + "\n" +
		`{"method":"notifications/progress","params":{"text":"` + long + `"},"jsonrpc":"2.0"}` + "\n" +
		strings.Repeat(long, 17) + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"ping"}` // without a line end
	var answers, notes bytes.Buffer
	code := cli.Main(t.Context(), []string{"mcp", "--server", a.server, "--token", a.reading}, strings.NewReader(in), &answers, &notes)
	if lines := strings.Split(strings.TrimSpace(answers.String()), "\n"); code != 0 || len(lines) != 3 || !strings.Contains(lines[0], `"id":"long"`) ||
		!strings.Contains(lines[0], "2097152 bytes at most") || !strings.Contains(lines[1], `"id":null`) || !strings.Contains(lines[2], `"id":2`) || !strings.Contains(lines[2], "result") {
		t.Errorf("exit %d, %.2000s%s", code, answers.String(), notes.String())
	}
}

// A notification that the server is slow to take keeps nothing from being asked.
func TestMCPPassesCallsOnBesideNotifications(t *testing.T) {
	asked := make(chan bool)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "notifications/") {
			select {
			case <-asked:
			case <-r.Context().Done():
			}
			w.WriteHeader(http.StatusAccepted)
			return
		}
		close(asked)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}))
	t.Cleanup(slow.Close)
	in := `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	var answers, notes bytes.Buffer
	if code := cli.Main(t.Context(), []string{"mcp", "--server", slow.URL, "--token", "hg_x"}, strings.NewReader(in), &answers, &notes); code != 0 || !strings.Contains(answers.String(), `"id":1`) {
		t.Errorf("exit %d, %s%s", code, answers.String(), notes.String())
	}
}

func TestMCPEndsAtASignalWhileNothingIsAsked(t *testing.T) {
	ctx, signal := context.WithCancel(t.Context())
	in, out := io.Pipe()
	defer out.Close()
	var answers, notes bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- cli.Main(ctx, []string{"mcp", "--server", "http://127.0.0.1:1", "--token", "hg_x"}, in, &answers, &notes)
	}()
	if _, err := io.WriteString(out, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil { // it reads
		t.Fatal(err)
	}
	signal()
	if code := <-done; code != 0 || notes.Len() > 0 {
		t.Errorf("exit %d: %s", code, notes.String())
	}
}

func TestWhoIsAskedForInputCanLeave(t *testing.T) {
	for _, args := range [][]string{
		{"admin", "user", "create", "--email", "ada@example.com", "--password-stdin", "--data", t.TempDir()},
		{"bundle", "inspect", "-"},
		{"flow", "run", "-", "--server", "http://127.0.0.1:1", "--token", "hg_x"},
	} {
		ctx, signal := context.WithCancel(t.Context())
		signal()
		in, out := io.Pipe()
		var answers, notes bytes.Buffer
		if code := cli.Main(ctx, args, in, &answers, &notes); code == 0 || !strings.Contains(notes.String(), "stopped") {
			t.Errorf("%v: exit %d, %s", args, code, notes.String())
		}
		out.Close()
	}
}
