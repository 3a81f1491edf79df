package cli_test

import (
	"net/http"
	"strings"
	"testing"
)

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
		failed = strings.Fields(run(t, "", "targets", "deliveries", "1", "--status", "failed", "--since", "1h", "--ids").out)
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
