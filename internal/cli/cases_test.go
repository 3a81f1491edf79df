package cli_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// handler is what people develop: it answers as it is told and keeps the last request.
func handler(t *testing.T, answer func(w http.ResponseWriter, body string)) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer(w, string(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestAnEventIsReplayed(t *testing.T) {
	t.Setenv("HOOKGLASS_OUTBOUND_ALLOW", "127.0.0.1/32:1-65535")
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	made := object(t, "", "endpoints", "create", "Payments")
	id := member(t, made, "data", "id").(string)
	send(t, member(t, made, "data", "webhook_url").(string), "text/plain", "hello")
	event := member(t, member(t, object(t, "", "requests", "list", "-e", id), "data").([]any)[0], "id").(string)
	target := handler(t, func(w http.ResponseWriter, body string) { fmt.Fprint(w, "got "+body) })
	if r := run(t, "", "replay", event, "-e", id, "--to", target); r.code != 0 || !strings.Contains(r.out, "200 in ") || !strings.Contains(r.out, "got hello") {
		t.Errorf("%+v", r)
	}
	if got := object(t, "", "replay", event, "-e", id, "--to", target); member(t, got, "data", "verdict") != "still_passing" {
		t.Errorf("%v", got)
	}
	if r := run(t, "", "replay", event, "-e", id, "--to", "tunnel"); r.code != 1 || !strings.Contains(r.err, "not delivered") {
		t.Errorf("%+v", r)
	}
	fails(t, 2, "", "replay", event, "-e", id, "--to", target, "--signature", "keep")
}

func TestCasesAsFilesGoToTheServerAndBack(t *testing.T) {
	t.Setenv("HOOKGLASS_OUTBOUND_ALLOW", "127.0.0.1/32:1-65535")
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	made := object(t, "", "endpoints", "create", "Payments")
	id := member(t, made, "data", "id").(string)
	send(t, member(t, made, "data", "webhook_url").(string), "application/json", `{"n":12345678901234567890}`)
	event := member(t, member(t, object(t, "", "requests", "list", "-e", id), "data").([]any)[0], "id").(string)
	answer := `{"n":12345678901234567890,"more":1}`
	target := handler(t, func(w http.ResponseWriter, body string) {
		if body != `{"n":12345678901234567890}` {
			answer = "sent " + body
		}
		fmt.Fprint(w, answer)
	})
	dir := t.TempDir()
	cases := func(args ...string) []string { return append([]string{"cases", "-e", id, "--dir", dir}, args...) }
	file := filepath.Join(dir, "paid.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("name: An order is paid\nsource_id: " + event + "\ntarget_url: " + target + "\nstatus: 2xx\njson_subset: |\n  {\"n\": 12345678901234567890}\n")
	if r := run(t, "", cases("push")...); r.code != 0 || !strings.Contains(r.out, "version 1 of rcase_") {
		t.Fatalf("push: %+v", r)
	}
	if r := run(t, "", cases("pull")...); r.code != 0 || strings.TrimSpace(r.out) != file {
		t.Fatalf("pull: %+v", r)
	}
	if body, err := os.ReadFile(filepath.Join(dir, "paid.body")); err != nil || string(body) != `{"n":12345678901234567890}` {
		t.Errorf("the body is %q, %v", body, err)
	}
	list := object(t, "", "cases", "-e", id, "list")
	kase := member(t, member(t, list, "data").([]any)[0], "id").(string)

	// From here, against a local handler.
	junit := filepath.Join(dir, "out.xml")
	local := cases("run", "--target", target, "--junit", junit)
	if r := run(t, "", local...); r.code != 0 || !strings.Contains(r.out, "passed") {
		t.Errorf("local: %+v", r)
	}
	answer = `{"n":12345678901234567891}`
	if r := run(t, "", local...); r.code != 1 || !strings.Contains(r.out, "json_subset /n: expected 12345678901234567890, got 12345678901234567891") {
		t.Errorf("assertion: %+v", r)
	}
	var report struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name    string  `xml:"name,attr"`
			Failure *string `xml:"failure"`
		} `xml:"testcase"`
	}
	text, err := os.ReadFile(junit)
	if err == nil {
		err = xml.Unmarshal(text, &report)
	}
	if err != nil || report.Tests != 1 || report.Failures != 1 || report.Cases[0].Name != "An order is paid" || report.Cases[0].Failure == nil {
		t.Errorf("%v %s", err, text)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	if r := run(t, "", cases("run", "--target", nobody)...); r.code != 2 {
		t.Errorf("transport: %+v", r)
	}
	if err := os.Remove(filepath.Join(dir, "paid.body")); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "", cases("run", "paid", "--target", target)...); r.code != 3 || !strings.Contains(r.out, "blocked") {
		t.Errorf("blocked: %+v", r)
	}

	// On the server.
	if r := run(t, "", "cases", "-e", id, "run", kase); r.code != 1 || !strings.Contains(r.out, "assertion_failed") {
		t.Errorf("server: %+v", r)
	}
	answer = `{"n":12345678901234567890}`
	if got := object(t, "", "cases", "-e", id, "run", kase, "--key", "k"); member(t, got, "data", "state") != "passed" {
		t.Errorf("server: %v", got)
	}

	// A file that is behind the server is refused.
	stale, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, "", cases("push")...); r.code != 0 || !strings.Contains(r.out, "version 2 of ") {
		t.Errorf("push again: %+v", r)
	}
	write(string(stale))
	fails(t, 1, "version 2", cases("push")...)
	write("name: x\nunknown: 1\n")
	fails(t, 1, "unknown", cases("push")...)
	fails(t, 2, "name the endpoint", "cases", "list")
}
