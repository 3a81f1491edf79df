package cli_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hookglass/internal/cli"
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
	var sent http.Header
	query, method := "", ""
	changed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent, query, method = r.Header, r.URL.RawQuery, r.Method
		fmt.Fprintf(w, "got %s", body)
	}))
	defer changed.Close()
	args := []string{"replay", event, "-e", id, "--to", changed.URL + "/?old=1", "--method", "PUT", "--header", "X-Attempt: 2", "--remove-header", "content-type", "--query", "new=1", "--body", "-"}
	if r := run(t, "other", args...); r.code != 0 || !strings.Contains(r.out, "got other") || sent.Get("X-Attempt") != "2" || sent.Get("Content-Type") != "" || query != "new=1" || method != "PUT" {
		t.Errorf("%+v: %s ?%s %v", r, method, query, sent)
	}
	if r := run(t, "\xff", args...); r.code != 1 || !strings.Contains(r.err, "no text in UTF-8") {
		t.Errorf("%+v", r)
	}
	fails(t, 2, "not of the form", "replay", event, "-e", id, "--to", target, "--header", "X")
	fails(t, 2, "gives X-A twice", "replay", event, "-e", id, "--to", target, "--header", "X-A: 1", "--header", "X-A: 2")
	fails(t, 2, "both name x-a", "replay", event, "-e", id, "--to", target, "--header", "X-A: 1", "--remove-header", "x-a")
	fails(t, 2, "own to say", "replay", event, "-e", id, "--to", target, "--header", "Content-Length: 2")
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
	var lost bytes.Buffer
	if code := cli.Main(t.Context(), cases("pull"), strings.NewReader(""), full{}, &lost); code != 1 || !strings.Contains(lost.String(), "no space left") {
		t.Errorf("%d %s", code, &lost)
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
	const nobody = "127.0.0.1:1"
	for _, to := range []string{"http://" + nobody, nobody, strings.TrimPrefix(nobody, "127.0.0.1:")} {
		if r := run(t, "", cases("run", "--target", to)...); r.code != 2 || !strings.Contains(r.out, "transport") {
			t.Errorf("%s: %+v", to, r)
		}
	}
	fails(t, 2, "is no port", cases("run", "--target", "99999")...)
	fails(t, 2, "must begin with http", cases("run", "--target", "ftp://"+nobody)...) // and not blocked, as a file is that cannot be run
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
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, "", cases("push")...); r.code != 0 || r.out != file+": unchanged\n" {
		t.Errorf("push again: %+v", r)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(first) {
		t.Errorf("what is unchanged was written: %s, %v", now, err)
	}
	write(strings.Replace(string(first), "is paid", "was paid", 1))
	if r := run(t, "", cases("push")...); r.code != 0 || !strings.Contains(r.out, "version 2 of ") {
		t.Errorf("push a change: %+v", r)
	}
	write(strings.Replace(string(first), "is paid", "will be paid", 1))
	fails(t, 1, "version 2", cases("push")...)
	write("name: x\nunknown: 1\n")
	fails(t, 1, "unknown", cases("push")...)
	fails(t, 2, "name the endpoint", "cases", "list")
}

// caseDir is an endpoint with an event, and a directory for its cases.
type caseDir struct {
	t             *testing.T
	dir, id, hook string
	event         string
	target        string
	reading       string        // a token that may only read
	got           *http.Request // the last that the target received
	body          string
	status        int
}

func newCaseDir(t *testing.T) *caseDir {
	t.Setenv("HOOKGLASS_OUTBOUND_ALLOW", "127.0.0.1/32:1-65535")
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	made := object(t, "", "endpoints", "create", "Payments")
	d := &caseDir{t: t, reading: a.reading, dir: t.TempDir(), id: member(t, made, "data", "id").(string), hook: member(t, made, "data", "webhook_url").(string), status: 200}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.got, d.body = r, string(body)
		w.WriteHeader(d.status)
	}))
	t.Cleanup(s.Close)
	d.target = s.URL
	d.event = d.send("one", nil)
	return d
}

