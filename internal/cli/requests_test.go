package cli_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hookglass/api"
	"hookglass/internal/cli"
)

func TestATotalThatWasNotCountedToItsEndIsALeast(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[],"meta":{"total":4200,"total_exact":false,"limit":25,"offset":0,"next_cursor":"c"}}`)
	}))
	defer server.Close()
	t.Setenv("HOOKGLASS_SERVER", server.URL)
	t.Setenv("HOOKGLASS_TOKEN", "hg_any")
	if r := run(t, "", "requests", "list", "-e", "any", "-q", "rare"); r.code != 0 || !strings.Contains(r.out, "0 of at least 4200. More: --cursor c") {
		t.Errorf("%+v", r)
	}
}

// A search that found nothing because of an AND says so, to people.
func TestASearchWithoutOperatorsSaysSo(t *testing.T) {
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	t.Setenv("HOOKGLASS_SERVER", server.URL)
	t.Setenv("HOOKGLASS_TOKEN", "hg_any")
	const none = `{"data":[],"meta":{"total":0,"total_exact":true,"limit":25,"offset":0,"next_cursor":null}}`
	for _, c := range []struct {
		answer string
		args   []string
		says   bool
	}{
		{none, []string{"-q", "a AND b"}, true},
		{none, []string{"-q", "a b"}, false},
		{none, []string{"-q", "a AND b", "--json"}, false},
		{`{"data":[],"meta":{"total":0,"total_exact":false,"limit":25,"offset":0,"next_cursor":"c"}}`, []string{"-q", "a AND b"}, false},
		{`{"data":[],"meta":{"total":1,"total_exact":true,"limit":25,"offset":0,"next_cursor":null}}`, []string{"-q", "a AND b", "--cursor", "c"}, false},
	} {
		answer = c.answer
		r := run(t, "", append([]string{"requests", "list", "-e", "any"}, c.args...)...)
		if r.code != 0 || strings.Contains(r.err, "AND, OR and NOT are searched for as words.") != c.says || strings.Contains(r.out, "searched for") {
			t.Errorf("%q, answered %s: %+v", c.args, c.answer, r)
		}
	}
}

// So does every command that a search has act on what it finds.
func TestWhatFindsNothingToActOnSaysWhatMayBeWrongWithTheSearch(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/export"):
			w.Header().Set("Content-Disposition", "attachment")
		case strings.HasSuffix(r.URL.Path, "/requests"):
			_, _ = io.WriteString(w, `{"data":[],"meta":{"total":0,"total_exact":true,"limit":1,"offset":0,"next_cursor":null}}`)
		default:
			_, _ = io.WriteString(w, `{"data":{"complete":true}}`)
		}
	}))
	defer server.Close()
	t.Setenv("HOOKGLASS_SERVER", server.URL)
	t.Setenv("HOOKGLASS_TOKEN", "hg_any")
	for _, args := range [][]string{
		{"requests", "delete", "-e", "any", "--yes"}, {"requests", "export", "-e", "any"}, {"requests", "export", "-e", "any", "-o", filepath.Join(t.TempDir(), "f")},
		{"replays", "run", "-e", "any", "--to", "tunnel", "--dry-run"}, {"retries", "any"}, {"endpoints", "try", "any"},
	} {
		for q, says := range map[string]bool{"a AND b": true, "a b": false} {
			r := run(t, "", append(args, "-q", q)...)
			if r.code != 0 || strings.Contains(r.err, "AND, OR and NOT are searched for as words.") != says || strings.Contains(r.out, "searched for") {
				t.Errorf("%q, %s: %+v", args, q, r)
			}
		}
	}
}

// What is not to be found begins with a minus, which is no flag.
func TestASearchMayBeginWithAMinus(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("q"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[],"meta":{"total":0,"limit":25,"offset":0,"next_cursor":null}}`)
	}))
	defer server.Close()
	t.Setenv("HOOKGLASS_SERVER", server.URL)
	t.Setenv("HOOKGLASS_TOKEN", "hg_any")
	for _, args := range [][]string{{"-q", "-delivery:none"}, {"--query", "-delivery:none"}, {"-q-delivery:none"}, {"--query=-delivery:none"}, {"-q", "-delivery:none", "--limit", "7"}} {
		asked = nil
		if r := run(t, "", append([]string{"requests", "list", "-e", "any"}, args...)...); r.code != 0 || len(asked) != 1 || asked[0] != "-delivery:none" {
			t.Errorf("%q: asked for %q: %+v", args, asked, r)
		}
	}
	// Every command that searches has it, and none takes the next flag for a search that was forgotten.
	for _, command := range [][]string{
		{"requests", "list"}, {"requests", "tail"}, {"requests", "export"}, {"requests", "delete"}, {"requests", "wait"}, {"replays", "run"},
		{"endpoints", "try", "any"}, {"bundle", "create"}, {"retries"},
	} {
		fails(t, 2, "--query", append(slices.Clone(command), "-q", "--json")...)
		fails(t, 2, "--query", append(slices.Clone(command), "-q", "-e", "any")...)
		if r := run(t, "", append(slices.Clone(command), "-q", "-delivery:none", "--no-such-flag")...); !strings.Contains(r.err, "--no-such-flag") {
			t.Errorf("%q: %+v", command, r)
		}
	}
}

