package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestTheLatestEventNeedsNoID(t *testing.T) {
	endpoint, hook := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	fails(t, 1, "nothing came", "requests", "get", "latest")
	object(t, "", "trigger", "github.push")
	send(t, hook, "text/plain", "newest")
	if got := member(t, object(t, "", "requests", "get", "latest"), "data", "body"); got != "newest" {
		t.Errorf("the latest is %v", got)
	}
	if r := run(t, "", "requests", "get", "latest", "--body"); r.out != "newest" {
		t.Errorf("its body is %+v", r)
	}
	if got := member(t, object(t, "", "requests", "get", "latest push"), "data", "detected_provider"); got != "github" {
		t.Errorf("the latest push is of %v", got)
	}
	fails(t, 1, "nothing of the type ping; what comes from unknown senders has no type", "requests", "get", "latest ping")
	fails(t, 1, "no such request", "requests", "get", "latestpush")
	if got := object(t, "", "replay", "latest push", "--to", "https://app.example.com/", "--dry-run"); member(t, got, "data", "dry_run") != true {
		t.Errorf("%v", got)
	}
	if r := run(t, "", "bundle", "create", "latest push", "-o", filepath.Join(t.TempDir(), "b.json")); r.code != 0 || !strings.Contains(r.out, "1 request") {
		t.Errorf("%+v", r)
	}
	// A port is that of a listen, which is another way.
	for _, to := range []string{"3000", "localhost:3000"} {
		fails(t, 2, "hookglass listen", "replay", "latest", "--to", to)
	}
}