// send captures an event and returns its id.
func (d *caseDir) send(body string, header http.Header) string {
	d.t.Helper()
	r, err := http.NewRequest("POST", d.hook, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	answer.Body.Close()
	return member(d.t, member(d.t, object(d.t, "", "requests", "list", "-e", d.id), "data").([]any)[0], "id").(string)
}

func (d *caseDir) args(args ...string) []string {
	return append([]string{"cases", "-e", d.id, "--dir", d.dir}, args...)
}

func (d *caseDir) run(args ...string) result { d.t.Helper(); return run(d.t, "", d.args(args...)...) }

// local runs the case files against the target.
func (d *caseDir) local(names ...string) result {
	d.t.Helper()
	d.got, d.body = nil, ""
	return d.run(append([]string{"run", "--target", d.target}, names...)...)
}

func (d *caseDir) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *caseDir) read(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// edit replaces a part of a file, which must be there.
func (d *caseDir) edit(name, old, new string) {
	d.t.Helper()
	text := d.read(name)
	if !strings.Contains(text, old) {
		d.t.Fatalf("%s has no %q:\n%s", name, old, text)
	}
	d.write(name, strings.Replace(text, old, new, 1))
}

// saved pushes the file of a new case and pulls it.
func (d *caseDir) saved(name string) {
	d.t.Helper()
	d.write(name+".yaml", fmt.Sprintf("name: %s\nsource_id: %s\ntarget_url: %s\nstatus: 2xx\n", name, d.event, d.target))
	for _, what := range []string{"push", "pull"} {
		if r := d.run(what); r.code != 0 {
			d.t.Fatalf("%s: %+v", what, r)
		}
	}
}

func says(t *testing.T, r result, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, not %d: %+v", r.code, code, r)
	}
	for _, w := range words {
		if !strings.Contains(r.out+r.err, w) {
			t.Errorf("it does not say %q: %+v", w, r)
		}
	}
}

