package rest_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"mime/multipart"
	"net/textproto"
	"reflect"
	"strconv"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
)

// A form with files is read in its parts, each of which can be had to the byte.
func TestThePartsOfAFormAreListedAndDownloaded(t *testing.T) {
	contents := []string{"two\r\nlines", "\x89PNG\r\n\x00\xff", `<script>alert(1)</script>`, ""}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for i, head := range []textproto.MIMEHeader{
		{"Content-Disposition": {`form-data; name="title"`}},
		{"Content-Disposition": {`form-data; name="file"; filename="../a/cat.png"`}, "Content-Type": {"image/png"}},
		{"Content-Disposition": {`form-data; name="page"; filename="x.html"`}, "Content-Type": {"text/html"}},
		{"Content-Disposition": {`form-data; name="odd"`}, "Content-Type": {"no type"}},
	} {
		part, err := w.CreatePart(head)
		if err != nil {
			t.Fatal(err)
		}
		part.Write([]byte(contents[i]))
	}
	w.Close()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(form.Bytes())
	z.Close()
	hash := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }

	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		cutOff := packed.Bytes()[:packed.Len()-4] // its sum is missing
		for coding, body := range map[string][]byte{"": form.Bytes(), "gzip": packed.Bytes(), "x-gzip": cutOff} {
			id := s.arrive(e.ID, func(a *capture.Arrival) {
				a.Body, a.Headers = body, hookglass.Headers{{Name: "Content-Type", Value: w.FormDataContentType()}}
				if coding != "" {
					a.Headers = append(a.Headers, hookglass.Header{Name: "Content-Encoding", Value: coding})
				}
			})
			base := "/endpoints/" + e.ID + "/requests/" + id
			var detail api.One[api.EventDetail]
			s.want(200, "GET", base, "", &detail)
			want := []api.BodyPart{
				{Index: 0, Name: "title", Size: 10, SHA256: hash(contents[0])},
				{Index: 1, Name: "file", Filename: "cat.png", ContentType: "image/png", Size: 8, SHA256: hash(contents[1])},
				{Index: 2, Name: "page", Filename: "x.html", ContentType: "text/html", Size: 25, SHA256: hash(contents[2])},
				{Index: 3, Name: "odd", ContentType: "no type", SHA256: hash("")},
			}
			if !reflect.DeepEqual(detail.Data.BodyParts, want) {
				t.Errorf("%q: %+v", coding, detail.Data.BodyParts)
			}
			for i, what := range []struct{ media, file string }{
				{"application/octet-stream", "part-0"}, {"image/png", "cat.png"}, {"text/html", "x.html"}, {"application/octet-stream", "part-3"},
			} {
				res, got := s.call(s.token, "GET", base+"/parts/"+strconv.Itoa(i), "")
				h := res.Header
				if res.StatusCode != 200 || got != contents[i] || h.Get("Content-Type") != what.media || h.Get("Content-Disposition") != "attachment; filename="+what.file ||
					h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
					t.Errorf("%q, part %d: %d %q %v", coding, i, res.StatusCode, got, h)
				}
			}
			for _, index := range []string{"4", "-1", "99999999999999999999", "x", "0x0"} {
				s.want(404, "GET", base+"/parts/"+index, "", nil)
			}
		}
		latin := s.arrive(e.ID, func(a *capture.Arrival) {
			a.Headers = hookglass.Headers{{Name: "Content-Type", Value: "multipart/form-data; boundary=x"}}
			a.Body = []byte("--x\r\nContent-Disposition: form-data; name=f; filename=\"C:\\\xfc.txt\"\r\n\r\nv\r\n--x--\r\n")
		})
		if res, _ := s.call(s.token, "GET", "/endpoints/"+e.ID+"/requests/"+latin+"/parts/0", ""); res.Header.Get("Content-Disposition") != "attachment; filename*=utf-8''%C3%BC.txt" {
			t.Errorf("a name in Latin-1 is %s", res.Header.Get("Content-Disposition"))
		}
		plain := s.arrive(e.ID, nil)
		s.want(404, "GET", "/endpoints/"+e.ID+"/requests/"+plain+"/parts/0", "", nil)
		var detail struct{ Data map[string]any }
		s.want(200, "GET", "/endpoints/"+e.ID+"/requests/"+plain, "", &detail)
		if parts, there := detail.Data["body_parts"]; there {
			t.Errorf("a body that is no multipart has parts: %v", parts)
		}
		s.mailbox("inbox")
		s.want(404, "GET", "/endpoints/inbox/requests/"+s.deliver("inbox", welcome)+"/parts/0", "", nil)
	})
}