// An unset variable of a script makes -e "".
func TestAnEmptyEndpointIsWrongUsageAndAsksNoServer(t *testing.T) {
	t.Setenv("HOOKGLASS_SERVER", "http://127.0.0.1:1")
	t.Setenv("HOOKGLASS_TOKEN", "hg_any")
	t.Setenv("HOOKGLASS_ENDPOINT", "any")
	for _, command := range [][]string{
		{"requests", "list"}, {"requests", "tail"}, {"requests", "delete", "--all", "--yes"}, {"replay", "latest", "--to", "tunnel"}, {"replays", "list"}, {"targets", "list"},
		{"actions", "list"}, {"alerts", "list"}, {"signatures", "list"}, {"share", "list"}, {"bundle", "create", "latest"}, {"metrics"},
	} {
		fails(t, 2, "--endpoint is empty", append(command, "-e", "")...)
	}
}

func TestEventsAreExported(t *testing.T) {
	endpoint, hook := listening(t)
	send(t, hook, "application/json", `{"n":1}`)
	send(t, hook, "text/plain", "=1+1")
	export := func(args ...string) []string {
		return append([]string{"requests", "export", "-e", endpoint}, args...)
	}
	var bodies []string
	for line := range strings.Lines(run(t, "", export()...).out) {
		var e struct{ Body string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		bodies = append(bodies, e.Body)
	}
	if got := strings.Join(bodies, " "); got != `{"n":1} =1+1` {
		t.Errorf("exported %s", got)
	}
	if r := run(t, "", export("-q", "type:text/plain", "--json")...); r.code != 0 || strings.Count(r.out, "\n") != 1 || decode(t, r.out)["body"] != "=1+1" {
		t.Errorf("%+v", r)
	}
	if r := run(t, "", export("--format", "har")...); r.code != 0 || len(member(t, decode(t, r.out), "log", "entries").([]any)) != 2 {
		t.Errorf("%+v", r)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "out.csv")
	told := object(t, "", export("--format", "csv", "-o", file)...)
	text, err := os.ReadFile(file)
	if err != nil || told["bytes"] != float64(len(text)) || told["file"] != file {
		t.Errorf("%v, of %d bytes: %v", told, len(text), err)
	}
	if rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll(); err != nil || len(rows) != 3 {
		t.Errorf("%s: %v", text, err)
	}
	fails(t, 2, "csv is no JSON", export("--format", "csv", "--json")...)
	fails(t, 2, "--format", export("--format", "xml")...)
	fails(t, 1, "no such endpoint", "requests", "export", "-e", "ep_none")
	fails(t, 1, "provder", export("-q", "provder:1", "-o", filepath.Join(dir, "none"))...)
	var status bytes.Buffer
	if n := cli.Main(t.Context(), export(), strings.NewReader(""), full{}, &status); n != 1 || !strings.Contains(status.String(), "no space left") {
		t.Errorf("%d %s", n, &status)
	}
	holds(t, file, string(text), 0o600, 1)
}

func TestJSONHasNoOrdersForATerminalAndSaysTheSame(t *testing.T) {
	endpoint, hook := listening(t)
	body := "{\"name\":\"\u009b31mred\u202e\x7f 注文\"}"
	send(t, hook, "application/json", body)
	r := run(t, "", "requests", "list", "-e", endpoint, "--json")
	id := member(t, decode(t, r.out), "data").([]any)[0].(map[string]any)["id"].(string)
	r = run(t, "", "requests", "get", id, "-e", endpoint, "--json")
	if strings.ContainsAny(r.out, "\u009b\u202e\x7f") {
		t.Errorf("%q", r.out)
	}
	if got := member(t, decode(t, r.out), "data", "body"); got != body {
		t.Errorf("the body is %q, want %q", got, body)
	}
}

func TestAnExportThatBreaksOffLeavesTheFileThatThereWas(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=ep_x.ndjson")
		_, _ = io.WriteString(w, "{}\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer broken.Close()
	file := write(t, filepath.Join(t.TempDir(), "out.ndjson"), "before")
	fails(t, 1, "broke off and is not whole", "requests", "export", "-e", "ep_x", "-o", file, "--server", broken.URL, "--token", "hg_x")
	// It is the connection that failed, and not the file.
	fails(t, 1, "hookglass: No server answers at http://127.0.0.1:1 ", "requests", "export", "-e", "ep_x", "-o", file, "--server", "http://127.0.0.1:1", "--token", "hg_x")
	holds(t, file, "before", 0o600, 1)
}

// Of a body that is not text people see how it begins, not megabytes that nobody reads.
func TestABodyThatIsNotTextIsShownByItsBeginning(t *testing.T) {
	var e api.EventDetail
	e.Body, e.BodyEncoding = new(base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 1<<20)...))), "base64"
	if text := cli.Detail(e); !strings.Contains(text, "00000000  89 50 4e 47") || len(text) > 4<<10 {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
}

