package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"hookglass"
)

func TestWhatIsReadSlowlyTakesRoom(t *testing.T) {
	s := newSite(t)
	media := hookglass.Header{Name: "Content-Type", Value: "multipart/form-data; boundary=xyz"}
	part := "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n" + strings.Repeat("x", 20<<20) + "\r\n--xyz--\r\n"
	id := string(s.hook(sent{body: part, headers: hookglass.Headers{media}}))
	b := s.signedIn()
	const patience = 100 * time.Millisecond // in which the room of the look before is given back
	// room reports whether there is room for all but a few bytes.
	room := func(patience time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return s.captures.RoomFor(ctx, hookglass.System, 250<<20) == nil
	}
	for _, path := range []string{"/requests/" + id + "/body", "/requests/" + id + "/parts/0", "/export?format=ndjson", "/export?format=csv"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.page(path), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := b.http.Do(req)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %v %v", path, res, err)
		}
		began := time.Now()
		for room(patience) && time.Since(began) < 5*time.Second {
		}
		if room(patience) {
			t.Errorf("%s takes no room while it is not read", path)
		}
		res.Body.Close()
		if !room(20 * time.Second) {
			t.Errorf("%s has its room when its reader is gone", path)
		}
	}
	// A page is made of the beginning of a body, and takes no more.
	for _, path := range []string{"/requests/" + id, "/requests/" + id + "/row", "/compare?left=" + id + "&right=" + id} {
		b.want(200, "GET", s.page(path), nil)
		if !room(20 * time.Second) {
			t.Errorf("%s has its room when it was answered", path)
		}
	}
}
