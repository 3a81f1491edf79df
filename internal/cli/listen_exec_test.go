//go:build unix

package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestListenRunsACommand(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	t.Setenv("HANDLER_STATUS", "7")
	id := member(t, object(t, "", "endpoints", "create", "Commands"), "data", "id").(string)
	object(t, "", "endpoints", "update", id, "--response-mode", "tunnel")

	// What it prints is shown, and the sender that waits for an answer has it.
	command := `body=$(cat); printf '{"had":"%s at %s"}' "$body" "$HOOKGLASS_PATH"; printf 'seen\033[31m\n' >&2; test "$body" != bad || exit "$HANDLER_STATUS"`
	g := begin(t, strings.NewReader(""), "listen", "-e", id, "--exec", command, "--exit-after", "2")
	hook := g.err.wait(t, hookPattern)
	g.err.wait(t, `-> exec: (body=\S+)`)
	g.err.wait(t, "connected;")
	for i, body := range []string{"good", "bad"} {
		res, err := http.Post(hook+"/orders", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if status := []int{200, 500}[i]; res.StatusCode != status || res.Header.Get("Content-Type") != "application/json" || string(answer) != `{"had":"`+body+` at /orders"}` {
			t.Errorf("%s is answered %s, %v, %s", body, res.Status, res.Header, answer)
		}
	}
	g.ends(t, 0)
	out := g.out.String()
	if !regexp.MustCompile(`200 +\d+ms +req_\w+ +POST /orders\n`).MatchString(out) || !regexp.MustCompile(`500 +\d+ms +req_\w+ +POST /orders +exit code 7\n`).MatchString(out) {
		t.Errorf("printed %s", out)
	}
	if !strings.Contains(out, `< `) || !strings.Contains(out, `"had": "good at /orders"`) || !strings.Contains(out, "! seen\uFFFD") || strings.Contains(out, "\x1b") {
		t.Errorf("printed %s", out)
	}
	if !regexp.MustCompile(`2 events in \S+: 1 delivered, 1 failed`).MatchString(g.err.String()) {
		t.Errorf("told %s", g.err)
	}

	// As JSON.
	g = begin(t, strings.NewReader(""), "listen", "-e", id, "--exec", command, "--exit-after", "1", "--output", "json")
	g.err.wait(t, "connected;")
	post(t, hook, "fine")
	g.ends(t, 0)
	var line map[string]any
	if err := json.Unmarshal([]byte(g.out.String()), &line); err != nil || line["status_code"] != 200. || line["exit_code"] != 0. || line["target_url"] != "exec:command" || line["error"] != nil || line["stderr"] != "seen\x1b[31m" || line["response_body"] != nil {
		t.Errorf("printed %s, %v", g.out, err)
	}
}

// fromGitHub sends a webhook as GitHub does an event of the kind; without a kind it is nobody's.
func fromGitHub(t *testing.T, hook, kind, body string) {
	t.Helper()
	req, err := http.NewRequest("POST", hook, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("X-GitHub-Event", kind)
		req.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
		req.Header.Set("User-Agent", "GitHub-Hookshot/044aadd")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}

// With several targets, the line of an event says which one it went to.
func TestListenSaysWhichTargetAnEventTook(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	local, _ := receiver(t)
	hook := member(t, object(t, "", "endpoints", "create", "Several"), "data", "webhook_url").(string)
	line := func(args ...string) (rest string) {
		t.Helper()
		g := begin(t, strings.NewReader(""), append([]string{"listen", "--recover", "none", "--exit-after", "1"}, args...)...)
		g.err.wait(t, "connected;")
		fromGitHub(t, hook, "push", "{}")
		g.ends(t, 0)
		return g.out.wait(t, `POST /  github push(.*)\n`)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{local + "/all"}, ""},
		{[]string{local + "/all", "--route", "push=" + local + "/pushes"}, "  -> " + local + "/pushes"},
		{[]string{local + "/all", "--route", "issues=" + local + "/issues"}, "  -> " + local + "/all"},
		{[]string{local + "/all", "--route", "push=" + local + "/all"}, ""},
		{[]string{"--exec", "true", "--route", "issues=" + local + "/issues"}, "  -> exec: true"},
		{[]string{"--exec", "true # " + strings.Repeat("x", 100), "--route", "issues=" + local + "/issues"}, "  -> exec: true # " + strings.Repeat("x", 27)},
	} {
		if got := line(c.args...); got != c.want {
			t.Errorf("listen %q says %q, want %q", c.args, got, c.want)
		}
	}
}

func TestTheListenFileNamesCommands(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	local, got := receiver(t)
	endpoint := object(t, "", "endpoints", "create", "File")
	id, hook := member(t, endpoint, "data", "id").(string), member(t, endpoint, "data", "webhook_url").(string)
	dir := t.TempDir()
	file := filepath.Join(dir, "hookglass.yaml")
	config := "endpoints:\n  - endpoint: " + id + "\n    exec: cat >> " + dir + "/rest\n    headers: {X-GitHub-Event: push}\n" +
		"    routes:\n      - events: push\n        exec: |\n          grep ^X-GitHub-Event \"$HOOKGLASS_HEADERS_FILE\" >> " + dir + "/pushes\n          cat >> " + dir + "/pushes\n" +
		"      - events: issues\n        upstream: {url: " + local + "}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	g := begin(t, strings.NewReader(""), "listen", "--config", file, "--exit-after", "3", "--output", "json")
	g.err.wait(t, `push -> exec: grep \S+ "\$HOOKGLASS_HEADERS_FILE" >> \S+; cat >>`)
	g.err.wait(t, "connected;")
	for _, kind := range []string{"push", "issues", ""} {
		fromGitHub(t, hook, kind, `{"kind":"`+kind+`"}`)
	}
	g.ends(t, 0)
	for name, want := range map[string]string{"pushes": "X-GitHub-Event: push\n{\"kind\":\"push\"}", "rest": `{"kind":""}`} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if all := got(); len(all) != 1 || all[0] != `POST / {"kind":"issues"}` {
		t.Errorf("the handler got %q", all)
	}

	for text, says := range map[string]string{
		"    upstream: {url: 1}\n    exec: x\n":            "endpoints[0]: upstream and exec exclude one another",
		"    routes: [{events: a, exec: ' '}]\n":           "endpoints[0]: routes[0]: exec names no command",
		"    routes: [{exec: x}]\n":                        "routes[0]: it takes events, and an upstream or exec",
		"    routes: [{events: a, upstream: {exec: x}}]\n": `there is no key "exec" here`,
	} {
		if err := os.WriteFile(file, []byte("endpoints:\n  - endpoint: x\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		fails(t, 2, says, "listen", "--config", file)
	}
	fails(t, 2, "not to both", "listen", "3000", "--exec", "cat")
	fails(t, 2, "not to both", "listen", "-f", "3000", "--exec", "cat")
	fails(t, 2, "--exec names no command", "listen", "--exec", " ")
	fails(t, 2, "--exec names no command", "listen", "--exec", "")
}
