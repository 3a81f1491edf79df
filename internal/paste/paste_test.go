package paste_test

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/paste"
)

func TestTheCurlLineSendsTheRequestAgain(t *testing.T) {
	e := &hookglass.Event{
		ID: "req_1", Type: hookglass.EventWebhook, Method: "PUT", URL: "http://127.0.0.1/hooks/ep_x/a/../b?x={1,2}&y=it's",
		Payload: &hookglass.Payload{
			Headers: hookglass.Headers{
				{Name: "Host", Value: "x"}, {Name: "Content-Length", Value: "9"}, {Name: "X-Empty", Value: ""},
				{Name: "X-Quote", Value: `it's "so"`}, {Name: "X-Control", Value: "\x1b[2J"},
			},
			Body: []byte("@it's\n$HOME `id`"),
		},
	}
	line := paste.Copies(e)[0].Text
	if file := paste.BodyFile(e); file != "" {
		t.Errorf("it reads %s", file)
	}

	// A shell reads it; in place of curl stands a program that prints its arguments.
	out, err := exec.Command("sh", "-c", `curl() { for a in "$@"; do printf '%s|' "$a"; done; }; `+line).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, line)
	}
	want := "-X|PUT|--globoff|--path-as-is|http://127.0.0.1/hooks/ep_x/a/../b?x={1,2}&y=it's|-H|X-Empty;|-H|X-Quote: it's \"so\"|" +
		"-H|User-Agent:|-H|Accept:|-H|Content-Type:|--data-raw|@it's\n$HOME `id`|"
	if string(out) != want {
		t.Errorf("the shell reads\n%s\nwant\n%s", out, want)
	}

	e.Body = []byte("\x03\xff")
	if line := paste.Copies(e)[0].Text; !strings.Contains(line, "--data-binary '@req_1.bin'") || paste.BodyFile(e) != "req_1.bin" {
		t.Errorf("bytes that cannot be pasted stand in %s", line)
	}
}

// curl refuses --head beside a body, and without it waits for the body that the answer's Content-Length tells of.
func TestTheCurlLineOfAHeadSendsItsBody(t *testing.T) {
	e := &hookglass.Event{ID: "req_1", Type: hookglass.EventWebhook, Method: "HEAD", URL: "http://127.0.0.1/hooks/ep_x", Payload: &hookglass.Payload{}}
	if line := paste.Copies(e)[0].Text; !strings.HasPrefix(line, "curl --head '") {
		t.Error("a HEAD without a body is not curl --head")
	}
	e.Body = []byte("hi")
	line := paste.Copies(e)[0].Text
	if !strings.Contains(line, "curl -X HEAD --ignore-content-length -H 'Connection: close' 'http://127.0.0.1/hooks/ep_x'") ||
		!strings.Contains(line, "--data-raw hi") || strings.Contains(line, "--head") {
		t.Error("the line of a HEAD with a body is one that curl refuses")
	}
}

func TestCopiesSendTheHeadersThatCame(t *testing.T) {
	copies := paste.Copies(&hookglass.Event{
		ID: "req_1", Type: hookglass.EventWebhook, Method: "GET", URL: "http://127.0.0.1/hooks/ep_x/./a",
		Payload: &hookglass.Payload{
			Headers: hookglass.Headers{
				{Name: "Accept", Value: "*/*"}, {Name: "X-File", Value: "@/etc/hostname"}, {Name: "X-JSON", Value: "=1"}, {Name: "X-Name", Value: "a\t\"é日\\"}, {Name: "-ofile", Value: "x"},
			},
			Body: []byte("{}"),
		},
	})
	all := map[string]string{}
	for _, c := range copies {
		all[c.Name] = c.Text
	}
	line := all["HTTPie"]

	// HTTPie reads a file for what stands behind :@, JSON behind :=, and options up to --.
	out, err := exec.Command("sh", "-c", `http() { for a in "$@"; do printf '%s|' "$a"; done; }; `+line).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, line)
	}
	want := `--ignore-stdin|--path-as-is|--raw={}|GET|http://127.0.0.1/hooks/ep_x/./a|--|Accept:*/*|X-File:\@/etc/hostname|X-JSON:\=1|X-Name:a` + "\t" + `"é日\|` +
		`-ofile:x|User-Agent:|Content-Type:|`
	if string(out) != want {
		t.Errorf("the shell reads\n%s\nwant\n%s", out, want)
	}
	for name, want := range map[string]string{
		"fetch":  `["X-Name", "a\x09\"\xc3\xa9\xe6\x97\xa5\\"]`, // a string of JavaScript stands for the bytes of a header
		"Python": `"X-Name": "a\x09\"\xc3\xa9\xe6\x97\xa5\\",`,  // and so does one of Python
		"Go":     `req.Header.Add("X-Name", "a\t\"é日\\")`,
	} {
		if !strings.Contains(all[name], want) {
			t.Errorf("%s lacks %s:\n%s", name, want, all[name])
		}
	}
	if !strings.Contains(all["fetch"], "// The body is left out: fetch sends none with GET.") {
		t.Errorf("fetch does not say that it sends no body:\n%s", all["fetch"])
	}
}

