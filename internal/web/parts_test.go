package web_test

import (
	"bytes"
	"compress/gzip"
	"mime"
	"strings"
	"testing"

	"hookglass"
)

func TestEachPartOfAFormIsDownloadedByteForByte(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	page := "\r\n<script>alert(document.domain)</script>\x00\xff\r\n--not the boundary\r\n"
	parts := []struct{ head, name, content string }{
		{`Content-Disposition: form-data; name="note"`, "part", "café\n"},
		{"Content-Disposition: form-data; name=\"file\"; filename=\"../a;b\\\"é.html\"\r\nContent-Type: text/html", `a;b"é.html`, page},
		{"Content-Disposition: form-data; name=\"empty\"; filename=\"empty.svg\"\r\nContent-Type: image/svg+xml", "empty.svg", ""},
		{"Content-Disposition: form-data; name=\"coded\"\r\nContent-Transfer-Encoding: quoted-printable", "part", "as=20sent"},
	}
	var form strings.Builder
	for _, p := range parts {
		form.WriteString("--xyz\r\n" + p.head + "\r\n\r\n" + p.content + "\r\n")
	}
	form.WriteString("--xyz--\r\n")
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(form.String()))
	_ = w.Close()

	media := hookglass.Header{Name: "Content-Type", Value: "multipart/form-data; boundary=xyz"}
	for _, r := range []sent{
		{body: form.String(), headers: hookglass.Headers{media}},
		{body: packed.String(), headers: hookglass.Headers{media, {Name: "Content-Encoding", Value: "gzip"}}},
	} {
		below := "/requests/" + string(s.hook(r))
		shown := b.want(200, "GET", s.page(below), nil)
		for i, p := range parts {
			address := below + "/parts/" + string(rune('0'+i))
			shown.holds(t, `href="`+strings.TrimPrefix(s.page(address), s.url)+`" download`)
			a := b.want(200, "GET", s.page(address), nil)
			if a.body != p.content {
				t.Errorf("part %d is %q, sent was %q", i, a.body, p.content)
			}
			kind, params, err := mime.ParseMediaType(a.Header.Get("Content-Disposition"))
			if err != nil || kind != "attachment" || params["filename"] != p.name {
				t.Errorf("part %d: %s, %v", i, a.Header.Get("Content-Disposition"), err)
			}
			for name, want := range map[string]string{
				"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
			} {
				if got := a.Header.Get(name); got != want {
					t.Errorf("part %d: %s is %q, want %q", i, name, got, want)
				}
			}
		}
		for _, none := range []string{"4", "-1", "x", "99999999999999999999"} {
			b.want(404, "GET", s.page(below+"/parts/"+none), nil)
		}
	}
	plain := s.hook(json(`{}`))
	b.want(404, "GET", s.page("/requests/"+string(plain)+"/parts/0"), nil)
}
