package cli_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

func TestALinkToAnEventIsCreatedListedAndRevoked(t *testing.T) {
	endpoint, hook := listening(t)
	send(t, hook+"/pay?token=canary-token", "application/json", `{"password":"canary-password","total":5}`)
	r := run(t, "", "share", "create", "latest", "-e", endpoint, "--expires-in", "24h")
	link := strings.TrimSpace(r.out)
	if r.code != 0 || !strings.Contains(r.err, "not shown again") || strings.Contains(link, "\n") {
		t.Fatalf("%+v", r)
	}
	read := func() (int, string) {
		t.Helper()
		res, err := http.Get(link)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		page, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(page)
	}
	if status, page := read(); status != 200 || !strings.Contains(page, "total") || strings.Contains(page, "canary") || strings.Contains(page, endpoint) {
		t.Errorf("a stranger reads %d %s", status, page)
	}
	made := object(t, "", "share", "create", "latest", "-e", endpoint)
	second := strconv.FormatFloat(member(t, made, "data", "id").(float64), 'f', 0, 64)
	if url := member(t, made, "data", "url").(string); url == link || !strings.HasPrefix(url, "http") {
		t.Errorf("%s", url)
	}
	event := member(t, made, "data", "request_id").(string)
	for _, args := range [][]string{{"share", "list", "-e", endpoint}, {"share", "-e", endpoint}, {"share", "list", event, "-e", endpoint}} {
		if r := run(t, "", args...); r.code != 0 || strings.Count(r.out, event) != 2 || strings.Contains(r.out, "/shared/") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	links := member(t, object(t, "", "share", "list", "-e", endpoint), "data").([]any)
	first := strconv.FormatFloat(member(t, links[1], "id").(float64), 'f', 0, 64)
	if r := run(t, "", "share", "revoke", first, "-e", endpoint); r.code != 0 || !strings.Contains(r.out, first) {
		t.Errorf("%+v", r)
	}
	if status, _ := read(); status != 404 {
		t.Errorf("a revoked link answers %d", status)
	}
	if gone := object(t, "", "share", "revoke", second, "-e", endpoint); member(t, gone, "data", "deleted") != true {
		t.Errorf("%v", gone)
	}
	if none := object(t, "", "share", "list", "-e", endpoint); len(member(t, none, "data").([]any)) != 0 {
		t.Errorf("%v", none)
	}
	fails(t, 1, "1 minute to 30 days", "share", "create", event, "-e", endpoint, "--expires-in", "31d")
	fails(t, 1, "1 minute to 30 days", "share", "create", event, "-e", endpoint, "--expires-in", "0s")
	fails(t, 2, "--expires-in", "share", "create", event, "-e", endpoint, "--expires-in", "90500ms")
	fails(t, 2, "", "share", "revoke", "x", "-e", endpoint)
}