// Each client reads a URL, a header and a body in a way of its own.
func TestCopiesSendWhatAClientWouldChange(t *testing.T) {
	copies := func(url, header, body string) map[string]string {
		e := &hookglass.Event{
			ID: "req_1", Type: hookglass.EventWebhook, Method: "POST", URL: "http://127.0.0.1/hooks/ep_x" + url,
			Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "X-A", Value: header}}, Body: []byte(body)},
		}
		all := map[string]string{}
		for _, c := range paste.Copies(e) {
			all[c.Name] = c.Text
		}
		return all
	}
	all := copies(`/a#b\c?q=%zz%41%`, `a\\:b`, "\ufeffx")
	for name, want := range map[string]string{
		"curl":   `'http://127.0.0.1/hooks/ep_x/a%23b\c?q=%zz%41%'`, // nothing behind a # is sent
		"Go":     `"http://127.0.0.1/hooks/ep_x/a%23b\\c?q=%zz%41%", strings.NewReader("\ufeffx")`,
		"fetch":  `fetch("http://127.0.0.1/hooks/ep_x/a%23b%5Cc?q=%zz%41%"`,         // a \ would be a slash
		"Python": `"http://127.0.0.1/hooks/ep_x/a%23b\\c?q=%25zz%41%25"`,            // each % would be escaped
		"HTTPie": `'http://127.0.0.1/hooks/ep_x/a%23b\c?q=%25zz%41%25' -- \` + "\n", // as it sends by requests
	} {
		if !strings.Contains(all[name], want) {
			t.Errorf("%s lacks %s:\n%s", name, want, all[name])
		}
	}
	if want := `body: new TextEncoder().encode("\ufeffx"),`; !strings.Contains(all["fetch"], want) {
		t.Errorf("fetch gives a body without a type one:\n%s", all["fetch"])
	}
	for name, text := range all {
		if strings.Contains(text, "segments") || strings.Contains(text, "backslash") {
			t.Errorf("%s says of what it sends that it does not:\n%s", name, text)
		}
	}

	for _, path := range []string{"/../ep_y", "/..", "/a/."} {
		all = copies(path+"?q=/../x", `\\\=`, "x")
		for name, want := range map[string]string{
			"fetch":  "\n// fetch takes the segments . and .. out of the path,",
			"Python": "\n# requests takes the segments . and .. out of the path,",
			"HTTPie": "# HTTPie leaves out the backslash before one of :;=@ in X-A.\n",
		} {
			if !strings.Contains("\n"+all[name], want) {
				t.Errorf("%s does not say of %s that it changes it:\n%s", name, path, all[name])
			}
		}
	}
	all = copies("/%2E%2e", "", "x")
	for name, want := range map[string]string{
		"Python": "\n# requests writes escapes in the URL in a way of its own, among them %2E.\n",
		"HTTPie": "# HTTPie writes escapes in the URL in a way of its own, among them %2E.\nhttp ",
	} {
		if !strings.Contains(all[name], want) {
			t.Errorf("%s does not say that it sends two dots:\n%s", name, all[name])
		}
	}
	for _, kept := range []string{"/a%20b%2Fc%C3%A9", "/?q=%22%7B%3A%3F%5B%5E%60%40%7F&%zz%a"} {
		if all := copies(kept, "", "x"); strings.Contains(all["Python"]+all["HTTPie"], "escapes") {
			t.Errorf("of %s they say that they change it", kept)
		}
	}
	for _, taken := range []string{"%41", "%5a", "%61", "%7A", "%30", "%39", "%2d", "%2e", "%5F", "%7e", "%6f", "%4F", "%70", "%50", "%3f", "%c3", "%fF", "%e9"} {
		if all := copies("/"+taken, "", "x"); !strings.Contains(all["Python"], "among them "+taken+".") {
			t.Errorf("of %s they do not say that they change it", taken)
		}
	}
	if !strings.Contains(all["fetch"], "// fetch takes the segments") || strings.Contains(all["Python"], "segments") {
		t.Errorf("of escaped dots they say\n%s\n%s", all["fetch"], all["Python"])
	}
}

// A value that cannot be pasted, as that of a sender who writes Latin-1, is written as its bytes; it was left out once.
func TestCopiesSendTheBytesOfAHeader(t *testing.T) {
	value := "caf\xe9 \x80\xff 100%s it's \\n `id` $(id) ! \u202e\tx"
	all := map[string]string{}
	for _, c := range paste.Copies(&hookglass.Event{
		ID: "req_1", Type: hookglass.EventWebhook, Method: "GET", URL: "http://127.0.0.1/hooks/ep_x",
		Payload: &hookglass.Payload{Headers: hookglass.Headers{
			{Name: "Accept", Value: "x"}, {Name: "User-Agent", Value: "x"}, {Name: "X-A", Value: value}, {Name: "X-Key", Value: "\xe9\x1b[2J"},
		}},
	}) {
		all[c.Name] = c.Text
	}
	for name, text := range all {
		if strings.Contains(text, "X-Key") || !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s has what cannot be pasted:\n%q", name, text)
		}
	}
	out, err := exec.Command("sh", "-c", `curl() { for a in "$@"; do printf '%s|' "$a"; done; }; `+all["curl"]).Output()
	if want := "-X|GET|http://127.0.0.1/hooks/ep_x|-H|Accept: x|-H|User-Agent: x|-H|X-A: " + value + "|"; err != nil || string(out) != want {
		t.Errorf("the shell reads %q, %v\nwant %q", out, err, want)
	}
	const escaped = `"caf\xe9 \x80\xff 100%s it's \\n ` + "`id`" + ` $(id) ! \xe2\x80\xae\x09x"`
	for name, want := range map[string]string{
		"fetch":  `["X-A", ` + escaped + `],`,
		"Python": `"X-A": ` + escaped + `,`,
		"Go":     `req.Header.Add("X-A", ` + escaped + `)`,
		"HTTPie": "# HTTPie is not given X-A: its value cannot be pasted.\n",
	} {
		if !strings.Contains(all[name], want) {
			t.Errorf("%s lacks %s:\n%s", name, want, all[name])
		}
	}
}
