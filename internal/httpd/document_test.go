package httpd_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hookglass/internal/httpd"
)

func TestADocumentIsCompressedForWhoReadsThatAndSentOnce(t *testing.T) {
	content := strings.Repeat("the same again ", 1000)
	d := httpd.NewDocument("text/html; charset=utf-8", []byte(content))
	get := func(header, value string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(header, value)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		return w.Result()
	}
	plain := get("Accept-Encoding", "br, gzip;q=0")
	if body, _ := io.ReadAll(plain.Body); string(body) != content || plain.Header.Get("Content-Encoding") != "" || plain.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("%d bytes, %v", len(body), plain.Header)
	}
	small := get("Accept-Encoding", "deflate, GZIP, br")
	if small.ContentLength > 500 || small.Header.Get("Content-Encoding") != "gzip" || small.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%d bytes, %v", small.ContentLength, small.Header)
	}
	unzipped, err := gzip.NewReader(small.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(unzipped); err != nil || string(body) != content {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	tag := plain.Header.Get("ETag")
	for _, held := range []string{tag, `"other", ` + tag, strings.TrimPrefix(tag, "W/"), "*", " * "} {
		if again := get("If-None-Match", held); again.StatusCode != http.StatusNotModified || again.Header.Get("ETag") != tag {
			t.Errorf("%s: %d, %v", held, again.StatusCode, again.Header)
		}
	}
	for _, held := range []string{`W/"other"`, `"*"`, strings.ToUpper(tag), ""} {
		if again := get("If-None-Match", held); again.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", held, again.StatusCode)
		}
	}
}
