package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestWaitingForAMailGivesItsLinkOrCode(t *testing.T) {
	_, hook := listening(t)
	inbox := member(t, object(t, "", "endpoints", "create", "Inbox", "--kind", "email"), "data", "id").(string)
	t.Setenv("HOOKGLASS_ENDPOINT", inbox)
	mail := func(subject, text string) {
		t.Helper()
		send(t, strings.Split(hook, "/hooks/")[0]+"/mail/"+inbox, "message/rfc822", "From: shop@example.com\r\nSubject: "+subject+"\r\n\r\n"+text+"\r\n")
	}
	// What does not come ends with a code of its own, and says how what is there already counts.
	fails(t, 4, "--since", "requests", "wait", "--timeout", "10ms")

	mail("Reset", "Go to https://shop.example.com/help or https://shop.example.com/reset?t=1, or type the code 482913")
	mail("Welcome", "Hello")
	if r := run(t, "", "requests", "wait", "--since", "1h", "--link", "/reset"); r.code != 0 || r.out != "https://shop.example.com/reset?t=1\n" {
		t.Errorf("%+v", r)
	}
	for _, since := range []string{"1h30m", "2w", time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly), time.Now().Add(-time.Hour).Format(time.RFC3339)} {
		if got := member(t, object(t, "", "requests", "wait", "--since", since), "data", "subject"); got != "Welcome" {
			t.Errorf("since %s came %v", since, got)
		}
	}
	for _, since := range []string{"-1h", "soon", time.Now().AddDate(0, 0, 2).Format(time.RFC3339)} {
		fails(t, 2, "counts back from now", "requests", "wait", "--since="+since)
	}
	if r := run(t, "", "requests", "wait", "--since", "1h", "--code"); r.code != 0 || r.out != "482913\n" {
		t.Errorf("%+v", r)
	}
	if got := member(t, object(t, "", "requests", "wait", "--since", "1h", "-q", "from:shop"), "data", "subject"); got != "Welcome" {
		t.Errorf("the newest is %v", got)
	}
	fails(t, 4, "within 10ms", "requests", "wait", "--since", "1h", "-q", "subject:invoice", "--timeout", "10ms")
	fails(t, 1, "no field", "requests", "wait", "--since", "1m", "-q", "provder:x")
	fails(t, 1, "no such endpoint", "requests", "wait", "-e", "ep_none")
	fails(t, 2, "together", "requests", "wait", "--code", "--link", "x")
	fails(t, 2, "no JSON", "requests", "wait", "--code", "--json")
	fails(t, 2, "--timeout", "requests", "wait", "--timeout", "0s")

	// What comes while it waits, from whoever.
	done := make(chan result)
	go func() { done <- run(t, "", "requests", "wait", "-q", "subject:later", "--timeout", patience.String()) }()
	for {
		mail("later", "now")
		select {
		case r := <-done:
			if r.code != 0 || !strings.Contains(r.out, "Subject: later") {
				t.Errorf("%+v", r)
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// A value of an event is had alone, also one in the JSON that a field of a form holds.
func TestAValueOfAnEventIsHadAlone(t *testing.T) {
	endpoint, hook := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	send(t, hook, "application/json", `{"id":"a\u001bb\nc","n":1.50,"o":{"x":[1, 2]},"none":null}`)
	for pointer, want := range map[string]string{"/id": "a\x1bb\nc\n", "/n": "1.50\n", "/o": `{"x":[1,2]}` + "\n", "/none": "null\n"} {
		if r := run(t, "", "requests", "get", "latest", "--pointer", pointer); r.code != 0 || r.out != want {
			t.Errorf("%s: %+v, want %q", pointer, r, want)
		}
	}
	fails(t, 1, "no value at /o/y", "requests", "get", "latest", "--pointer", "/o/y")
	fails(t, 2, "begin with a slash", "requests", "get", "latest", "--pointer", "id")
	fails(t, 2, "no JSON", "requests", "get", "latest", "--pointer", "/id", "--json")
	fails(t, 2, "no JSON", "requests", "wait", "--pointer", "/id", "--json")
	send(t, hook, "application/x-www-form-urlencoded", "payload=%7B%22user%22%3A%7B%22id%22%3A%22U1%22%7D%7D")
	send(t, hook, "text/plain", "nothing")
	fails(t, 1, "no value at /id", "requests", "get", "latest", "--pointer", "/id")
	if r := run(t, "", "requests", "wait", "--since", "1h", "--pointer", "/payload/user/id"); r.code != 0 || r.out != "U1\n" {
		t.Errorf("%+v", r)
	}
}

// The clock of the machine that asks may be off: the server knows what "since" is by the times that it gave.
func TestTheClockOfTheServerSaysWhatSinceIs(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch q := r.URL.Query(); {
		case strings.HasSuffix(r.URL.Path, "/stream"):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(": here\n\n"))
			return
		case strings.HasSuffix(r.URL.Path, "/deliveries"):
			asked = q.Get("after")
		case strings.HasSuffix(r.URL.Path, "/requests"):
			asked = q.Get("q")
		default:
			_, _ = w.Write([]byte(`{"data":{"id":"ep_x"}}`))
			return
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"error":"validation_failed","message":"Enough."}`))
	}))
	defer server.Close()
	ask := func(args ...string) {
		t.Helper()
		asked = ""
		fails(t, 1, "Enough.", append(args, "-e", "ep_x", "--server", server.URL, "--token", "hg_x")...)
	}
	const then = "2026-01-02T03:04:05+02:00"
	for given, want := range map[string]string{then: then, "2w": "2w", "1h30m": "5400s", "500ms": "1s"} {
		if ask("targets", "deliveries", "1", "--since", given); asked != want {
			t.Errorf("deliveries since %s: asked %q", given, asked)
		}
		if ask("requests", "wait", "--since", given); asked != "after:"+want {
			t.Errorf("events since %s: asked %q", given, asked)
		}
	}
}
