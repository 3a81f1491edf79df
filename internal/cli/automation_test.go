package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// What alerts, channels, tags and figures are to who types: one server for all.
func TestWhatWatchesAnEndpoint(t *testing.T) {
	t.Setenv("HOOKGLASS_OUTBOUND_ALLOW", "127.0.0.1/32:1-65535")
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	endpoint := object(t, "", "endpoints", "create", "Payments")
	ep := member(t, endpoint, "data", "id").(string)

	status := http.StatusOK
	told := make(chan string, 10)
	address := handler(t, func(w http.ResponseWriter, body string) { w.WriteHeader(status); told <- body }) + "/very-secret"
	made := object(t, address+"\n", "channels", "create", "On call", "slack", "--url", "-")
	channel := member(t, made, "data", "id").(string)
	if strings.Contains(fmt.Sprint(made), "very-secret") {
		t.Errorf("a credential comes back: %v", made)
	}
	if r := run(t, "", "channels", "test", channel); r.code != 0 || !strings.Contains(r.out, "taken") {
		t.Errorf("test: %+v", r)
	}
	if body := <-told; !strings.Contains(body, "text") {
		t.Errorf("the channel was told %s", body)
	}
	status = http.StatusNotFound
	if r := run(t, "", "channels", "test", channel); r.code != 1 || !strings.Contains(r.err, "404") {
		t.Errorf("test of one that refuses: %+v", r)
	}
	pushed := object(t, "", "channels", "create", "Push", "webhook", "--url", address, "--event", "alert.triggered")
	if secret := member(t, pushed, "data", "secret").(string); !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("the secret is %s", secret)
	}
	if r := run(t, "", "channels", "list"); r.code != 0 || !strings.Contains(r.out, "On call") || strings.Contains(r.out, "very-secret/") || strings.Contains(r.out, "whsec_") {
		t.Errorf("list: %+v", r)
	}
	if r := run(t, "", "channels", "enable", channel); r.code != 0 || !strings.Contains(r.out, "active") && !strings.Contains(r.out, "failing") {
		t.Errorf("enable: %+v", r)
	}
	fails(t, 2, "standard input", "channels", "create", "x", "slack", "--url", "-")
	if r := run(t, "secret\xff\n", "channels", "create", "x", "webhook", "--url", address, "--secret", "-"); r.code != 2 || !strings.Contains(r.err, "UTF-8") {
		t.Errorf("a secret that is no text: %+v", r)
	}
	fails(t, 2, "--factor must be a number", "alerts", "create", "x", "volume_spike", "-e", "ep_x", "--factor", "NaN")
	fails(t, 1, "notification_channel.config.url", "channels", "create", "x", "webhook")

	alert := member(t, object(t, "", "alerts", "create", "Quiet", "missing_webhook", "-e", ep, "--window", "5", "--channel", channel), "data", "id").(string)
	if r := run(t, "", "alerts", "list", "-e", ep); r.code != 0 || !strings.Contains(r.out, "missing_webhook") || !strings.Contains(r.out, "ok") {
		t.Errorf("list: %+v", r)
	}
	if got := object(t, "", "alerts", "incidents", alert, "-e", ep); len(member(t, got, "data").([]any)) != 0 {
		t.Errorf("incidents: %v", got)
	}
	fails(t, 1, "alert.config.threshold", "alerts", "create", "x", "error_response", "-e", ep, "--window", "5")
	object(t, "", "alerts", "delete", alert, "-e", ep)
	object(t, "", "channels", "delete", channel)

	tag := strconv.Itoa(int(member(t, object(t, "", "tags", "create", "billing"), "data", "id").(float64)))
	if r := run(t, "", "tags", "rename", tag, "invoices"); r.code != 0 || !strings.Contains(r.out, "invoices") {
		t.Errorf("rename: %+v", r)
	}
	if r := run(t, "", "tags", "list"); r.code != 0 || !strings.Contains(r.out, "invoices") {
		t.Errorf("list: %+v", r)
	}

	send(t, member(t, endpoint, "data", "webhook_url").(string), "text/plain", "hello")
	if r := run(t, "", "metrics", "-e", ep, "--window", "1h"); r.code != 0 || !strings.Contains(r.out, "1, 0 of them ignored") || !strings.Contains(r.out, "200 1") {
		t.Errorf("metrics: %+v", r)
	}
	fails(t, 1, "window", "metrics", "-e", ep, "--window", "91d")

	event := member(t, member(t, object(t, "", "requests", "list", "-e", ep), "data").([]any)[0], "id").(string)
	action := member(t, object(t, `{"name":"Mark","steps":[{"step_type":"tag","name":"Mark","config":{"tag":"invoices"}}]}`, "actions", "create", "-", "-e", ep), "data", "id").(string)
	if r := run(t, "", "actions", "list", "-e", ep); r.code != 0 || !strings.Contains(r.out, "Mark") || !strings.Contains(r.out, "enabled") {
		t.Errorf("list: %+v", r)
	}
	if r := run(t, "", "actions", "preview", action, event, "-e", ep); r.code != 0 || !strings.Contains(r.out, "invoices") {
		t.Errorf("preview: %+v", r)
	}
	again := member(t, object(t, "", "actions", "run", action, event, "-e", ep), "data", "id").(string)
	if r := run(t, "", "actions", "runs", action, "-e", ep); r.code != 0 || !strings.Contains(r.out, again) {
		t.Errorf("runs: %+v", r)
	}
	if r := run(t, "", "actions", "disable", action, "-e", ep); r.code != 0 || !strings.Contains(r.out, "disabled") {
		t.Errorf("disable: %+v", r)
	}
	if r := run(t, "", "actions", "enable", action, "-e", ep); r.code != 0 || !strings.Contains(r.out, "enabled") {
		t.Errorf("enable: %+v", r)
	}
	fails(t, 1, "steps of actions use it", "tags", "delete", tag)
	if r := run(t, "", "actions", "get", action, "-e", ep); r.code != 0 || !strings.Contains(r.out, `"recent_runs"`) {
		t.Errorf("get: %+v", r)
	}
	if r := run(t, `{"nam":"Mark"}`, "actions", "create", "-", "-e", ep); r.code != 1 || !strings.Contains(r.err, "is no action") || !strings.Contains(r.err, "nam") {
		t.Errorf("create of what is misspelled: %+v", r)
	}
	object(t, "", "actions", "delete", action, "-e", ep)
	object(t, "", "tags", "delete", tag)
}

