package cli_test

import (
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
	for _, since := range []string{"-1h", "soon", time.Now().Add(time.Hour).Format(time.RFC3339)} {
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
