package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hookglass/internal/ingest"
)

func mailTo(path, kind, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", path, kind, len(body), body)
}

func TestMailIsPosted(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	const message = "Subject: x\r\n\r\n\xff\x00"
	c.send(mailTo("/mail/"+mailRef, "message/rfc822", message))
	if a := c.want(200); a.body != `{"received":true,"id":"eml_1"}` {
		t.Errorf("answered %s", a.body)
	}
	if got := string(s.one(t).Body); got != message {
		t.Errorf("captured %q", got)
	}
}

func TestWhatIsNoMailIsRefused(t *testing.T) {
	sv := start(t, ingest.Config{MaxBodyBytes: 100}, new(stub), nil)
	for _, c := range []struct {
		path, kind, body string
		want             int
	}{
		{"/mail/" + mailRef, "text/plain", "x", 415},
		{"/mail/" + mailRef, "", "x", 415},
		{"/mail/" + mailRef, "application/json", "x", 400},
		{"/mail/" + mailRef, "multipart/form-data", "x", 422},
		{"/mail/" + mailRef, "message/rfc822", strings.Repeat("x", 101), 413},
		{"/mail/" + knownRef, "message/rfc822", "x", 404}, // an endpoint for webhooks
		{"/hooks/" + mailRef, "message/rfc822", "x", 404},
		{"/mail/" + mailRef + "/more", "message/rfc822", "x", 404},
		{"/mail/", "message/rfc822", "x", 404},
		{"/mail", "message/rfc822", "x", 404},
	} {
		conn := sv.dial()
		conn.send(mailTo(c.path, c.kind, c.body))
		conn.want(c.want)
	}
	if n := sv.stub.refusals(); n != 1 {
		t.Errorf("%d refusals for size", n)
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		conn := sv.dial()
		conn.send(method + " /mail/" + mailRef + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
		if a := conn.want(405); a.Header.Get("Allow") != http.MethodPost {
			t.Errorf("%s: Allow %q", method, a.Header.Get("Allow"))
		}
	}
	conn := sv.dial() // what only begins with the word belongs to others
	conn.send("GET /mailbox HTTP/1.1\r\nHost: x\r\n\r\n")
	conn.want(200)
}

func TestTheFallbackTakesMail(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send(mailTo("/%6dail/"+mailRef, "message/rfc822", "x"))
	c.want(200)
	if got := string(s.one(t).Body); got != "x" {
		t.Errorf("captured %q", got)
	}
}