// TestActionsUpdate changes an action by a file, which what "actions get" prints can be after an edit.
func TestActionsUpdate(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	ep := member(t, object(t, "", "endpoints", "create", "Shop"), "data", "id").(string)
	action := member(t, object(t, `{
		"name": "Mark", "enabled": false, "failure_policy": "stop", "position": 1,
		"conditions": [{"field": "event_type", "operator": "exists"}, {"field": "provider", "operator": "equals", "value": "stripe"}],
		"steps": [
			{"reference_key": "mark", "step_type": "tag", "name": "Mark", "config": {"tag": "one"}},
			{"reference_key": "call", "step_type": "http_request", "config": {"method": "POST", "url": "https://crm.example.com/<{{ request.id }}>&", "headers": {"Authorization": "Bearer x"}},
			 "conditions": [{"source": "steps.mark", "path": "/status", "operator": "equals", "value": "completed"}]}
		]}`, "actions", "create", "-", "-e", ep), "data", "id").(string)
	shown := func() map[string]any { // what can be changed
		t.Helper()
		a := member(t, object(t, "", "actions", "get", action, "-e", ep), "data").(map[string]any)
		delete(a, "updated_at")
		return a
	}
	before := shown()

	for _, form := range [][]string{{}, {"--json"}} { // what was printed, fed back, changes nothing
		printed := run(t, "", append([]string{"actions", "get", "Mark", "-e", ep}, form...)...)
		if r := run(t, printed.out, "actions", "update", "Mark", "-", "-e", ep); r.code != 0 || !strings.Contains(r.out, "Changed action "+action+": Mark") {
			t.Errorf("update by what get %v prints: %+v", form, r)
		}
		if after := shown(); !reflect.DeepEqual(after, before) {
			t.Errorf("update by what get %v prints made\n%v of\n%v", form, after, before)
		}
		edited := strings.Replace(printed.out, `"one"`, `"two"`, 1)
		if r := run(t, edited, "actions", "update", action, "-", "-e", ep); r.code != 0 {
			t.Errorf("update by an edited file: %+v", r)
		}
		if tag := member(t, member(t, shown(), "steps").([]any)[0], "config", "tag"); tag != "two" {
			t.Errorf("the edited step tags %v", tag)
		}
		object(t, printed.out, "actions", "update", action, "-", "-e", ep)
	}

	file := filepath.Join(t.TempDir(), "mark.json")
	if err := os.WriteFile(file, []byte(`{"endpoint_action": {"name": "Mark all", "conditions": []}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	object(t, "", "actions", "update", "Mark", file, "-e", ep)
	before["name"], before["conditions"] = "Mark all", []any{}
	if after := shown(); !reflect.DeepEqual(after, before) {
		t.Errorf("a file with a name and no conditions made\n%v instead of\n%v", after, before)
	}
	if all := member(t, object(t, "", "actions", "list", "-e", ep), "data").([]any); len(all) != 1 {
		t.Errorf("there are %d actions", len(all))
	}

	if r := run(t, `{"nam":"Mark"}`, "actions", "update", action, "-", "-e", ep); r.code != 1 || !strings.Contains(r.err, "is no action") || !strings.Contains(r.err, "nam") {
		t.Errorf("update by what is misspelled: %+v", r)
	}
	if r := run(t, `{}`, "actions", "update", "Another", "-", "-e", ep); r.code != 1 {
		t.Errorf("update of what is not there: %+v", r)
	}
}
