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
		t.Errorf("a body that can not be pasted: %+v", r)
	}

	send(t, hook+"/a", "text/plain; x=caf\xe9", "x") // the API has it as text: which bytes came is not seen
	r = run(t, "", "requests", "get", "latest", "--as", "curl")
	if r.code != 0 || !strings.Contains(r.out, "x=café") || r.err != "Content-Type may have come in Latin-1: what is not ASCII in it is sent as UTF-8\n" {
		t.Errorf("a header in Latin-1: %+v", r)
	}
	send(t, hook+"/a", "text/plain; x=日é", "x")
	if r = run(t, "", "requests", "get", "latest", "--as", "curl"); r.code != 0 || r.err != "" {
		t.Errorf("a header in UTF-8: %+v", r)
	}
	fails(t, 2, "no JSON", "requests", "get", "latest", "--as", "curl", "--json")
	fails(t, 2, "curl", "requests", "get", "latest", "--as", "perl")
	fails(t, 2, "", "requests", "get", "latest", "--as", "curl", "--body")
}
