package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/share"
)

func TestWhatIsReadSlowlyTakesRoom(t *testing.T) {
	s := newSite(t)
	media := hookglass.Header{Name: "Content-Type", Value: "multipart/form-data; boundary=xyz"}
	part := "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n" + strings.Repeat("x", 20<<20) + "\r\n--xyz--\r\n"
	id := string(s.hook(sent{body: part, headers: hookglass.Headers{media}}))
	b := s.signedIn()
	const moment = 100 * time.Millisecond // in which the room of the look before is given back
	// room reports whether there is room for all but a few bytes.
	room := func(limit time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
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
		began, without := time.Now(), 0 // looks in a row: the room of the look before one may not have been given back yet
		for without < 2 && time.Since(began) < patience {
			if without++; room(moment) {
				without = 0
			}
		}
		if without < 2 {
			t.Errorf("%s takes no room while it is not read", path)
		}
		res.Body.Close()
		if !room(patience) {
			t.Errorf("%s has its room when its reader is gone", path)
		}
	}
	// A page is made of the beginning of a body, and takes no more.
	for _, path := range []string{"/requests/" + id, "/requests/" + id + "/row", "/compare?left=" + id + "&right=" + id} {
		b.want(200, "GET", s.page(path), nil)
		if !room(patience) {
			t.Errorf("%s has its room when it was answered", path)
		}
	}
}

// What shows a large request, or what would be made of it, waits for room; what only names it waits for nobody.
func TestPagesWaitForRoom(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	id := string(s.hook(sent{body: `{"x":"` + strings.Repeat("x", 1<<20) + `"}`}))
	shares := share.New(s.db, s.endpoints, s.captures)
	secret, _, err := shares.Create(t.Context(), s.who, string(s.endpoint.ID), id, share.DefaultLife)
	if err != nil {
		t.Fatal(err)
	}
	all, leave := context.WithCancel(t.Context())
	if err := s.captures.RoomFor(all, hookglass.System, 256<<20); err != nil {
		t.Fatal(err)
	}
	preview := url.Values{"do": {"preview"}, "status": {"200"}, "body": {"{{request.body}}"}}
	readers := []struct {
		method, address string
		form            url.Values
	}{
		{"GET", s.page("/requests/" + id), nil},
		{"GET", s.url + "/shared/" + secret, nil},
		{"POST", s.page("/response"), preview},
	}
	for _, r := range readers {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		req, err := http.NewRequestWithContext(ctx, r.method, r.address, strings.NewReader(r.form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", s.url)
		if res, err := b.http.Do(req); err == nil {
			t.Errorf("%s %s is answered %d while there is no room", r.method, r.address, res.StatusCode)
			res.Body.Close()
		}
		cancel()
	}
	b.want(200, "GET", s.page("/cases/new?event="+id), nil)
	b.want(200, "GET", s.page("/requests/"+id+"/share"), nil)
	leave()
	for _, r := range readers {
		b.want(200, r.method, r.address, r.form)
	}
}