// What people wrote beside the values of a file stays there, whoever changes the values.
func TestCommentsOfACaseFileStay(t *testing.T) {
	d := newCaseDir(t)
	d.write("kept.yaml", fmt.Sprintf("# Asked for by the shop.\n\n# The name as the shop says it.\nname: 'Kept'\nsource_id: %s # sent by hand\n# Staging.\ntarget_url: %s\nstatus: 2xx\n# The end.\n", d.event, d.target))
	says(t, d.run("push"), 0, "kept.yaml: version 1 of rcase_")
	d.edit("kept.yaml", "name: 'Kept'", "name: 'Renamed'")
	says(t, d.run("push"), 0, "kept.yaml: version 2 of rcase_")
	says(t, d.run("pull"), 0)
	text := d.read("kept.yaml")
	for _, want := range []string{
		"# Asked for by the shop.\n", "# The name as the shop says it.\nname: 'Renamed'\n", "source_id: " + d.event + " # sent by hand\n", "# Staging.\ntarget_url: " + d.target + "\n", "status: 2xx\n# The end.\n",
		"lock_version: 2\n", "    - [Accept-Encoding, gzip]\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	says(t, d.local("kept"), 0)
}

func TestACaseFileMustAssertSomething(t *testing.T) {
	d := newCaseDir(t)
	d.status = 500
	d.write("b.body", "x")
	for what, want := range map[string]string{
		"":                        "x.yaml: assertions must hold at least one of status and json_subset",
		"json_subset: '{}'\n":     "x.yaml: assertions must hold at least one",
		"status: 9xx\n":           "x.yaml: status must be one of 1xx, 2xx, 3xx, 4xx and 5xx",
		"status: ''\n":            "x.yaml: status must be one of",
		"status: 0\n":             "x.yaml: status must be from 100 to 599",
		"status: 2000\n":          "x.yaml: status must be from 100 to 599",
		"status: [2xx]\n":         "x.yaml: status is a class such as 2xx, or a number",
		"json_subset: '[1]'\n":    "x.yaml: json_subset is no JSON object",
		"status: 2xx\nextra: 1\n": `x.yaml: line 5: there is no key "extra" here`,
		"lock_version: two\n":     "x.yaml: line 4: a number belongs here, not a text",
	} {
		d.write("x.yaml", "name: x\nsource_id: "+d.event+"\ntarget_url: "+d.target+"\n"+what+"request: {method: POST, body_file: b.body}\n")
		says(t, d.local(), 3, "blocked", want, "1 of 1 case did not pass")
		if d.got != nil {
			t.Errorf("%q: it was sent", what)
		}
		says(t, d.run("push"), 1, want)
	}
	d.write("x.yaml", "")
	says(t, d.local(), 3, "x.yaml is empty")
}

func TestARequestOfASavedCaseIsNotEdited(t *testing.T) {
	d := newCaseDir(t)
	d.saved("plain")
	file, body := d.read("plain.yaml"), d.read("plain.body")
	for part, edit := range map[string]func(){
		"method":  func() { d.edit("plain.yaml", "method: POST", "method: PUT") },
		"headers": func() { d.edit("plain.yaml", "Go-http-client", "curl") },
		"body":    func() { d.write("plain.body", "two") },
	} {
		d.write("plain.yaml", file)
		d.write("plain.body", body)
		edit()
		d.edit("plain.yaml", "name: plain", "name: other")
		says(t, d.run("push"), 1, "plain.yaml: the "+part+" of the request is not as captured", "source_id", "cases pull")
	}
	d.write("plain.yaml", file)
	d.write("plain.body", body)
	says(t, d.run("push"), 0, "plain.yaml: unchanged")

	// Another event is another request.
	other := d.send("three", nil)
	d.edit("plain.yaml", d.event, other)
	says(t, d.run("push"), 0, "version 2 of")
	if got := d.read("plain.body"); got != "three" {
		t.Errorf("the body is that of the event before: %q", got)
	}
	says(t, d.run("push"), 0, "plain.yaml: unchanged")

	// A new case is made of its event too.
	d.write("new.yaml", "name: new\nsource_id: "+other+"\ntarget_url: "+d.target+"\nstatus: 200\nrequest: {method: POST, headers: [], body_file: plain.body}\n")
	says(t, d.run("push"), 1, "new.yaml: the headers of the request")

	// What cannot be compared is said.
	if err := os.Remove(filepath.Join(d.dir, "new.yaml")); err != nil {
		t.Fatal(err)
	}
	says(t, run(t, "", "requests", "delete", other, "-e", d.id), 0)
	says(t, d.run("push"), 0, "unchanged; its event is gone")
}

func TestAnOldFileOfTheSameContentTakesTheVersion(t *testing.T) {
	d := newCaseDir(t)
	d.saved("plain")
	first := d.read("plain.yaml")
	d.edit("plain.yaml", "name: plain", "name: other")
	says(t, d.run("push"), 0, "version 2")
	d.edit("plain.yaml", "name: other", "name: plain")
	says(t, d.run("push"), 0, "version 3")
	d.write("plain.yaml", first)
	says(t, d.run("push"), 0, "unchanged")
	if !strings.Contains(d.read("plain.yaml"), "lock_version: 3") {
		t.Errorf("%s", d.read("plain.yaml"))
	}
}

func TestAPushGoesOnAfterAFileThatFails(t *testing.T) {
	d := newCaseDir(t)
	head := "source_id: " + d.event + "\ntarget_url: " + d.target + "\nstatus: 2xx\n"
	d.write("a.yaml", "name: a\n"+head)
	d.write("b.yaml", "name: b\n"+strings.Replace(head, d.event, "req_0000000000000000000000000", 1))
	d.write("c.yaml", "name: [\n")
	d.write("d.yaml", "id: rcase_00000000000000000000000000\nname: d\n"+head)
	d.write("e.yaml", "name: e\n"+head)
	r := d.run("push")
	says(t, r, 1, "a.yaml: version 1", "b.yaml: ", "source_id", "c.yaml: line 1: ", "d.yaml: the endpoint has no case", "e.yaml: version 1", "3 of 5 case files were not saved")
	if strings.Contains(r.out, "b.yaml") {
		t.Errorf("a fault is on standard output: %+v", r)
	}
	for _, name := range []string{"b.yaml", "c.yaml", "d.yaml"} {
		if err := os.Remove(filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	d.edit("e.yaml", "name: e", "name: f")
	says(t, d.run("push", "--token", d.reading), 3, "a.yaml: unchanged", "e.yaml: ", "1 of 2 case files were not saved")
}

// Who stops a push is told so once, and not of each file that it did not come to; what was saved by then is told.
func TestAPushThatIsStoppedEndsThere(t *testing.T) {
	for _, how := range []string{"", "--json"} {
		dir, made, asked := t.TempDir(), 0, make(chan bool)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.Method == http.MethodGet:
				fmt.Fprint(w, `{"data":[],"meta":{"next_cursor":null}}`)
			case made == 0:
				made++
				w.WriteHeader(http.StatusCreated)
				fmt.Fprint(w, `{"data":{"id":"rcase_1","lock_version":1,"name":"a.yaml"}}`)
			default:
				asked <- true
				<-r.Context().Done()
			}
		}))
		defer server.Close()
		for _, name := range []string{"a.yaml", "b.yaml", "c.yaml"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("name: "+name+"\nsource_id: req_1\ntarget_url: https://example.com\nstatus: 2xx\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ctx, signal := context.WithCancel(t.Context())
		go func() {
			<-asked
			signal()
		}()
		var out, notes bytes.Buffer
		args := []string{"cases", "push", "-e", "ep_x", "--dir", dir, "--server", server.URL, "--token", "hg_x"}
		if how != "" {
			args = append(args, how)
		}
		code := cli.Main(ctx, args, strings.NewReader(""), &out, &notes)
		if want := "hookglass: Stopped before " + server.URL + " answered. It may have done what it was asked for.\n"; code != 1 || notes.String() != want {
			t.Errorf("%q: %d %s", how, code, &notes)
		}
		if said := out.String(); !strings.Contains(said, "a.yaml") || strings.Contains(said, "b.yaml") {
			t.Errorf("%q: %s", how, said)
		}
	}
}

// A repository may come from others, and so may the names and the contents of its files.
func TestCaseFilesHaveNoOrdersForATerminal(t *testing.T) {
	d := newCaseDir(t)
	d.write("\x1bc.yaml", "name: a\nsource_id: "+d.event+"\ntarget_url: "+d.target+"\nstatus: 2xx\n")
	for _, r := range []result{d.run("push"), d.run("pull"), d.local()} {
		says(t, r, 0)
		if strings.Contains(r.out+r.err, "\x1b") {
			t.Errorf("%+q", r.out+r.err)
		}
	}
	d.write("b.yaml", `"\ec": 1`)
	for _, r := range []result{d.run("push"), d.run("pull"), d.local()} {
		says(t, r, r.code, "there is no key \"\uFFFDc\" here")
		if r.code == 0 || strings.Contains(r.out+r.err, "\x1b") {
			t.Errorf("%+q", r.out+r.err)
		}
	}
}

// A case whose id does not get into its file would be made again by each push.
func TestAPushThatCanNotBeKeptIsTold(t *testing.T) {
	dir, made := t.TempDir(), 0
	file := write(t, filepath.Join(dir, "a.yaml"), "name: a\nsource_id: req_0000000000000000000000000\ntarget_url: http://127.0.0.1:1/\nstatus: 2xx\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"data":[],"meta":{"next_cursor":null}}`)
			return
		}
		made++
		if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"data":{"id":"rcase_1","lock_version":1}}`)
	}))
	defer server.Close()
	push := []string{"cases", "push", "-e", "ep_x", "--dir", dir, "--server", server.URL, "--token", "hg_x"}
	if os.Getuid() != 0 { // who may write to everything
		if err := os.Chmod(file, 0o400); err != nil {
			t.Fatal(err)
		}
		if r := run(t, "", push...); r.code != 1 || made > 0 {
			t.Errorf("%d cases were made of a file that cannot be written: %+v", made, r)
		}
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "", push...); r.code != 1 || made != 1 || !strings.Contains(r.err, "it is version 1 of rcase_1, but the file cannot say so") {
		t.Errorf("%d cases were made: %+v", made, r)
	}
}

func TestNoTwoCasesShareTheFileOfABody(t *testing.T) {
	d := newCaseDir(t)
	path := func(name string) string { return filepath.Join(d.dir, name) }
	d.saved("order")
	if err := os.Rename(path("order.yaml"), path("order.yml")); err != nil {
		t.Fatal(err)
	}
	d.event = d.send("two", nil)
	d.write("new.yaml", "name: order\nsource_id: "+d.event+"\ntarget_url: "+d.target+"\nstatus: 2xx\n")
	says(t, d.run("push"), 0, "new.yaml: version 1")
	if err := os.Remove(path("new.yaml")); err != nil {
		t.Fatal(err)
	}
	says(t, d.run("pull"), 0, "order.yml", "order-")
	pulled, err := filepath.Glob(path("order-*.yaml"))
	if err != nil || len(pulled) != 1 {
		t.Fatal(pulled, err)
	}
	for name, body := range map[string]string{"order.yml": "one", filepath.Base(pulled[0]): "two"} {
		if says(t, d.local(name), 0, "passed"); d.body != body {
			t.Errorf("%s sent %q", name, d.body)
		}
	}
	if err := os.Rename(pulled[0], path("order.yaml")); err != nil {
		t.Fatal(err)
	}
	says(t, d.run("pull"), 1, "order.yaml and ", "order.yml would have one file for both bodies")
}

// The body of a case whose event is gone is nowhere else.
func TestTheBodyOfARenamedCaseIsNotOverwritten(t *testing.T) {
	d := newCaseDir(t)
	d.saved("order")
	if err := os.Rename(filepath.Join(d.dir, "order.yaml"), filepath.Join(d.dir, "first.yaml")); err != nil {
		t.Fatal(err)
	}
	says(t, run(t, "", "requests", "delete", d.event, "-e", d.id), 0)
	d.event = d.send("two", nil)
	d.saved("order")
	for name, body := range map[string]string{"first": "one", "order": "two"} {
		if says(t, d.local(name), 0, "passed"); d.body != body {
			t.Errorf("%s sent %q", name, d.body)
		}
	}
}

func TestCaseFilesThatAreNotThere(t *testing.T) {
	d := newCaseDir(t)
	for _, what := range [][]string{{"push"}, {"run", "--target", d.target}} {
		says(t, d.run(what...), 1, "there is no case file in "+d.dir)
	}
	d.saved("plain")
	says(t, d.local("plian"), 1, "there is no case file plian.yaml in "+d.dir)
	says(t, d.local("plain.yaml"), 0, "passed")
	d.dir = filepath.Join(d.dir, "nowhere")
	for _, what := range [][]string{{"push"}, {"run", "--target", d.target}} {
		says(t, d.run(what...), 1, "there is no directory "+d.dir)
	}
}

// A report that cannot be written is no failed assertion, and is refused before anything is sent.
func TestAReportThatCannotBeWrittenIsRefusedBefore(t *testing.T) {
	d := newCaseDir(t)
	d.saved("plain")
	id := strings.Fields(strings.SplitAfter(d.read("plain.yaml"), "id: ")[1])[0]
	nowhere, link := filepath.Join(t.TempDir(), "nowhere", "out.xml"), filepath.Join(t.TempDir(), "link.xml")
	if err := os.Symlink(nowhere, link); err != nil {
		t.Fatal(err)
	}
	for path, named := range map[string]string{nowhere: nowhere, link: nowhere, d.dir: d.dir} {
		d.got = nil
		says(t, d.local("--junit", path), 2, "--junit: ", named+" cannot be written: ")
		says(t, d.run("run", id, "--junit", path), 2, "--junit: ", named+" cannot be written: ")
		if d.got != nil {
			t.Errorf("something was sent, though %s cannot be written", path)
		}
	}
	report := filepath.Join(t.TempDir(), "out.xml")
	says(t, d.local("--junit", report), 0, "passed")
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(report), ".*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestNoCaseFileIsPassedOver(t *testing.T) {
	d := newCaseDir(t)
	one := "name: one\nsource_id: " + d.event + "\ntarget_url: " + d.target + "\nstatus: 2xx\nrequest: {method: POST}\n"
	d.write("a.yaml", one)
	d.write("b.yml", one)
	d.write("notes.txt", one)
	says(t, d.local("--json"), 0, "a.yaml", "b.yml")
	says(t, d.local("b"), 0, "passed")
	says(t, d.local("b.yml"), 0, "passed")
	d.write("b.yml", one+"---\n"+one)
	says(t, d.local(), 3, "b.yml holds more than one document", "1 of 2 cases did not pass")
	for _, method := range []string{"post", "TRACE", "''"} {
		d.write("b.yml", strings.Replace(one, "POST", method, 1))
		d.got = nil
		says(t, d.local("b"), 3, "the method of the request must be one of GET, POST")
		if d.got != nil {
			t.Errorf("%s was sent", method)
		}
	}
}

// Who stops a run stops it: what was not sent was not tried, and is told so.
func TestARunThatIsStoppedSendsNoMoreCases(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		text := "name: " + name + "\nsource_id: req_x\ntarget_url: tunnel\nstatus: 2xx\nrequest: {method: POST}\n"
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	target := handler(t, func(http.ResponseWriter, string) { stop() })
	var out, told bytes.Buffer
	code := cli.Main(ctx, []string{"cases", "run", "--dir", dir, "--target", target, "--json"}, strings.NewReader(""), &out, &told)
	var states []string
	for _, one := range member(t, decode(t, out.String()), "data").([]any) {
		states = append(states, fmt.Sprint(one.(map[string]any)["state"], ": ", one.(map[string]any)["message"]))
	}
	if code != 3 || len(states) != 3 || !strings.HasPrefix(states[0], "unknown") && !strings.HasPrefix(states[0], "passed") {
		t.Errorf("%d %q %s", code, states, &told)
	}
	for _, state := range states[1:] {
		if state != "blocked: stopped before it was sent" {
			t.Errorf("%q", states)
		}
	}
}

func TestAMailIsTheSameFromHere(t *testing.T) {
	d := newCaseDir(t)
	d.id = member(t, object(t, "", "endpoints", "create", "Inbox", "--kind", "email"), "data", "id").(string)
	d.hook = strings.Split(d.hook, "/hooks/")[0] + "/mail/" + d.id
	d.event = d.send("From: Ada <ada@example.com>\r\nSubject: caf\u00e9\r\n\r\nhello\r\n", http.Header{"Content-Type": {"message/rfc822"}})
	d.saved("mail")
	id := strings.Fields(strings.SplitAfter(d.read("mail.yaml"), "id: ")[1])[0]
	says(t, d.run("run", id), 0, "passed")
	sent := d.body
	says(t, d.local(), 0, "passed")
	unjudged := regexp.MustCompile(`"authentication":\{[^}]*\}`) // it may come between the two
	if got := unjudged.ReplaceAllString(d.body, ""); got != unjudged.ReplaceAllString(sent, "") {
		t.Errorf("from here:\n%s\nfrom the server:\n%s", d.body, sent)
	}
	d.edit("mail.yaml", "authentication:", "authentication: {spf: fail, dkim: none, dmarc: fail}\n  was:")
	d.edit("mail.yaml", "  was:\n", "")
	for _, name := range []string{"spf", "dkim", "dmarc"} {
		text := d.read("mail.yaml")
		d.write("mail.yaml", regexp.MustCompile(`(?m)^    `+name+`: \w+\n`).ReplaceAllString(text, ""))
	}
	says(t, d.local(), 0, "passed")
	if !strings.Contains(d.body, `"authentication":{"spf":"fail","dkim":"none","dmarc":"fail"}`) {
		t.Errorf("%s", d.body)
	}
	if r := d.run("pull"); strings.Contains(r.err, "warning") {
		t.Errorf("%+v", r)
	}
}

func TestARunOnTheServerIsReported(t *testing.T) {
	d := newCaseDir(t)
	d.saved("plain")
	id := strings.Fields(strings.SplitAfter(d.read("plain.yaml"), "id: ")[1])[0]
	report := filepath.Join(d.dir, "out.xml")
	says(t, d.run("run", id, "--junit", report), 0, "passed")
	if text := d.read("out.xml"); !strings.Contains(text, `tests="1" failures="0" errors="0"`) || !strings.Contains(text, `name="`+id+`"`) {
		t.Error(text)
	}
	d.status = 500
	says(t, d.run("run", id, "--junit", report), 1, `  status: expected "2xx", got 500`)
	if text := d.read("out.xml"); !strings.Contains(text, `failures="1"`) || !strings.Contains(text, `status: expected &#34;2xx&#34;, got 500`) {
		t.Error(text)
	}
}

