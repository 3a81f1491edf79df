package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRetriesAreMeasuredFromTheCommandLine(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	made := object(t, "", "endpoints", "create", "Flaky")
	id, hook := member(t, made, "data", "id").(string), member(t, made, "data", "webhook_url").(string)

	fails(t, 1, "entry 1 must be a status", "retries", id, "--script", "teapot")
	if r := run(t, "", "retries", id, "--script", "500*2,reset,200"); r.code != 0 || !strings.Contains(r.out, "No sender has tried a delivery again yet") || !strings.Contains(r.err, "500*2,reset,200") {
		t.Errorf("a script is set: %+v", r)
	}
	for range 4 {
		if answer, err := http.Post(hook, "application/json", strings.NewReader(`{"n":1}`)); err == nil {
			answer.Body.Close()
		}
	}
	r := run(t, "", "retries", id)
	for _, want := range []string{"1 delivery: 1 delivered", "4 attempts, delivered", "● ", "× ", "○ ", "MEDIAN WAIT", "NOT RETRIED", "body kept"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in %s", want, r.out)
		}
	}
	reset := member(t, member(t, object(t, "", "requests", "list", "-e", id), "data").([]any)[1], "id").(string)
	if r := run(t, "", "requests", "get", reset, "-e", id); !strings.Contains(r.out, "Not answered (by the script): the connection was reset") {
		t.Errorf("an event whose connection was reset: %+v", r)
	}
	if r := run(t, "", "retries", id, "--script", "none"); r.code != 0 || !strings.Contains(r.err, "no script any more") {
		t.Errorf("the script is taken back: %+v", r)
	}
	if p := object(t, "", "retries", id); member(t, p, "data", "summary", "max_attempts") != 4. {
		t.Errorf("as JSON: %v", p)
	}
}

func TestWhatHasNoBodyIsNotToldToKeepSomething(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	made := object(t, "", "endpoints", "create", "Flaky")
	id := member(t, made, "data", "id").(string)
	if r := run(t, "", "retries", id, "--script", "500"); r.code != 0 {
		t.Fatalf("a script is set: %+v", r)
	}
	for range 2 {
		if answer, err := http.Get(member(t, made, "data", "webhook_url").(string)); err == nil {
			answer.Body.Close()
		}
	}
	r := run(t, "", "retries", id)
	if r.code != 0 || !strings.Contains(r.out, "2 attempts, waiting") || strings.Contains(r.out, "From attempt to attempt") {
		t.Errorf("%+v", r)
	}
}

// A clock that is set back between two attempts puts one of them before the first.
func TestAttemptsBesideTheLineAreShownAtItsEnds(t *testing.T) {
	at := func(second int) string {
		return fmt.Sprintf(`{"request_id":"req_%d","received_at":"2026-01-01T00:00:%02dZ","answer":"500","status":500,"changes":[]}`, second, second)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"data":{"events":4,"groups":[{"identity":"0123456789","provider":"x","state":"waiting","attempt_count":4,"attempts":[%s,%s,%s,%s]}],"summary":{"deliveries":1,"retried":0}}}`,
			at(20), at(10), at(50), at(30))
	}))
	t.Cleanup(server.Close)
	if r := run(t, "", "retries", "ep_a", "--server", server.URL, "--token", "hg_x"); r.code != 0 || !strings.Contains(r.out, "4 attempts, waiting") {
		t.Errorf("%+v", r)
	}
}

func TestSchemasFromTheCommandLine(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	made := object(t, "", "endpoints", "create", "Orders")
	id, hook := member(t, made, "data", "id").(string), member(t, made, "data", "webhook_url").(string)
	send(t, hook, "application/json", `{"order":{"id":1,"note":null}}`)

	if r := run(t, "", "schemas", id); r.code != 0 || !strings.Contains(r.out, "unknown") || !strings.Contains(r.out, "--track") {
		t.Errorf("list: %+v", r)
	}
	if r := run(t, "", "schemas", id, "-"); r.code != 0 || !strings.Contains(r.out, "/order/id") || !strings.Contains(r.out, "integer") {
		t.Errorf("fields: %+v", r)
	}
	for lang, want := range map[string]string{"go": " struct {", "ts": "export interface", "jsonschema": `"$schema": "https://json-schema.org/draft/2020-12/schema"`} {
		if r := run(t, "", "schemas", id, "-", "--lang", lang); r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("%s: %+v", lang, r)
		}
	}
	fails(t, 1, "schema_tracking", "schemas", id, "-", "--accept")
	fails(t, 2, "name the event type", "schemas", id, "--drift")
	if r := run(t, "", "schemas", id, "--track"); r.code != 0 || strings.Contains(r.out, "--track") || !strings.Contains(r.out, "from now on") {
		t.Errorf("track: %+v", r)
	}
	if r := run(t, "", "schemas", id, "-", "--track", "--accept"); r.code != 0 || !strings.Contains(r.out, "is the baseline now") {
		t.Errorf("accept: %+v", r)
	}
	if r := run(t, "", "schemas", id, "-", "--drift"); r.code != 0 || !strings.Contains(r.out, "departs from the baseline") {
		t.Errorf("drift: %+v", r)
	}
}
