package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Tables show the times of this machine: who copies one means it.
func TestATimeWithoutAnOffsetIsOfThisMachine(t *testing.T) {
	var asked url.Values
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query()
		fmt.Fprint(w, `{"data":{"endpoint_id":"ep_1","balanced":true}}`)
	}))
	defer server.Close()
	t.Setenv("HOOKGLASS_SERVER", server.URL)
	t.Setenv("HOOKGLASS_TOKEN", "hg_x")
	wants := func(name string, want time.Time) {
		t.Helper()
		if got, err := time.Parse(time.RFC3339, asked.Get(name)); err != nil || !got.Equal(want) {
			t.Errorf("%s is %q, not %v", name, asked.Get(name), want)
		}
	}
	object(t, "", "ledger", "ep_1", "--from", "2026-07-20 10:00:00", "--to", "2026-07-21")
	wants("from", time.Date(2026, 7, 20, 10, 0, 0, 0, time.Local))
	wants("to", time.Date(2026, 7, 21, 0, 0, 0, 0, time.Local))
	object(t, "", "targets", "resend", "7", "-e", "ep_1", "--since", "2026-01-20t10:00", "--until", "2026-01-20T10:00Z")
	wants("after", time.Date(2026, 1, 20, 10, 0, 0, 0, time.Local))
	if asked.Get("before") != "2026-01-20T10:00Z" {
		t.Errorf("before is %q", asked.Get("before"))
	}
}

func TestWhatFailedAtATargetIsSentAgainThroughIt(t *testing.T) {
	t.Setenv("HOOKGLASS_OUTBOUND_ALLOW", "127.0.0.1/32:1-65535")
	endpoint, hook := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	away := make(chan struct{})
	target := handler(t, func(w http.ResponseWriter, body string) {
		select {
		case <-away:
		default:
			w.WriteHeader(http.StatusBadRequest) // which is not tried again
		}
	})
	object(t, "", "targets", "create", "app", target)
	for _, body := range []string{"1", "2", "3"} {
		send(t, hook, "text/plain", body)
	}
	ids := func(status string) []string {
		t.Helper()
		return strings.Fields(run(t, "", "targets", "deliveries", "1", "--status", status, "--ids").out)
	}
	var failed []string
	for len(failed) < 3 {
		failed = ids("failed")
	}
	close(away)
	if r := run(t, "", "targets", "resend", "1", "--until", "1h"); r.code != 0 || r.out != "Sending again: 0.\n" {
		t.Errorf("%+v", r)
	}
	if r := run(t, "", "targets", "resend", "1", failed[0]); r.code != 0 || r.out != failed[0]+" is pending.\n" {
		t.Errorf("%+v", r)
	}
	if all := object(t, "", "targets", "resend", "1", "--since", "1h"); member(t, all, "data", "resent") != 2. || member(t, all, "data", "paused_at") != nil {
		t.Errorf("%v", all)
	}
	for arrived := 0; arrived < 3; {
		arrived = len(ids("delivered"))
	}
	if l := object(t, "", "ledger"); member(t, member(t, l, "data", "consumers").([]any)[0], "delivered") != 3. {
		t.Errorf("%v", l)
	}
	fails(t, 1, "The delivery arrived", "targets", "resend", "1", failed[1])
	fails(t, 1, "no such delivery", "targets", "resend", "1", "req_none")
	fails(t, 1, "no such forwarding target", "targets", "resend", "9")
	fails(t, 2, "name no deliveries", "targets", "resend", "1", failed[1], "--since", "1h")
	fails(t, 2, "counts back", "targets", "resend", "1", "--since", "soon")
	fails(t, 2, "--until", "targets", "resend", "1", "--until", "soon")
}

func TestWhatATargetMissedIsFoundAndSentAgain(t *testing.T) {
	t.Setenv("HOOKGLASS_OUTBOUND_ALLOW", "127.0.0.1/32:1-65535")
	endpoint, hook := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	away, got := make(chan struct{}), make(chan string, 4)
	target := handler(t, func(w http.ResponseWriter, body string) {
		select {
		case <-away:
			got <- body
		default:
			w.WriteHeader(http.StatusBadRequest) // which is not tried again
		}
	})
	object(t, "", "targets", "create", "app", target)
	send(t, hook, "text/plain", "1")
	send(t, hook, "text/plain", "2")
	var failed []string
	for len(failed) < 2 {
		failed = strings.Fields(run(t, "", "targets", "deliveries", "1", "--status", "failed", "--since", "2w", "--ids").out)
	}
	if r := run(t, "", "targets", "deliveries", "1"); r.code != 0 || !strings.Contains(r.out, failed[1]) || !strings.Contains(r.out, "400") {
		t.Errorf("%+v", r)
	}
	if all := member(t, object(t, "", "targets", "deliveries", "1", "--limit", "1"), "data").([]any); len(all) != 1 || member(t, all[0], "event_id") != failed[1] {
		t.Errorf("the newest is %v of %v", all, failed)
	}
	if r := run(t, "", "targets", "deliveries", "1", "--status", "delivered", "--ids"); r.code != 0 || r.out != "" {
		t.Errorf("%+v", r)
	}
	close(away)
	if r := run(t, "", append([]string{"replays", "run", "--to", target}, failed...)...); r.code != 0 || !strings.Contains(r.out, "2 passed") {
		t.Errorf("%+v", r)
	}
	if first, second := <-got, <-got; first != "1" || second != "2" {
		t.Errorf("sent %s and %s", first, second)
	}
	fails(t, 2, "1 to 1000", "targets", "deliveries", "1", "--limit", "1001")
	fails(t, 2, "no JSON", "targets", "deliveries", "1", "--ids", "--json")
	fails(t, 1, "no such forwarding target", "targets", "deliveries", "9")
}
