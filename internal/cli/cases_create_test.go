package cli_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestACaseIsMadeOfAnEventAndSignedFromHere(t *testing.T) {
	endpoint, _ := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	object(t, "", "signatures", "set", "github", "--secret", "of the server")
	object(t, "", "trigger", "github.push")
	made := object(t, "", "cases", "create", "latest push", "A push is taken", "--to", "tunnel", "--signature", "resign")
	if member(t, made, "data", "assertions", "status", "class") != "2xx" {
		t.Errorf("%v", made)
	}
	exact := object(t, `{"ok":true}`, "cases", "create", "latest", "AUX", "--to", "tunnel", "--status", "201", "--json-subset", "-")
	if member(t, exact, "data", "assertions", "status", "code") != 201. || member(t, exact, "data", "assertions", "json_subset", "ok") != true {
		t.Errorf("%v", exact)
	}
	if r := run(t, "{", "cases", "create", "latest", "x", "--to", "tunnel", "--json-subset", "-"); r.code != 2 || !strings.Contains(r.err, "no JSON") {
		t.Errorf("%+v", r)
	}
	fails(t, 2, "no such file or directory; name a file, or - for standard input", "cases", "create", "latest", "x", "--to", "tunnel", "--json-subset", `{"ok":true}`)
	fails(t, 2, "a class as 2xx", "cases", "create", "latest", "x", "--to", "tunnel", "--status", "fine")

	const secret = "s3cret"
	handler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		if r.Header.Get("X-Hub-Signature-256") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer handler.Close()
	dir := t.TempDir()
	if r := run(t, "", "cases", "pull", "--dir", dir); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if err := os.Remove(filepath.Join(dir, "aux-case.yaml")); err != nil { // Windows has no files named as a device
		t.Fatal(err)
	}
	local := func(stdin string, args ...string) result {
		t.Helper()
		return run(t, stdin, append([]string{"cases", "run", "--dir", dir, "--target", handler.URL}, args...)...)
	}
	if r := local(secret+"\n", "--secret", "-"); r.code != 0 || !strings.Contains(r.out, "passed") {
		t.Errorf("%+v", r)
	}
	if r := local("", "--secret", "other"); r.code != 1 || !strings.Contains(r.out, "got 401") {
		t.Errorf("%+v", r)
	}
	if r := local(""); r.code != 3 || !strings.Contains(r.out, "--secret") {
		t.Errorf("%+v", r)
	}
	fails(t, 2, "--target", "cases", "run", "rcase_x", "--secret", secret)
}
