package httpd_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"hookglass/internal/httpd"
)

// plainly asks for an answer as it is, or in the coding that it says it reads.
func plainly(t *testing.T, method, url string, codings ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range codings {
		r.Header.Add("Accept-Encoding", c)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // what it would ask for and undo by itself
	t.Cleanup(transport.CloseIdleConnections)
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func read(t *testing.T, from io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func unzipped(t *testing.T, res *http.Response) string {
	t.Helper()
	z, err := gzip.NewReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, z)
}

func zipping(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(httpd.New(httpd.Config{Log: discard}).Wrap(handle))
	t.Cleanup(server.Close)
	return server.URL
}

// long is an answer that is worth compressing, of many pieces.
var long = strings.Repeat("the same again ", 20_000)

func written(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		z := httpd.NewZip(w, r, http.StatusTeapot)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
	}
}

func TestAnAnswerIsCompressedForWhoReadsThat(t *testing.T) {
	t.Parallel()
	url := zipping(t, written(long))
	for _, codings := range [][]string{{"gzip"}, {"br, GZIP"}, {"deflate", "gzip;q=0.5"}, {"gzip; q=1.0, *;q=0"}} {
		res := plainly(t, "GET", url, codings...)
		if res.Header.Get("Content-Encoding") != "gzip" || res.Header.Get("Vary") != "Accept-Encoding" || res.StatusCode != http.StatusTeapot {
			t.Errorf("%v: %d %v", codings, res.StatusCode, res.Header)
		} else if text := unzipped(t, res); text != long {
			t.Errorf("%v: %d bytes, want %d", codings, len(text), len(long))
		}
	}
	for _, codings := range [][]string{nil, {"identity"}, {"br"}, {"gzip;q=0"}, {"gzip;q=much"}, {"gzip;level=9"}, {"x-gzipped"}} {
		res := plainly(t, "GET", url, codings...)
		if text := read(t, res.Body); text != long || res.Header.Get("Content-Encoding") != "" || res.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%v: %d bytes, %v", codings, len(text), res.Header)
		}
	}
	res := plainly(t, "HEAD", url, "gzip")
	if text := read(t, res.Body); text != "" || res.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("HEAD: %d bytes, %v", len(text), res.Header)
	}
}

func TestAShortAnswerIsNotCompressed(t *testing.T) {
	t.Parallel()
	for length, coding := range map[int]string{0: "", 8191: "", 8192: "gzip"} {
		res := plainly(t, "GET", zipping(t, written(long[:length])), "gzip")
		if res.StatusCode != http.StatusTeapot || res.Header.Get("Content-Encoding") != coding {
			t.Errorf("%d bytes: %d %v", length, res.StatusCode, res.Header)
		}
	}
}

// Who can have an answer made once more learns nothing by one of its length.
func TestTheLengthOfACompressedAnswerVaries(t *testing.T) {
	t.Parallel()
	url := zipping(t, written(long))
	lengths := map[int]bool{}
	for range 30 {
		lengths[len(read(t, plainly(t, "GET", url, "gzip").Body))] = true
	}
	if len(lengths) < 5 {
		t.Errorf("the lengths are %v", lengths)
	}
}

// What is compressed takes memory until its reader has it: readers that are slow do not take more and more of it.
func TestAnswersBeyondABoundGoAsTheyAre(t *testing.T) {
	t.Parallel()
	const places = 32
	var begun sync.WaitGroup
	begun.Add(places)
	on := make(chan struct{})
	url := zipping(t, func(w http.ResponseWriter, r *http.Request) {
		z := httpd.NewZip(w, r, http.StatusOK)
		_, _ = io.WriteString(z, long)
		if r.URL.Path == "/slow" {
			begun.Done()
			<-on
		}
		_ = z.Close()
	})
	var slow sync.WaitGroup
	for range places {
		slow.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/slow", nil)
			if err != nil {
				t.Error(err)
				return
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if text, err := io.ReadAll(res.Body); err != nil || string(text) != long {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
	begun.Wait()
	if res := plainly(t, "GET", url, "gzip"); res.Header.Get("Content-Encoding") != "" || read(t, res.Body) != long {
		t.Errorf("one too many: %v", res.Header)
	}
	close(on)
	slow.Wait()
	if res := plainly(t, "GET", url, "gzip"); res.Header.Get("Content-Encoding") != "gzip" || unzipped(t, res) != long {
		t.Errorf("afterwards: %v", res.Header)
	}
}
