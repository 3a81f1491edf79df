package cli_test

import (
	"strings"
	"testing"
)

func TestAChannelIsNamedByItsName(t *testing.T) {
	endpoint, _ := listening(t)
	made := object(t, "", "channels", "create", "ops", "slack", "--url", "https://hooks.slack.example.com/services/x")
	id := member(t, made, "data", "id")
	alert := object(t, "", "alerts", "create", "-e", endpoint, "Quiet", "missing_webhook", "--window", "5", "--channel", "ops")
	if ids := member(t, alert, "data", "channel_ids").([]any); len(ids) != 1 || ids[0] != id {
		t.Errorf("%v", alert)
	}
	fails(t, 1, "channel_ids", "alerts", "create", "-e", endpoint, "Quiet", "missing_webhook", "--window", "5", "--channel", "oops")
	object(t, "", "channels", "enable", "ops")
	action := object(t, `{"name":"Tell","steps":[{"step_type":"notify","name":"Ping","config":{"channel":"ops"}}]}`, "actions", "create", "-e", endpoint, "-")
	object(t, "", "channels", "create", "night", "slack", "--url", "https://hooks.slack.example.com/services/y")
	if gone := object(t, "", "channels", "delete", "ops"); member(t, gone, "data", "id") != id ||
		member(t, member(t, gone, "data", "references").([]any)[0], "action_id") != member(t, action, "data", "id") {
		t.Errorf("%v", gone)
	}
	if r := run(t, "", "channels", "delete", "night"); r.code != 0 || strings.Count(r.out, "\n") != 1 {
		t.Errorf("a channel that no step names: %+v", r)
	}
	object(t, "", "channels", "create", "ops", "slack", "--url", "https://hooks.slack.example.com/services/x")
	if r := run(t, "", "channels", "delete", "ops"); r.code != 0 || !strings.Contains(r.out, "Step ping of action Tell") {
		t.Errorf("%+v", r)
	}
	fails(t, 1, "no such notification channel", "channels", "delete", "ops")
}
