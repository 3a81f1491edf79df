package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hookglass/internal/cli"
)

func TestManyEventsAreReplayed(t *testing.T) {
	t.Setenv("HOOKGLASS_OUTBOUND_ALLOW", "127.0.0.1/32:1-65535")
	endpoint, hook := listening(t)
	for n := range 3 {
		send(t, hook, "application/json", fmt.Sprintf(`{"n":%d}`, n))
	}
	var got []string
	target := handler(t, func(w http.ResponseWriter, body string) {
		if got = append(got, body); body == `{"n":1}` {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	replays := func(args ...string) []string { return append([]string{"replays", "-e", endpoint}, args...) }
	if r := run(t, "", replays("run", "--all", "--to", target, "--dry-run")...); r.code != 0 || r.out != "It would be 3 requests.\n" || len(got) > 0 {
		t.Errorf("%+v, sent %v", r, got)
	}
	r := run(t, "", replays("run", "-q", "method:POST", "--to", target, "--rate", "100")...)
	if r.code != 1 || !strings.Contains(r.out, "completed: 2 passed, 1 failed, 0 not sent") || !strings.Contains(r.err, "1 of 3 requests failed") || strings.Join(got, "") != `{"n":0}{"n":1}{"n":2}` {
		t.Errorf("%+v, sent %v", r, got)
	}
	id, _, _ := strings.Cut(r.out, ":")
	failed := member(t, object(t, "", replays("results", id, "--failed")...), "data").([]any)
	if len(failed) != 1 || member(t, failed[0], "status_code") != 418. {
		t.Errorf("failed: %v", failed)
	}
	if all := member(t, object(t, "", replays("results", id)...), "data").([]any); len(all) != 3 {
		t.Errorf("results: %v", all)
	}
	if r := run(t, "", replays("get", id)...); r.code != 0 || !strings.Contains(r.out, "completed") {
		t.Errorf("%+v", r)
	}
	fails(t, 1, "", replays("cancel", id)...) // it has ended

	event := member(t, failed[0], "event_id").(string)
	r = run(t, "", replays("run", event, event, "--to", target, "--stop-on-failure", "--json")...)
	if one := decode(t, r.out); r.code != 1 || member(t, one, "data", "total") != 1. || member(t, one, "data", "state") != "stopped" || !strings.Contains(r.err, "1 of 1 request failed") {
		t.Errorf("%+v", r)
	}
	if all := member(t, object(t, "", replays()...), "data").([]any); len(all) != 2 {
		t.Errorf("listed: %v", all)
	}
	for _, wrong := range [][]string{{"run", "--to", target}, {"run", event, "--all", "--to", target}, {"run", "--all"}, {"run", "--all", "--to", target, "--rate", "0"}} {
		fails(t, 2, "", replays(wrong...)...)
	}
	fails(t, 1, "provder", replays("run", "-q", "provder:1", "--to", target)...)
}

func TestABulkReplayIsPausedAndGoesOnWithoutItsCommand(t *testing.T) {
	t.Setenv("HOOKGLASS_OUTBOUND_ALLOW", "127.0.0.1/32:1-65535")
	endpoint, hook := listening(t)
	for range 2 {
		send(t, hook, "text/plain", "x")
	}
	began, release := make(chan bool, 2), make(chan bool)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began <- true
		<-release
	}))
	defer slow.Close()
	defer close(release)
	ctx, signal := context.WithCancel(t.Context())
	defer signal()
	out, notes, code := newFeed(), newFeed(), make(chan int, 1)
	go func() {
		code <- cli.Main(ctx, []string{"replays", "run", "--all", "--to", slow.URL, "-e", endpoint}, strings.NewReader(""), out, notes)
	}()
	id := out.wait(t, `^(rbat_\w+): 2 requests\n`) // it may have begun to send before its command knows
	<-began
	signal()
	if code := <-code; code != 1 || !strings.Contains(notes.String(), "the bulk replay goes on: hookglass replays get "+id) {
		t.Errorf("%d %s %s", code, out, notes)
	}
	for _, move := range [][2]string{{"pause", "paused"}, {"resume", "running"}, {"cancel", "canceled"}} {
		if now := object(t, "", "replays", "-e", endpoint, move[0], id); member(t, now, "data", "state") != move[1] {
			t.Errorf("%s: %v", move[0], now)
		}
	}
}
