package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStepsAreGivenSecretsThatNobodySees(t *testing.T) {
	endpoint, _ := listening(t)
	said := ""
	secrets := func(code int, stdin, says string, args ...string) {
		t.Helper()
		r := run(t, stdin, append([]string{"secrets"}, args...)...)
		if said += r.out + r.err; r.code != code || !strings.Contains(r.out+r.err, says) {
			t.Errorf("%v: %+v, want %d and %q", args, r, code, says)
		}
	}
	secrets(0, "value-one\r\n", "Created secret CRM_TOKEN", "set", "CRM_TOKEN", "--description", "The CRM's")
	secrets(0, "", "The CRM's", "list")
	id := member(t, member(t, object(t, "", "secrets", "list"), "data").([]any)[0], "id").(string)
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte("value-two\nof two lines\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secrets(0, "not read", "Changed secret CRM_TOKEN", "set", id, "--value-file", file) // by its id as well
	secrets(0, "", "The CRM's", "list")                                                 // what is not named stays
	secrets(0, "value-three", `"description":null`, "set", "CRM_TOKEN", "--description", "none", "--json")
	secrets(1, "value-x", "action_secret.name", "set", "not a name")
	secrets(1, strings.Repeat("value-x", 3000), "action_secret.secret_value", "set", "LONG")
	secrets(1, strings.Repeat("value-x", 10_000), "longer than", "set", "LONG")
	secrets(1, "", "no such file", "set", "X", "--value-file", file+"x")
	secrets(2, "\n", "no value", "set", "X")
	secrets(2, "value-x\xff", "UTF-8", "set", "X")
	secrets(2, "", "unexpected argument", "set", "X", "as-a-word")
	secrets(1, "", "no such secret", "delete", "X")
	secrets(1, "", "no such workspace", "list", "--workspace", "4711")
	if strings.Contains(said, "value-") {
		t.Errorf("a value is shown: %s", said)
	}
	// It is named by a step, which says so.
	action := rulesFile(t, `{"name":"Tell","steps":[{"step_type":"http_request","name":"Call","reference_key":"call","config":{"method":"POST","url":"https://crm.example.com/","headers":{"Authorization":"{{ secrets.CRM_TOKEN }}"}}}]}`)
	made := member(t, object(t, "", "actions", "create", action, "-e", endpoint), "data", "id").(string)
	secrets(1, "", fmt.Sprintf("step call of the action \"Tell\" (%s) of %s", made, endpoint), "delete", "CRM_TOKEN")
	object(t, "", "actions", "delete", made, "-e", endpoint)
	if r := run(t, "", "__complete", "secrets", "delete", "CR"); r.out != "CRM_TOKEN\n" {
		t.Errorf("completed to %q", r.out)
	}
	if gone := object(t, "", "secrets", "delete", "CRM_TOKEN"); member(t, gone, "data", "id") != id || member(t, gone, "data", "deleted") != true {
		t.Errorf("%v", gone)
	}
	if left := member(t, object(t, "", "secrets"), "data").([]any); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	fails(t, 3, "", "secrets", "list", "--token", "hg_wrong")
}

// A secret that lies in another workspace is one that no step finds.
func TestTheWorkspaceOfASecretIsNotGuessed(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	made := object(t, "", "endpoints", "create", "First")
	first := fmt.Sprint(member(t, made, "data", "workspace_id"))
	object(t, "v", "secrets", "set", "ONE")
	object(t, "", a.data.args("admin", "workspace", "create", "--account", "1", "--name", "Second")...)
	all := member(t, object(t, "", a.data.args("admin", "workspace", "list", "--account", "1")...), "workspaces").([]any)
	second := fmt.Sprint(member(t, all[1], "id"))
	object(t, "", "endpoints", "create", "Other", "--workspace", second)
	fails(t, 2, "--workspace, of "+first+" "+second, "secrets", "list")
	fails(t, 1, "no such workspace", "secrets", "list", "--workspace", "0")
	object(t, "v", "secrets", "set", "TWO", "--workspace", second)
	if own := member(t, object(t, "", "secrets", "list", "--workspace", first), "data").([]any); len(own) != 1 {
		t.Errorf("in the first: %v", own)
	}
}
