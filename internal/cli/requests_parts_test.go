package cli_test

import (
	"bytes"
	"compress/gzip"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

// A form with files is read in its parts, whose files can be had alone.
func TestTheFilesOfAFormAreReadAlone(t *testing.T) {
	endpoint, hook := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	const picture = "\x89PNG\r\n\x00\xff"
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	form.WriteField("title", "two\nlines \x1b[2J")
	file, err := form.CreateFormFile("file", "cat.png")
	if err != nil {
		t.Fatal(err)
	}
	file.Write([]byte(picture))
	form.Close()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(body.Bytes())
	z.Close()

	for coding, sent := range map[string][]byte{"": body.Bytes(), "gzip": packed.Bytes()} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", hook, bytes.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", form.FormDataContentType())
		if coding != "" {
			req.Header.Set("Content-Encoding", coding)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		r := run(t, "", "requests", "get", "latest")
		for _, line := range []string{"  0  title  14 bytes\n     two\n     lines \uFFFD[2J\n", "  1  file  cat.png  application/octet-stream  8 bytes\n"} {
			if r.code != 0 || !strings.Contains(r.out, line) {
				t.Errorf("%q: no %q in %+v", coding, line, r)
			}
		}
		if strings.ContainsAny(r.out, "\x1b\x00") || strings.Contains(r.out, "base64") {
			t.Errorf("%q: %q", coding, r.out)
		}
		if r := run(t, "", "requests", "get", "latest", "--part", "1"); r.code != 0 || r.out != picture {
			t.Errorf("%q: the file is %+v", coding, r)
		}
		if r := run(t, "", "requests", "get", "latest", "--body"); r.out != string(sent) {
			t.Errorf("%q: the body is not what was sent", coding)
		}
		fails(t, 1, "the body has 2", "requests", "get", "latest", "--part", "2")
	}
	fails(t, 2, "no JSON", "requests", "get", "latest", "--part", "0", "--json")
	send(t, hook, "multipart/form-data; boundary=none", "no parts")
	if r := run(t, "", "requests", "get", "latest"); !strings.Contains(r.out, "\nno parts\n") {
		t.Errorf("a body without parts is %+v", r)
	}
}
