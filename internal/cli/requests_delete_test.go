package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hookglass/internal/cli"
)

func TestSeveralEventsAreDeleted(t *testing.T) {
	endpoint, hook := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	for _, body := range []string{"a", "b", "c 1", "c 2", "d", "e"} {
		send(t, hook, "text/plain", body)
	}
	left := func(n int) (ids []string) {
		t.Helper()
		for _, e := range member(t, object(t, "", "requests", "list"), "data").([]any) {
			ids = append(ids, member(t, e, "id").(string))
		}
		if len(ids) != n {
			t.Fatalf("%d events are left, not %d", len(ids), n)
		}
		return ids
	}
	ids := left(6)
	if r := run(t, "", "requests", "delete", ids[0], ids[1]); r.code != 0 || r.out != "Deleted 2 events.\n" {
		t.Errorf("%+v", r)
	}
	fails(t, 1, "Deleted 1 event, and no more:\nhookglass: "+ids[0]+": ", "requests", "delete", ids[5], ids[0], ids[4])
	left(3)
	fails(t, 2, "2 events of "+endpoint+" would be deleted", "requests", "delete", "-q", "\"c \"")
	fails(t, 2, "3 events of "+endpoint+" would be deleted", "requests", "delete", "--all")
	left(3)
	if r := run(t, "", "requests", "delete", "-q", "\"c \"", "--yes", "--json"); r.code != 0 || !strings.Contains(r.err, "Deleting 2 events of "+endpoint) || member(t, decode(t, r.out), "data", "deleted") != 2. {
		t.Errorf("%+v", r)
	}
	if r := run(t, "", "requests", "delete", "-q", "nothing"); r.code != 0 || r.out != "Deleted 0 events.\n" {
		t.Errorf("%+v", r)
	}
	send(t, hook, "text/plain", "f")
	left(2)
	if r := run(t, "", "requests", "delete", "--all", "-y"); r.code != 0 || !strings.Contains(r.err, "Deleting 2 events") || r.out != "Deleted 2 events.\n" {
		t.Errorf("%+v", r)
	}
	left(0)
	if r := run(t, "", "requests", "delete", "--all"); r.code != 0 || r.out != "Deleted 0 events.\n" {
		t.Errorf("there is nobody to ask whether nothing is to be deleted: %+v", r)
	}
	fails(t, 1, "q at character", "requests", "delete", "-q", "sig:(", "--yes")
	for _, args := range [][]string{{}, {"x", "--all"}, {"-q", "x", "--all"}, {"x", "-q", "x"}} {
		fails(t, 2, "say which events", append([]string{"requests", "delete"}, args...)...)
	}
	fails(t, 1, "no such endpoint", "requests", "delete", "-e", "ep_none", "--all", "--yes")
}

// More than one page of a list is found, and shown as one number.
func TestAllThatASearchFoundIsDeleted(t *testing.T) {
	endpoint, hook := listening(t)
	for range 130 {
		send(t, hook, "text/plain", "needle")
	}
	send(t, hook, "text/plain", "hay")
	if r := run(t, "", "requests", "delete", "-e", endpoint, "-q", "needle", "--yes"); r.code != 0 || r.out != "Deleted 130 events.\n" {
		t.Errorf("%+v", r)
	}
	if left := member(t, object(t, "", "requests", "list", "-e", endpoint), "data").([]any); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// What is gone is told however the rest ended: the events cannot be brought back.
func TestADeletionThatIsCutOffSaysHowManyAreGone(t *testing.T) {
	for name, end := range map[string]func(stop func()){
		"the server goes away": func(func()) {},
		"somebody stops it":    func(stop func()) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "43m") {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, `{"data":{"id":"req_06h1r3tmq5zg0001j7qqney41m","deleted":true}}`)
					return
				}
				end(stop)
				panic(http.ErrAbortHandler)
			}))
			defer server.Close()
			t.Setenv("HOOKGLASS_SERVER", server.URL)
			t.Setenv("HOOKGLASS_TOKEN", "token")
			var out, err bytes.Buffer
			code := cli.Main(ctx, []string{"requests", "delete", "-e", "default", "req_06h1r3tmq5zg0001j7qqney41m", "req_06h1r3tmq5zg0001j7qqney42m", "req_06h1r3tmq5zg0001j7qqney43m"}, strings.NewReader(""), &out, &err)
			if code == 0 || out.Len() > 0 || !strings.HasPrefix(err.String(), "Deleted 2 events, and no more:\n") {
				t.Errorf("exit %d, %q, %q", code, &out, &err)
			}
		})
	}
}
