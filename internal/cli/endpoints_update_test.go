package cli_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHowAnEndpointAnswersIsChanged(t *testing.T) {
	endpoint, hook := listening(t)
	change := func(stdin string, args ...string) {
		t.Helper()
		if r := run(t, stdin, append([]string{"endpoints", "update", endpoint}, args...)...); r.code != 0 || !strings.Contains(r.out, "Changed "+endpoint) {
			t.Fatalf("%v: %+v", args, r)
		}
	}
	answered := func(status int, body, header string) {
		t.Helper()
		res, err := http.Post(hook, "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != status || !strings.HasPrefix(string(text), body) || res.Header.Get("Retry-After") != header {
			t.Errorf("answered %d %q %v, %v; want %d %q %q", res.StatusCode, text, res.Header, err, status, body, header)
		}
	}
	change("", "--status", "503", "--header", "Retry-After: 60")
	answered(503, "", "60")
	change("no: {{request.method}}", "--body", "-")
	answered(503, "no: POST", "60") // what is not named stays
	change("", "--status", "201", "--header", "retry-after: 1", "--delay", "1ms", "--name", "Shop", "--custom-id", "shop")
	answered(201, "no: POST", "1")
	change("", "--disable")
	answered(410, "", "")
	change("", "--enable", "--default-answer", "--custom-id", "none")
	change(`[{"when":"method:POST x","status":418,"body":"I am"}]`, "--rules", "-")
	answered(418, "I am", "")
	if r := run(t, "", "endpoints", "get", endpoint); !strings.Contains(r.out, "by 1 rule, else 200 (default)") {
		t.Errorf("%+v", r)
	}
	fails(t, 1, "response_rules.0.when", "endpoints", "update", endpoint, "--rules", rulesFile(t, `[{"when":"status:200"}]`))
	fails(t, 1, "holds no rules", "endpoints", "update", endpoint, "--rules", rulesFile(t, `[{"when":"path:/","code":1}]`))
	change("", "--rules", "none")
	answered(200, `{"received":true`, "")
	change("", "--response-mode", "tunnel")
	change("", "--script", "500,200")
	answered(500, `{"error":"scripted"`, "")
	change("", "--script", "none")
	inbox := member(t, object(t, "", "endpoints", "create", "Letters", "--kind", "email"), "data", "id").(string)
	if r := run(t, "", "endpoints", "update", inbox, "--script", "RCPT:451 Later,250"); r.code != 0 || !strings.Contains(r.out, "by the script rcpt:451 Later,250") {
		t.Errorf("%+v", r)
	}
	fails(t, 1, "entry 1 must be 250", "endpoints", "update", inbox, "--script", "200")
	if r := run(t, "", "endpoints", "update", inbox, "--script", "none"); !strings.Contains(r.out, "250 (mail)") {
		t.Errorf("%+v", r)
	}
	got := object(t, "", "endpoints", "get", endpoint)
	if member(t, got, "data", "name") != "Shop" || member(t, got, "data", "custom_id") != nil || member(t, got, "data", "provider_config", "response_mode") != "tunnel" {
		t.Errorf("%v", got)
	}
	if r := run(t, "", "endpoints", "get", endpoint); !strings.Contains(r.out, "that of the connected local machine") {
		t.Errorf("%+v", r)
	}
	for says, args := range map[string][]string{
		"what to change": {}, "no answer to set": {"--default-answer", "--status", "200"}, "together": {"--enable", "--disable"}, "not of the form": {"--header", "x"},
		"gives x-a twice": {"--header", "X-A: 1", "--header", "x-a: 2"},
	} {
		fails(t, 2, says, append([]string{"endpoints", "update", endpoint}, args...)...)
	}
	fails(t, 1, "status", "endpoints", "update", endpoint, "--status", "99")
	fails(t, 1, "no such endpoint", "endpoints", "update", "ep_none", "--status", "200")
}

func TestRulesAreTriedOnEventsThatCame(t *testing.T) {
	endpoint, hook := listening(t)
	send(t, hook, "application/json", `{"type":"ping"}`)
	send(t, hook, "text/plain", "x")
	rules := `[{"when":"body./type:ping","body":"pong"}]`
	r := run(t, rules, "endpoints", "try", endpoint, "--rules", "-")
	if r.code != 0 || !strings.Contains(r.out, "200     rule 1: body./type:ping") || !strings.Contains(r.out, "200     default") || !strings.Contains(r.out, "1 of 2 events would be answered by a rule.") {
		t.Errorf("%+v", r)
	}
	got := object(t, rules, "endpoints", "try", endpoint, "--rules", "-", "-q", "ping", "--limit", "1")
	if member(t, got, "data", "evaluated") != 1. || member(t, got, "data", "matched") != 1. {
		t.Errorf("%v", got)
	}
	if got := object(t, "", "endpoints", "try", endpoint, "--rules", "none"); member(t, got, "data", "matched") != 0. {
		t.Errorf("%v", got)
	}
	run(t, rules, "endpoints", "update", endpoint, "--rules", "-")
	send(t, hook, "application/json", `{"type":"ping"}`)
	if r := run(t, "", "requests", "get", "latest", "-e", endpoint); !strings.Contains(r.out, "Answered 200 (custom, by rule 1: body./type:ping)") {
		t.Errorf("%+v", r)
	}
	fails(t, 1, "response_rules.0.when", "endpoints", "try", endpoint, "--rules", rulesFile(t, `[{"when":"tag:x"}]`))
	fails(t, 1, "holds no rules", "endpoints", "try", endpoint, "--rules", rulesFile(t, `{}`))
	fails(t, 1, "limit", "endpoints", "try", endpoint, "--limit", "101")
	fails(t, 2, "--limit", "endpoints", "try", endpoint, "--limit", "0")
	fails(t, 1, "no such endpoint", "endpoints", "try", "ep_none")
}

func rulesFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
