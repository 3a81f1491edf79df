package cli_test

import (
	"strings"
	"testing"
)

func TestEventsAreTaggedAndIgnored(t *testing.T) {
	endpoint, _ := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	fails(t, 1, "nothing came", "requests", "tag", "latest", "seen")
	object(t, "", "trigger", "github.push")
	event := member(t, object(t, "", "requests", "get", "latest"), "data", "id").(string)

	if r := run(t, "", "requests", "tag", "latest", "seen", "needs care"); r.code != 0 || r.out != "Tags of "+event+": needs care, seen\n" {
		t.Errorf("tag: %+v", r)
	}
	if got := member(t, object(t, "", "requests", "untag", event, "seen"), "data", "tags").([]any); len(got) != 1 || got[0] != "needs care" {
		t.Errorf("untag: %v", got)
	}
	if r := run(t, "", "requests", "untag", "latest push", "needs care"); r.code != 0 || !strings.HasSuffix(r.out, ": none\n") {
		t.Errorf("untag: %+v", r)
	}
	fails(t, 2, "<tag>", "requests", "tag", event)
	fails(t, 1, "no such request", "requests", "tag", "req_none", "seen")
	fails(t, 1, "Tags of "+event+": first\nhookglass: \""+strings.Repeat("a", 65)+"\": ", "requests", "tag", event, "first", strings.Repeat("a", 65), "last")
	fails(t, 1, "hookglass: \"\": ", "requests", "untag", event, "", "first")
	object(t, "", "requests", "untag", event, "first")

	if r := run(t, "", "requests", "note", "latest", "Ask Bob:\nwhy?\u202e"); r.code != 0 || r.out != "Noted on "+event+".\n" {
		t.Errorf("note: %+v", r)
	}
	if r := run(t, "", "requests", "get", event); !strings.Contains(r.out, "\nNote: Ask Bob:\n      why?") || strings.Contains(r.out, "\u202e") {
		t.Errorf("the note is shown as\n%s", r.out)
	}
	fails(t, 1, "must have 2000 characters at most", "requests", "note", event, strings.Repeat("a", 2001))
	fails(t, 2, "<text>", "requests", "note", event)
	if r := run(t, "", "requests", "note", event, ""); r.code != 0 || r.out != "No note on "+event+".\n" {
		t.Errorf("note: %+v", r)
	}
	if got := object(t, "", "requests", "get", event); member(t, got, "data", "note") != nil {
		t.Errorf("it is %v", got)
	}

	if r := run(t, "", "requests", "ignore", "latest", "--reason", "test"); r.code != 0 || r.out != "Ignored "+event+".\n" {
		t.Errorf("ignore: %+v", r)
	}
	if got := object(t, "", "requests", "get", event); member(t, got, "data", "ignored") != true || member(t, got, "data", "ignored_reason") != "test" {
		t.Errorf("it is %v", got)
	}
	if r := run(t, "", "requests", "list"); strings.Contains(r.out, event) {
		t.Errorf("it is listed:\n%s", r.out)
	}
	fails(t, 2, "--reason", "requests", "ignore", event, "--reason", "dull")
	if r := run(t, "", "requests", "unignore", event); r.code != 0 || r.out != "Shown again: "+event+".\n" {
		t.Errorf("unignore: %+v", r)
	}
	if r := run(t, "", "requests", "list"); !strings.Contains(r.out, event) {
		t.Errorf("it is not listed:\n%s", r.out)
	}
}

// What "ignore latest" hides is not the latest of those that are shown.
func TestTheLatestIgnoredEventIsShownAgain(t *testing.T) {
	endpoint, hook := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	send(t, hook, "text/plain", "older")
	fails(t, 1, "nothing is ignored\n", "requests", "unignore", "latest")
	fails(t, 1, "nothing is ignored\n", "requests", "unignore", "latest ")
	send(t, hook, "text/plain", "newer")
	ignored := run(t, "", "requests", "ignore", "latest")
	fails(t, 1, "nothing is ignored of the type push", "requests", "unignore", "latest push")
	if r := run(t, "", "requests", "unignore", "latest"); r.code != 0 || strings.Replace(r.out, "Shown again:", "Ignored", 1) != ignored.out {
		t.Errorf("%+v, after %+v", r, ignored)
	}
	if got := member(t, object(t, "", "requests", "get", "latest"), "data", "body"); got != "newer" {
		t.Errorf("the latest is %v", got)
	}
}