func TestARunFromHereHasNoSecret(t *testing.T) {
	d := newCaseDir(t)
	d.saved("plain")
	d.edit("plain.yaml", "signature_mode: preserve", "signature_mode: resign")
	says(t, d.local(), 3, "blocked", "plain.yaml: signature_mode resign needs the secret", "cases run rcase_", "--secret")
}

func TestACaseWhoseEventIsGoneIsPulledWithAWarning(t *testing.T) {
	d := newCaseDir(t)
	d.saved("plain")
	says(t, run(t, "", "requests", "delete", d.event, "-e", d.id), 0)
	if r := d.run("pull"); r.code != 0 || r.err != "" || !strings.Contains(d.read("plain.yaml"), "method: POST") {
		t.Errorf("a file that has the request: %+v", r)
	}
	d.dir = t.TempDir()
	r := d.run("pull")
	says(t, r, 0, `plain.yaml: the event of "plain" is gone`)
	if !strings.HasPrefix(r.err, "warning: ") {
		t.Errorf("%+v", r)
	}
	says(t, d.local(), 3, "plain.yaml has no request")
}

func TestCaseFilesStayInTheirDirectory(t *testing.T) {
	d := newCaseDir(t)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := func(name string) {
		if err := os.Symlink(outside, filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("ln.body")
	d.write("a.yaml", "name: a\nstatus: 2xx\nrequest: {method: POST, headers: [], body_file: ln.body}\n")
	says(t, d.local(), 3, "ln.body is a link that leads out of "+d.dir)
	if d.got != nil {
		t.Errorf("it was sent: %q", d.body)
	}
	d.edit("a.yaml", "ln.body", ".")
	says(t, d.local(), 3, "is no file")
	d.edit("a.yaml", ", body_file: .", "")
	says(t, d.local(), 0, "passed")
	if d.body != "" {
		t.Errorf("a request without a body was sent %q", d.body)
	}
	link("b.yaml")
	says(t, d.local(), 3, "b.yaml is a link")

	// Nothing is written through a link either.
	d.dir = t.TempDir()
	d.saved("plain")
	if err := os.Remove(filepath.Join(d.dir, "plain.body")); err != nil {
		t.Fatal(err)
	}
	link("plain.body")
	says(t, d.run("pull"), 1, "plain.body is a link")
	if text, err := os.ReadFile(outside); err != nil || string(text) != "secret" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestCaseFilesAsJSON(t *testing.T) {
	d := newCaseDir(t)
	d.write("plain.yaml", "name: plain\nsource_id: "+d.event+"\ntarget_url: "+d.target+"\nstatus: 2xx\n")
	first := func(args ...string) map[string]any {
		t.Helper()
		r := run(t, "", append(d.args(args...), "--json")...)
		return member(t, decode(t, r.out), "data").([]any)[0].(map[string]any)
	}
	file := filepath.Join(d.dir, "plain.yaml")
	for _, c := range []struct {
		state string
		args  []string
	}{{"created", []string{"push"}}, {"unchanged", []string{"push"}}, {"written", []string{"pull"}}, {"passed", []string{"run", "--target", d.target}}} {
		got := first(c.args...)
		if got["state"] != c.state || got["file"] != file || got["name"] != "plain" || got["lock_version"] != 1.0 || !strings.HasPrefix(got["id"].(string), "rcase_") {
			t.Errorf("%v: %v", c.args, got)
		}
	}
	d.status = 500
	if got := first("run", "--target", d.target); got["state"] != "assertion_failed" || !strings.Contains(got["message"].(string), "got 500") || got["duration_ms"] == nil {
		t.Errorf("%v", got)
	}
	d.edit("plain.yaml", "status: 2xx", "status: 9xx")
	if got := first("push"); got["state"] != "failed" || !strings.Contains(got["message"].(string), "status must be") {
		t.Errorf("%v", got)
	}
}

// A file has the bytes of the headers, also of those that are not UTF-8, and so has a run of it. One that an earlier
// build wrote has them as text, and is no edited one for that.
func TestBytesOfHeadersInCaseFiles(t *testing.T) {
	d := newCaseDir(t)
	d.event = d.send("one", http.Header{"X-Place": {"caf\xe9"}, "X-Word": {"na\u00efve"}, "X-Far": {"\u6771\u4eac"}})
	d.write("plain.yaml", "name: plain\nsource_id: "+d.event+"\ntarget_url: "+d.target+"\nstatus: 2xx\n")
	says(t, d.run("push"), 0)
	for range 2 {
		if r := d.run("pull"); r.code != 0 || r.err != "" {
			t.Errorf("pull: %+v", r)
		}
		says(t, d.local(), 0, "passed")
		for name, want := range map[string]string{"X-Place": "caf\xe9", "X-Word": "na\u00efve", "X-Far": "\u6771\u4eac"} {
			if got := d.got.Header.Get(name); got != want {
				t.Errorf("sent %s: %q, want %q", name, got, want)
			}
		}
		says(t, d.run("push"), 0, "unchanged")
		d.edit("plain.yaml", "!!binary Y2Fm6Q==", "caf\u00e9")
		says(t, d.run("push"), 0, "unchanged")
	}
}

func TestTheHelpOfCasesRunTellsTheExitCodes(t *testing.T) {
	r := run(t, "", "cases", "run", "--help")
	says(t, r, 0, "0  all passed", "1  an assertion failed", "2  the target", "3  a case was blocked", "unknown")
}

// A server that starts anew while a pipeline waits for a run has failed no case.
func TestARunIsWaitedForWhileTheServerIsAway(t *testing.T) {
	var keys []string
	answers := []string{"503 ", "202 queued", "200 running", "503 ", "cut off", "200 passed"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
		}
		status, state, _ := strings.Cut(answers[0], " ")
		answers = answers[1:]
		code, err := strconv.Atoi(status)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if state == "" {
			fmt.Fprint(w, `{"error":"unavailable","message":"The service is starting."}`)
			return
		}
		fmt.Fprintf(w, `{"data":{"id":"rrun_1","state":%q}}`, state)
	}))
	t.Cleanup(server.Close)
	r := run(t, "", "cases", "run", "rcase_1", "-e", "ep_a", "--server", server.URL, "--token", "hg_x")
	if r.code != 0 || !strings.Contains(r.out, "rrun_1 passed") || len(answers) > 0 {
		t.Errorf("%+v, %v is left", r, answers)
	}
	if len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" {
		t.Errorf("the keys are %q", keys)
	}
	fails(t, 1, "No server answers", "cases", "run", "rcase_1", "-e", "ep_a", "--server", "http://127.0.0.1:1", "--token", "hg_x")
}

