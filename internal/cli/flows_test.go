package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hookglass/internal/cli"
)

// A flow of a file: what passes exits with 0, what is not met with 1, and what has no result with 2.
func TestAFlowOfAFile(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	ep := member(t, object(t, "", "endpoints", "create", "Payments"), "data", "id").(string)
	dir := t.TempDir()
	file, junit := filepath.Join(dir, "flow.yaml"), filepath.Join(dir, "out.xml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "EP", ep)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	res, err := http.Post(a.server+"/hooks/"+ep, "application/json", strings.NewReader(`{"id":"ord_1"}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()

	write("name: Checkout\ntimeout_seconds: 120\nsteps:\n  - id: paid\n    endpoint_id: EP\n    where: {/id: ord_1}\n    extract: {order: /id}\n")
	if r := run(t, "", "flow", "run", file, "--since", "30m", "--junit", junit); r.code != 0 || !strings.Contains(r.out, "passed    paid") || !strings.Contains(r.out, "passed in") {
		t.Errorf("a flow that passes: %+v", r)
	}
	if text, err := os.ReadFile(junit); err != nil || !strings.Contains(string(text), `<testsuite name="Checkout" tests="1" failures="0"`) {
		t.Errorf("%v %s", err, text)
	}
	var told bytes.Buffer
	if code := cli.Main(t.Context(), []string{"flow", "run", file, "--since", "30m"}, strings.NewReader(""), full{}, &told); code != 2 || !strings.Contains(told.String(), "no space left") {
		t.Errorf("what could not be printed: %d %s", code, &told)
	}
	told.Reset()
	if code := cli.Main(t.Context(), []string{"flow", "run", file, "--since", "30m", "--json"}, strings.NewReader(""), full{}, &told); code != 2 || !strings.Contains(told.String(), "no space left") {
		t.Errorf("an object that could not be printed: %d %s", code, &told)
	}
	write("steps: [{endpoint_id: EP, where: {/id: ord_2}}]")
	r := run(t, "", "flow", "run", file, "--since", "30m", "--timeout", "100ms", "--junit", junit)
	if r.code != 1 || !strings.Contains(r.err, `/id should be "ord_2" and was "ord_1"`) {
		t.Errorf("a flow that expires: %+v", r)
	}
	if text, err := os.ReadFile(junit); err != nil || !strings.Contains(string(text), `failures="1"`) {
		t.Errorf("%v %s", err, text)
	}
	if r := run(t, "", "flow", "list"); r.code != 0 || !strings.Contains(r.out, "Checkout") || !strings.Contains(r.out, "expired") || !strings.Contains(r.out, "1/1") {
		t.Errorf("list: %+v", r)
	}
	listed := object(t, "", "flow", "list", "--state", "passed")
	id := member(t, listed["data"].([]any)[0], "id").(string)
	if r := run(t, "", "flow", "get", id); r.code != 0 || !strings.Contains(r.out, "passed    paid  req_") {
		t.Errorf("get: %+v", r)
	}
	object(t, "", "flow", "delete", id)
	fails(t, 1, "no such flow", "flow", "get", id)

	write("steps: [{endpoint_id: EP, colour: red}]")
	fails(t, 2, "flow.steps.0.colour", "flow", "run", file)
	write("steps: [")
	fails(t, 2, "flow.yaml", "flow", "run", file)
	long := "steps: [{endpoint_id: " + ep + "}]\n# " + strings.Repeat("x", 1<<20) // of which the beginning would be a flow
	if r := run(t, long, "flow", "run", "-"); r.code != 2 || !strings.Contains(r.err, "standard input is longer") {
		t.Errorf("a flow that is too long: %+v", r)
	}
	fails(t, 2, "no such file", "flow", "run", filepath.Join(dir, "none.yaml"))
	t.Setenv("HOOKGLASS_TOKEN", "hg_wrong")
	write("steps: [{endpoint_id: EP}]")
	fails(t, 3, "token", "flow", "run", file)
	t.Setenv("HOOKGLASS_TOKEN", "")
	t.Setenv("XDG_CONFIG_HOME", dir)
	if err := os.MkdirAll(filepath.Join(dir, "hookglass"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hookglass", "credentials.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, 2, "sign in again", "flow", "run", file)
}

// What a proxy says in the place of a server that starts again does not end a flow, whatever its status.
func TestAFlowOutlivesItsServer(t *testing.T) {
	const flow = `{"data":{"id":"flow_1","state":"%s","steps":[],"version":%d}}`
	waits := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, flow, "pending", 1)
		case waits == 0:
			waits++
			fmt.Fprint(w, "<!doctype html><p>We are back soon.")
		default:
			fmt.Fprintf(w, flow, "passed", 2)
		}
	}))
	defer server.Close()
	t.Setenv("HOOKGLASS_SERVER", server.URL)
	t.Setenv("HOOKGLASS_TOKEN", "hg_x")
	if r := run(t, `{"steps":[]}`, "flow", "run", "-"); r.code != 0 || !strings.Contains(r.out, "passed") {
		t.Errorf("%+v", r)
	}
}

