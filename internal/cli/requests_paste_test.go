package cli_test

import (
	"strings"
	"testing"
)

// What sends a request again is written for a shell or an interpreter, whatever the request holds.
func TestARequestIsWrittenToBePasted(t *testing.T) {
	endpoint, hook := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	send(t, hook+"/a?x=it's", "text/plain", "it's $HOME")
	for language, begins := range map[string]string{
		"curl": "curl -X POST '" + hook + `/a?x=it'\''s'`, "httpie": "http --ignore-stdin", "fetch": "const response = await fetch(", "go": "package main\n", "python": "import requests\n",
	} {
		r := run(t, "", "requests", "get", "latest", "--as", language)
		if r.code != 0 || !strings.HasPrefix(r.out, begins) || !strings.Contains(r.out, "$HOME") || r.err != "" {
			t.Errorf("%s: %+v", language, r)
		}
	}
	if r := run(t, "", "requests", "get", "latest", "--as", "curl"); !strings.HasSuffix(r.out, ` --data-raw 'it'\''s $HOME'`+"\n") {
		t.Errorf("%s", r.out)
	}

	send(t, hook, "application/octet-stream", "\x00\xff")
	r := run(t, "", "requests", "get", "latest", "--as", "curl")
	_, file, _ := strings.Cut(strings.TrimSuffix(r.out, "'\n"), "--data-binary '@")
	id := strings.TrimSuffix(file, ".bin")
	if r.code != 0 || !strings.HasPrefix(id, "req_") || r.err != "the body is read from a file: hookglass requests get "+id+" --body > "+file+"\n" {
		t.Errorf("a body that cannot be pasted: %+v", r)
	}

	// What came in Latin-1 is sent so again, and what came in UTF-8 as that.
	for value, want := range map[string]string{"text/plain; x=caf\xe9": `x=caf\xe9`, "text/plain; x=caf\u00e9": "x=caf\u00e9", "text/plain; x=\u65e5\u00e9": "x=\u65e5\u00e9"} {
		send(t, hook+"/a", value, "x")
		if r = run(t, "", "requests", "get", "latest", "--as", "go"); r.code != 0 || r.err != "" || !strings.Contains(r.out, want) {
			t.Errorf("a header that came as %q: %+v, want %s", value, r, want)
		}
	}
	fails(t, 2, "no JSON", "requests", "get", "latest", "--as", "curl", "--json")
	fails(t, 2, "curl", "requests", "get", "latest", "--as", "perl")
	fails(t, 2, "", "requests", "get", "latest", "--as", "curl", "--body")
}
