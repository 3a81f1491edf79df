package cli_test

import (
	"strings"
	"testing"
)

func TestTheManualPageTellsOfEveryCommandAndFlag(t *testing.T) {
	r := run(t, "", "__man")
	if r.code != 0 || !strings.HasPrefix(r.out, ".TH HOOKGLASS 1 ") {
		t.Fatalf("%d %.100s", r.code, r.out)
	}
	for _, want := range []string{"hookglass serve", `hookglass admin token create`, `\-\-acme\-domain`, "$HOOKGLASS_DATABASE_URL", "hookglass listen"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("it does not tell of %s", want)
		}
	}
	// Flags that all commands of a group take stand with the group.
	_, group, _ := strings.Cut(r.out, ".SS hookglass targets command\n")
	group, _, _ = strings.Cut(group, ".SS ")
	for _, want := range []string{`\-\-server=URL`, `\-e, \-\-endpoint=EP`, "$HOOKGLASS_ENDPOINT", `\-\-json`} {
		if !strings.Contains(group, want) {
			t.Errorf("of hookglass targets it does not tell of %s:\n%s", want, group)
		}
	}
	// The words of a command and its examples stand there as in its help.
	_, command, _ := strings.Cut(r.out, ".SS hookglass share create <event>\n")
	command, _, _ = strings.Cut(command, ".SS ")
	for _, want := range []string{"\n.I <event>\nThe event's id, latest, or latest and an event type.", "\n.nf\n  hookglass share create latest \\-e ep_"} {
		if !strings.Contains(command, want) {
			t.Errorf("of hookglass share create it does not tell %q:\n%s", want, command)
		}
	}
	for i, line := range strings.Split(r.out, "\n") {
		if strings.HasPrefix(line, "'") || strings.Contains(line, "__") {
			t.Errorf("line %d: %s", i+1, line)
		}
	}
}
