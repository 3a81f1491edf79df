package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAFileIsAppliedExportedAndPruned(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	t.Setenv("STRIPE", "whsec_hush")
	if none, ok := object(t, "", "endpoints", "export")["data"].([]any); !ok || len(none) != 0 {
		t.Errorf("--json of no endpoints: %v, and no empty list", none)
	}
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "endpoints.yaml"), `
endpoints:
- custom_id: pay
  name: Pay
  signature_configs: [{provider: stripe, secret: {env: STRIPE}}]
  forwarding_targets: [{name: crm, url: "https://crm.example.com/", timeout_seconds: 7}]
- custom_id: spare
`)
	r := run(t, "", "apply", "-f", file, "--dry-run")
	if r.code != 0 || !strings.Contains(r.out, "+ endpoint pay\n") || !strings.Contains(r.out, `+ forwarding_target "crm" of pay`) || !strings.Contains(r.out, "4 to change; this was a dry run") {
		t.Errorf("dry run: %+v", r)
	}
	fails(t, 1, "no such endpoint", "endpoints", "get", "pay")
	if got := object(t, "", "apply", "-f", file); member(t, got, "data", "changed") != 4. || member(t, got, "data", "applied") != true {
		t.Errorf("applied: %v", got)
	}
	if r := run(t, "", "apply", "-f", file); r.code != 0 || !strings.Contains(r.out, "0 changed, 4 as declared") {
		t.Errorf("again: %+v", r)
	}

	text := "endpoints:\n- {custom_id: pay, name: Pay}\n- custom_id: spare\n"
	if r := run(t, text, "apply", "-f", "-", "--dry-run"); r.code != 0 || !strings.Contains(r.out, "0 to change") {
		t.Errorf("standard input: %+v", r)
	}
	if r := run(t, "colour: red\n", "apply", "-f", "-"); r.code != 1 || !strings.Contains(r.err, "standard input:1: colour is not a known key") {
		t.Errorf("standard input that is not valid: %+v", r)
	}

	exported := filepath.Join(dir, "exported.yaml")
	if r := run(t, "", "endpoints", "export", "pay", "spare", "-o", exported); r.code != 0 {
		t.Fatalf("export: %+v", r)
	}
	written, err := os.ReadFile(exported)
	if err != nil || strings.Contains(string(written), "hush") || !strings.Contains(string(written), "# secret: {env: PAY_STRIPE_SECRET}") {
		t.Errorf("exported: %s %v", written, err)
	}
	if r := run(t, "", "apply", "-f", exported, "--dry-run"); r.code != 0 || !strings.Contains(r.out, "0 to change") {
		t.Errorf("what was exported differs from what there is: %+v", r)
	}

	exportedAs := object(t, "", "endpoints", "export", "pay")
	for _, name := range []string{"endpoint", "signature_configs", "forwarding_targets", "actions", "alerts"} {
		if one := exportedAs["data"].([]any)[0].(map[string]any); one[name] == nil || len(one) != 5 {
			t.Errorf("--json does not bear the API's name %s: %v", name, one)
		}
	}

	// Two of one name can be made by hand, and not be told apart in a file.
	if r := run(t, "", "targets", "create", "-e", "spare", "crm", "https://crm.example.com/1"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := run(t, "", "targets", "create", "-e", "spare", "crm", "https://crm.example.com/2"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := run(t, "", "endpoints", "export", "spare", "-o", exported); r.code != 0 || !strings.Contains(r.err, `warning: spare has more than one forwarding target called "crm"`) {
		t.Errorf("export: %+v", r)
	}
	if r := run(t, "", "apply", "-f", exported, "--dry-run"); r.code != 0 || !strings.Contains(r.out, `+ forwarding_target "crm 2" of spare`) || !strings.Contains(r.out, "1 to change") {
		t.Errorf("what was exported is not applied: %+v", r)
	}

	file = write(t, file, "endpoints:\n- custom_id: pay\n  name: Paying\n  signature_configs: [{provider: stripe}]\n  forwarding_targets: [{name: crm}]\n")
	if r := run(t, "", "apply", "-f", file, "--dry-run"); r.code != 0 || !strings.Contains(r.out, "    - name: \"Pay\"\n    + name: \"Paying\"\n") || !strings.Contains(r.out, "endpoint spare is no longer declared; --prune deletes it") {
		t.Errorf("dry run: %+v", r)
	}
	if r := run(t, "", "apply", "-f", file, "--prune"); r.code != 0 || !strings.Contains(r.out, "- endpoint spare\n") || !strings.Contains(r.out, "2 changed") {
		t.Errorf("pruned: %+v", r)
	}
	fails(t, 1, "no such endpoint", "endpoints", "get", "spare")
}

// A file is for one workspace, and a token of the account exports those of all.
func TestAnExportOfSeveralWorkspacesSaysThatAFileIsForOne(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	object(t, "", a.data.args("admin", "workspace", "create", "--account", "1", "--name", "Second")...)
	for _, text := range []string{"endpoints: [{custom_id: here}]", "{workspace: Second, endpoints: [{custom_id: there}]}"} {
		if r := run(t, text, "apply", "-f", "-"); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	if r := run(t, "", "endpoints", "export"); r.code != 0 || !strings.Contains(r.err, "warning: these endpoints are of 2 workspaces, and a file is for one") {
		t.Errorf("export of all: %+v", r)
	} else if r := run(t, r.out, "apply", "-f", "-", "--dry-run"); r.code != 1 || !strings.Contains(r.err, `is an endpoint of the workspace "Second"`) {
		t.Errorf("and applied: %+v", r)
	}
	if r := run(t, "", "endpoints", "export", "there"); r.code != 0 || r.err != "" {
		t.Errorf("export of one: %+v", r)
	}
}

func TestAFileThatIsNotValidIsToldWithItsLines(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	file := filepath.Join(t.TempDir(), "e.yaml")
	for text, want := range map[string]string{
		"endpoints:\n- custom_id: aa\n  colour: red\n":                             "e.yaml:3: endpoints.0.colour is not a known key",
		"endpoints:\n- custom_id: aa\n- custom_id: bb\n  response: {status: 99}\n": "e.yaml:4: endpoints.1.response.status must be 200 to 599",
		"account: me\n": "e.yaml:1: account is for a server's own file",
		"endpoints:\n- custom_id: aa\n  signature_configs:\n  - {provider: stripe, secret: {env: NOT}}\n": "e.yaml:4: endpoints.0.signature_configs.0.secret names the variable NOT, which is not set",
		"endpoints:\n- custom_id: aa\n  signature_configs:\n  - {provider: stripe, secret: {file: x}}\n":  "names a file that cannot be read",
	} {
		write(t, file, text)
		fails(t, 1, want, "apply", "-f", file)
	}
	write(t, file, "endpoints:\n- custom_id: aa\n- custom_id: bb\n  response: {status: 99}\n  signature_configs:\n  - {provider: stripe, secret: hush}\n")
	for _, want := range []string{"e.yaml:4: endpoints.1.response.status must be 200 to 599", "e.yaml:6: endpoints.1.signature_configs.0.secret is never written down"} {
		fails(t, 1, want, "apply", "-f", file)
	}
	write(t, file, "endpoints:\n- custom_id: aa\n  signature_configs:\n  - {provider: stripe, secret: hush}\n")
	fails(t, 1, "is never written down", "apply", "-f", file) // and nothing of it is done
	fails(t, 1, "no such endpoint", "endpoints", "get", "aa")
	fails(t, 2, "--file", "apply")

	object(t, "", a.data.args("admin", "account", "set", "--account", "1", "--plan", "free")...)
	write(t, file, "endpoints:\n- custom_id: aa\n  actions:\n  - {name: x, steps: [{step_type: ignore}]}\n")
	fails(t, 3, "e.yaml:4: endpoints.0.actions.0 Actions need a Pro, Team or Business plan", "apply", "-f", file)
}
