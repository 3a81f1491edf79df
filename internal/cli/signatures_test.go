package cli_test

import (
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/cli"
)

func TestAnEndpointIsGivenTheSecretsOfItsSenders(t *testing.T) {
	endpoint, _ := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	fails(t, 1, "not checked here", "signatures", "check", "stripe")
	object(t, "", "trigger", "stripe") // signed with nothing that anybody could check
	if r := run(t, "whsec_one\r\n", "signatures", "set", "stripe", "--secret", "-"); r.code != 0 || !strings.Contains(r.out, "signatures check stripe") || strings.Contains(r.out+r.err, "whsec_one") {
		t.Errorf("%+v", r)
	}
	object(t, "", "trigger", "stripe")
	if got := member(t, object(t, "", "requests", "get", "latest"), "data", "signature_status"); got != "verified" {
		t.Errorf("signed with the secret: %v", got)
	}
	if r := run(t, "", "signatures", "check", "stripe"); r.code != 0 || !strings.Contains(r.out, "2 events: 1 verified") {
		t.Errorf("%+v", r)
	}
	// Another secret takes the place of the one before, or stands beside it.
	object(t, "", "signatures", "set", "stripe", "--secret", "whsec_two", "--keep-previous")
	if got := member(t, object(t, "", "signatures", "check", "stripe"), "data", "verified"); got != 1. {
		t.Errorf("beside another: %v", got)
	}
	object(t, "", "signatures", "set", "stripe", "--secret", "whsec_three")
	if got := member(t, object(t, "", "signatures", "check", "stripe"), "data", "verified"); got != 0. {
		t.Errorf("in the place of the others, %v are still right", got)
	}
	if r := run(t, "", "signatures"); r.code != 0 || !strings.Contains(r.out, "stripe") || strings.Contains(r.out, "whsec") {
		t.Errorf("%+v", r)
	}
	// An event whose signature is wrong says where to ask why, and there it is said.
	if r := run(t, "", "requests", "get", "latest"); r.code != 0 || !strings.Contains(r.out, "hookglass requests diagnose req_") {
		t.Errorf("%+v", r)
	}
	if r := run(t, "", "requests", "diagnose", "latest"); r.code != 0 || !strings.Contains(r.out, "another secret") || !strings.Contains(r.out, "\n- Copy the signing secret") {
		t.Errorf("%+v", r)
	}
	if got := member(t, object(t, "", "requests", "diagnose", "latest"), "data", "severity"); got != "problem" {
		t.Errorf("a wrong signature: %v", got)
	}
	object(t, "", "signatures", "delete", "stripe")
	if all := member(t, object(t, "", "signatures", "list"), "data").([]any); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
	fails(t, 1, "provider", "signatures", "set", "nobody", "--secret", "x")
	if r := run(t, "secret\xff\n", "signatures", "set", "github", "--secret", "-"); r.code != 2 || !strings.Contains(r.err, "UTF-8") {
		t.Errorf("%+v", r)
	}
	fails(t, 2, "--secret", "signatures", "set", "github")
}

// The key that a sender publishes may not have been fetched yet: the reason says so, and nothing has failed.
func TestOnlyASignatureThatFailedIsSaidToHaveFailed(t *testing.T) {
	e := api.EventDetail{}
	e.ID, e.EndpointID, e.SignatureStatus, e.SignatureReason = "req_1", "ep_1", string(hookglass.SignatureUnchecked), new("key_unavailable")
	if text := cli.Detail(e); strings.Contains(text, "failed") || !strings.Contains(text, "signature unchecked (key_unavailable)") {
		t.Error(text)
	}
	e.SignatureStatus, e.SignatureReason = string(hookglass.SignatureFailed), new("mismatch")
	if text := cli.Detail(e); !strings.Contains(text, "Why the signature failed: hookglass requests diagnose req_1 -e ep_1\n") {
		t.Error(text)
	}
}