// Indented, brackets within one another take the square of their number.
func TestASmallBodyDoesNotFloodTheTerminal(t *testing.T) {
	var e api.EventDetail
	e.Body = new(strings.Repeat("[", 9000) + strings.Repeat("]", 9000))
	if text := cli.Detail(e); len(text) > 64<<10 || !strings.Contains(text, *e.Body) {
		t.Errorf("a body of %d bytes is shown as %d", len(*e.Body), len(text))
	}
	if e.Body = new(`{"a":[1]}`); !strings.Contains(cli.Detail(e), "{\n  \"a\": [\n    1\n  ]\n}\n") {
		t.Errorf("%s", cli.Detail(e))
	}
}

func TestAMailIsListedByWhoWroteToWhomAboutWhat(t *testing.T) {
	_, hook := listening(t)
	inbox := member(t, object(t, "", "endpoints", "create", "Inbox", "--kind", "email", "--email-local-part", "listed"), "data", "id").(string)
	send(t, strings.Split(hook, "/hooks/")[0]+"/mail/"+inbox, "message/rfc822", "From: Shop <shop@example.com>\r\nTo: ann@example.org\r\nSubject: Your order\r\n\r\nHello\r\n")
	lines := strings.Split(run(t, "", "requests", "list", "-e", inbox).out, "\n")
	if got := strings.Fields(lines[0]); !slices.Equal(got, []string{"TIME", "ID", "TO", "FROM", "SUBJECT", "STATUS", "SIZE"}) {
		t.Errorf("the columns are %q", got)
	}
	if !strings.Contains(lines[1], "  listed@localhost  Shop <shop@example.com>  Your order  -  ") {
		t.Errorf("the mail is listed as %q", lines[1])
	}
}

// The header of a mail does not name blind copies.
func TestAMailIsShownWithAllWhomItWasSentTo(t *testing.T) {
	var e api.EventDetail
	e.Type, e.Path, e.Envelope = "email", "ann@example.org", &api.Envelope{RcptTo: []string{"ann@example.org", "blind@example.org"}}
	if text := cli.Detail(e); !strings.Contains(text, "to ann@example.org, blind@example.org  from") {
		t.Error(text)
	}
}

func TestACompressedBodyIsShownAsWhatItSays(t *testing.T) {
	endpoint, hook := listening(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, `{"n":"\u001b"}`)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{packed.String(): "decompressed from gzip)\n{\n  \"n\"", "\xff\xfe": "(2 bytes, not text; --body writes them)\n00000000  ff fe "} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", hook, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Encoding", "gzip")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		id := member(t, member(t, object(t, "", "requests", "list", "-e", endpoint), "data").([]any)[0], "id").(string)
		if r := run(t, "", "requests", "get", id, "-e", endpoint); r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("%q, want %q", r.out, want)
		}
		if r := run(t, "", "requests", "get", id, "-e", endpoint, "--body"); r.out != body {
			t.Errorf("the body is %q", r.out)
		}
	}
}
