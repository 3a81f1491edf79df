package cli_test

import (
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
	if gone := object(t, "", "channels", "delete", "ops"); member(t, gone, "data", "id") != id {
		t.Errorf("%v", gone)
	}
	fails(t, 1, "no such notification channel", "channels", "delete", "ops")
}