func TestTheLedgerOfAnEndpoint(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	ep := member(t, object(t, "", "endpoints", "create", "Payments"), "data", "id").(string)
	res, err := http.Post(a.server+"/hooks/"+ep, "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if r := run(t, "", "ledger", ep, "--from", "2h"); r.code != 0 || !strings.Contains(r.out, "200 × 1") || !strings.Contains(r.out, "Balanced: nothing is lost.") {
		t.Errorf("%+v", r)
	}
	if got := object(t, "", "ledger", ep); member(t, got, "data", "totals", "stored") != 1. || member(t, got, "data", "balanced") != true {
		t.Errorf("%v", got)
	}
	fails(t, 1, "from", "ledger", ep, "--from", "32d")
}

// Who stops waiting is told that the flow goes on, and how to see it.
func TestAFlowThatIsNotWaitedFor(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	ep := member(t, object(t, "", "endpoints", "create", "Payments"), "data", "id").(string)
	ctx, stop := context.WithCancel(t.Context())
	var said bytes.Buffer
	code := cli.Main(ctx, []string{"flow", "run", "-"}, strings.NewReader("steps: [{endpoint_id: "+ep+"}]"), writes(func([]byte) { stop() }), &said)
	if code != 2 || !strings.Contains(said.String(), "stopped; the flow goes on: hookglass flow get flow_") {
		t.Errorf("%d %s", code, said.String())
	}
}

// writes does something with what is written.
type writes func([]byte)

func (w writes) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

func TestAFileOfSeveralDocumentsIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "several.yaml")
	if err := os.WriteFile(path, []byte("name: a\n---\nname: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, 2, "more than one document", "flow", "run", path, "--server", "http://127.0.0.1:1", "--token", "hg_x")
	if err := os.WriteFile(path, []byte("endpoints: [{endpoint: a}]\n---\nendpoints: [{endpoint: b}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, 2, "more than one document", "listen", "--config", path, "--server", "http://127.0.0.1:1", "--token", "hg_x")
}

// A date without quotation marks is the text that it is in JSON, and not a time that YAML makes of it.
func TestDatesOfAFlowAreTexts(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	ep := member(t, object(t, "", "endpoints", "create", "Payments"), "data", "id").(string)
	res, err := http.Post(a.server+"/hooks/"+ep, "application/json", strings.NewReader(`{"day":"2026-01-31","at":"2026-01-31 08:00:00"}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	flow := "steps: [{endpoint_id: " + ep + ", where: {/day: &day 2026-01-31, /at: 2026-01-31 08:00:00}}]"
	if r := run(t, flow, "flow", "run", "-", "--since", "30m", "--timeout", patience.String()); r.code != 0 {
		t.Errorf("%+v", r)
	}
}