// The API tells null and no value alike, and the one that was asserted did not come.
func TestAMissingNullIsToldToBeNothing(t *testing.T) {
	t.Setenv("HOOKGLASS_OUTBOUND_ALLOW", "127.0.0.1/32:1-65535")
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	made := object(t, "", "endpoints", "create", "Payments")
	id := member(t, made, "data", "id").(string)
	send(t, member(t, made, "data", "webhook_url").(string), "application/json", `{}`)
	event := member(t, member(t, object(t, "", "requests", "list", "-e", id), "data").([]any)[0], "id").(string)
	target := handler(t, func(w http.ResponseWriter, _ string) { fmt.Fprintf(w, `{"kept":1,"long":"%0600d"}`, 1) })
	dir := t.TempDir()
	subset := fmt.Sprintf(`{"owed": null, "kept": null, "long": "%0600d"}`, 2) // values of one length are shown alike
	text := "name: Nothing is owed\nsource_id: " + event + "\ntarget_url: " + target + "\njson_subset: '" + subset + "'\n"
	if err := os.WriteFile(filepath.Join(dir, "owed.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := func(args ...string) []string { return append([]string{"cases", "-e", id, "--dir", dir}, args...) }
	run(t, "", cases("push")...)
	run(t, "", cases("pull")...)
	kase := member(t, member(t, object(t, "", cases("list")...), "data").([]any)[0], "id").(string)
	for _, command := range [][]string{cases("run", kase), cases("run", "--target", target)} {
		r := run(t, "", command...)
		if r.code != 1 || !strings.Contains(r.out, "/owed: expected null, got nothing\n") || !strings.Contains(r.out, "/kept: expected null, got 1\n") ||
			!strings.Contains(r.out, `/long: expected "string of 602 bytes", got "string of 602 bytes"`) {
			t.Errorf("%v: %+v", command, r)
		}
	}
}
