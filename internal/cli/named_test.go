package cli_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// What a person gave a name to answers to it, as long as only one thing has it.
func TestThingsAnswerToTheirNames(t *testing.T) {
	t.Setenv("HOOKGLASS_OUTBOUND_ALLOW", "127.0.0.1/32:1-65535")
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	created := object(t, "", "endpoints", "create", "Payments")
	t.Setenv("HOOKGLASS_ENDPOINT", member(t, created, "data", "id").(string))

	number := func(args ...string) string {
		t.Helper()
		return strconv.Itoa(int(member(t, object(t, "", args...), "data", "id").(float64)))
	}
	staging := number("targets", "create", "my staging", "https://staging.example.com/")
	for _, args := range [][]string{
		{"targets", "get", "my staging"}, {"targets", "pause", "my staging"}, {"targets", "resume", "my staging"},
		{"targets", "update", "my staging", "--timeout", "7"}, {"targets", "update", "my staging", "--header", "X-A: 1"},
	} {
		if got := strconv.Itoa(int(member(t, object(t, "", args...), "data", "id").(float64))); got != staging {
			t.Errorf("%q: target %s, want %s", args, got, staging)
		}
	}
	send(t, member(t, created, "data", "webhook_url").(string), "text/plain", "one that waits")
	if waits := member(t, object(t, "", "targets", "deliveries", "my staging"), "data").([]any); len(waits) != 1 {
		t.Errorf("deliveries: %v", waits)
	}
	object(t, "", "targets", "resend", "my staging", "--since", "1h")

	// a number is an id, even where it is the name of another
	number("targets", "create", staging, "https://other.example.com/")
	if got := object(t, "", "targets", "get", staging); member(t, got, "data", "name") != "my staging" {
		t.Errorf("%s is a name before it is an id: %v", staging, got)
	}
	fails(t, 1, "there is no forwarding target My staging", "targets", "delete", "My staging")
	second := number("targets", "create", "my staging", "https://staging.example.com/")
	if r := run(t, "", "targets", "delete", "my staging"); r.code != 1 || !strings.Contains(r.err, "by its id: "+staging+", "+second) {
		t.Errorf("of two: %+v", r)
	}
	object(t, "", "targets", "delete", second)
	object(t, "", "targets", "delete", "my staging")

	object(t, "", "tags", "create", "billing")
	object(t, "", "tags", "rename", "billing", "invoices")
	object(t, "", "tags", "delete", "invoices")
	fails(t, 1, "there is no tag invoices", "tags", "delete", "invoices")

	object(t, "", "alerts", "create", "It is quiet", "missing_webhook", "--window", "5")
	object(t, "", "alerts", "incidents", "It is quiet")
	object(t, "", "alerts", "delete", "It is quiet")
	fails(t, 1, "no such alert", "alerts", "delete", "It is quiet")

	send(t, member(t, created, "data", "webhook_url").(string), "text/plain", "for a case")
	made := object(t, "", "cases", "create", "latest", "An invoice is paid", "--to", handler(t, func(http.ResponseWriter, string) {}), "--status", "2xx")
	if got := object(t, "", "cases", "run", "An invoice is paid"); member(t, got, "data", "replay_case_id") != member(t, made, "data", "id") {
		t.Errorf("run %v of case %v", got, made)
	}
	fails(t, 1, "no such replay case", "cases", "run", "An invoice")

	action := member(t, object(t, `{"name":"Tell the CRM","steps":[]}`, "actions", "create", "-"), "data", "id")
	for _, args := range [][]string{{"get"}, {"preview", "latest"}, {"run", "latest"}, {"runs"}, {"disable"}, {"enable"}} {
		object(t, "", append([]string{"actions", args[0], "Tell the CRM"}, args[1:]...)...)
	}
	if got := object(t, "", "actions", "delete", "Tell the CRM"); member(t, got, "data", "id") != action {
		t.Errorf("deleted %v, want %v", got, action)
	}
	fails(t, 1, "no such action", "actions", "runs", "Tell the CRM")
}
