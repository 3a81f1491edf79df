package cli_test

import (
	"fmt"
	"net/http"
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
