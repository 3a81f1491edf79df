package cli_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestForwardingTargetsOfAnEndpoint(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	created := object(t, "", "endpoints", "create", "Payments")
	ep, hook := member(t, created, "data", "id").(string), member(t, created, "data", "webhook_url").(string)

	made := object(t, "", "targets", "create", "Staging", "https://staging.example.com/hooks", "-e", ep, "--timeout", "5", "--retries", "0")
	if member(t, made, "data", "timeout_seconds") != 5. || member(t, made, "data", "retry_count") != 0. {
		t.Errorf("created %v", made)
	}
	id := strconv.Itoa(int(member(t, made, "data", "id").(float64)))
	if r := run(t, "", "targets", "list", "-e", ep); r.code != 0 || !strings.Contains(r.out, "Staging") || !strings.Contains(r.out, "enabled") || !strings.Contains(r.out, "https://staging.example.com/hooks") {
		t.Errorf("list: %+v", r)
	}
	if r := run(t, "", "targets", "get", id, "-e", ep); r.code != 0 || !strings.Contains(r.out, "5 s") {
		t.Errorf("get: %+v", r)
	}
	if r := run(t, "", "targets", "resume", id, "-e", ep); r.code != 0 || !strings.Contains(r.out, "enabled") {
		t.Errorf("resume: %+v", r)
	}
	if r := run(t, "", "targets", "pause", id, "-e", ep); r.code != 0 || !strings.Contains(r.out, "is paused") {
		t.Errorf("pause: %+v", r)
	}
	send(t, hook, "text/plain", "one that waits")
	if waits := object(t, "", "targets", "get", id, "-e", ep); member(t, waits, "data", "pending") != 1. {
		t.Errorf("nothing waits: %v", waits)
	}
	if r := run(t, "", "targets", "get", id, "-e", ep); r.code != 0 || !regexp.MustCompile(`(?m)^Pending +1$`).MatchString(r.out) || !regexp.MustCompile(`(?m)^Pending until +-$`).MatchString(r.out) {
		t.Errorf("get: %+v", r)
	}
	if r := run(t, "", "targets", "list", "-e", ep); r.code != 0 || !regexp.MustCompile(`AT MOST +GETS +ADDS +PENDING +FAILURES.*\n.*paused +- +all +- +1 +0 `).MatchString(r.out) {
		t.Errorf("list: %+v", r)
	}
	event := member(t, object(t, "", "requests", "get", "latest", "-e", ep), "data", "id").(string)
	fails(t, 1, "Done with 1 delivery, and no more:\nhookglass: nope: ", "targets", "resend", id, event, "nope", "-e", ep)
	changed := object(t, "", "targets", "update", id, "-e", ep, "--url", "https://other.example.com/", "--timeout", "7", "--name", "Other")
	if member(t, changed, "data", "url") != "https://other.example.com/" || member(t, changed, "data", "timeout_seconds") != 7. || member(t, changed, "data", "name") != "Other" ||
		member(t, changed, "data", "retry_count") != 0. || member(t, changed, "data", "pause_reason") != "manual" {
		t.Errorf("changed %v", changed)
	}
	if r := run(t, "", "targets", "update", id, "-e", ep, "--max-rate", "30/m"); r.code != 0 {
		t.Errorf("rate: %+v", r)
	}
	if r := run(t, "", "targets", "get", id, "-e", ep); r.code != 0 || !strings.Contains(r.out, "30 a minute") {
		t.Errorf("get: %+v", r)
	}
	if r := run(t, "", "targets", "list", "-e", ep); r.code != 0 || !strings.Contains(r.out, "30 a minute") {
		t.Errorf("list: %+v", r)
	}
	if changed := object(t, "", "targets", "update", id, "-e", ep, "--max-rate", "none"); member(t, changed, "data", "rate_limit") != nil || member(t, changed, "data", "rate_period") != nil {
		t.Errorf("no rate: %v", changed)
	}
	if once := object(t, "", "targets", "update", id, "-e", ep, "--dedupe", "header.Idempotency-Key", "--within", "1h"); member(t, once, "data", "dedupe_by") != "header.Idempotency-Key" || member(t, once, "data", "dedupe_seconds") != 3600. {
		t.Errorf("once: %v", once)
	}
	if r := run(t, "", "targets", "get", id, "-e", ep); r.code != 0 || !strings.Contains(r.out, "header.Idempotency-Key within 1h0m0s") {
		t.Errorf("get: %+v", r)
	}
	if once := object(t, "", "targets", "update", id, "-e", ep, "--dedupe", "none"); member(t, once, "data", "dedupe_by") != nil || member(t, once, "data", "dedupe_seconds") != nil {
		t.Errorf("every request: %v", once)
	}
	if r := run(t, "", "targets", "update", id, "-e", ep, "--when", "event:invoice.*"); r.code != 0 {
		t.Errorf("condition: %+v", r)
	}
	for _, show := range [][]string{{"targets", "get", id, "-e", ep}, {"targets", "list", "-e", ep}} {
		if r := run(t, "", show...); r.code != 0 || !strings.Contains(r.out, "event:invoice.*") {
			t.Errorf("%s: %+v", show[1], r)
		}
	}
	if changed := object(t, "", "targets", "update", id, "-e", ep, "--when", "-event:invoice.*"); member(t, changed, "data", "when") != "-event:invoice.*" {
		t.Errorf("of a condition that begins with a minus: %v", changed)
	}
	fails(t, 2, "--when", "targets", "update", id, "-e", ep, "--when", "--json")
	fails(t, 1, "tag", "targets", "update", id, "-e", ep, "--when", "tag:x")
	if changed := object(t, "", "targets", "update", id, "-e", ep, "--when", ""); member(t, changed, "data", "when") != nil {
		t.Errorf("no condition: %v", changed)
	}
	if made := object(t, "", "targets", "create", "Some", "https://some.example.com/", "-e", ep, "--when", "method:PUT"); member(t, made, "data", "when") != "method:PUT" {
		t.Errorf("created %v", made)
	}
	headers := func(want string, stdin string, flags ...string) {
		t.Helper()
		if changed := object(t, stdin, append([]string{"targets", "update", id, "-e", ep}, flags...)...); fmt.Sprint(member(t, changed, "data", "headers")) != want {
			t.Errorf("%q: %v, want %s", flags, changed, want)
		}
	}
	headers("map[Authorization:[redacted] X-Environment:[redacted]]", "", "--header", "Authorization: Bearer a, b", "--header", "X-Environment: staging")
	headers("map[Authorization:[redacted] X-More:[redacted] x-environment:[redacted]]", "x-environment: other\n\nX-More: 1\r\n", "--header", "-")
	headers("map[X-More:[redacted] x-environment:[redacted]]", "", "--header", "authorization:")
	for _, show := range [][]string{{"targets", "get", id, "-e", ep}, {"targets", "list", "-e", ep}} {
		if r := run(t, "", show...); r.code != 0 || !strings.Contains(r.out, "X-More, x-environment") {
			t.Errorf("%s: %+v", show[1], r)
		}
	}
	if r := run(t, "", "targets", "update", id, "-e", ep, "--header", "Bearer hush"); r.code != 2 || strings.Contains(r.out+r.err, "hush") {
		t.Errorf("%+v", r)
	}
	fails(t, 1, "may not set Host", "targets", "update", id, "-e", ep, "--header", "Host: a")
	fails(t, 2, "not UTF-8", "targets", "update", id, "-e", ep, "--header", "X-B: a\xff")
	if r := run(t, "X-B: a\xffb\n", "targets", "update", id, "-e", ep, "--header", "-"); r.code != 2 || !strings.Contains(r.err, "not UTF-8") {
		t.Errorf("%+v", r)
	}
	for stdin, flags := range map[string][]string{"": {"--header", "X-B: 1", "--header", "x-b: 2"}, "X-B: 1\nX-B:\n": {"--header", "-"}, "X-B: 2\n": {"--header", "X-B: 1", "--header", "-"}} {
		if r := run(t, stdin, append([]string{"targets", "update", id, "-e", ep}, flags...)...); r.code != 2 || !strings.Contains(r.err, "twice") {
			t.Errorf("%q: %+v", flags, r)
		}
	}
	headers("map[]", "", "--header", "X-More:", "--header", "X-Environment:")
	if made := object(t, "", "targets", "create", "Headed", "https://some.example.com/", "-e", ep, "--header", "X-A: 1"); fmt.Sprint(member(t, made, "data", "headers")) != "map[X-A:[redacted]]" {
		t.Errorf("created %v", made)
	}
	fails(t, 2, "such as 5/s", "targets", "update", id, "-e", ep, "--max-rate", "5")
	if r := run(t, "", "targets", "update", id, "-e", ep, "--disable"); r.code != 0 || !strings.Contains(r.out, "which is disabled") {
		t.Errorf("disable: %+v", r)
	}
	fails(t, 1, "disabled", "targets", "pause", id, "-e", ep)
	if r := run(t, "", "targets", "update", id, "-e", ep, "--enable"); r.code != 0 || !strings.Contains(r.out, "which is enabled") {
		t.Errorf("enable: %+v", r)
	}
	fails(t, 2, "say what to change", "targets", "update", id, "-e", ep)
	fails(t, 1, "timeout_seconds", "targets", "create", "x", "https://x.example.com", "-e", ep, "--timeout", "301")
	fails(t, 2, "--endpoint", "targets", "list")
	object(t, "", "targets", "delete", id, "-e", ep)
	fails(t, 1, "no such forwarding target", "targets", "get", id, "-e", ep)
}
