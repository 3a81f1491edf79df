package cli_test

import (
	"strings"
	"testing"
	"time"
)

// Where one endpoint is all that somebody works with, a variable names it for every command. Some commands take it as a
// word too.
func TestAVariableNamesTheEndpoint(t *testing.T) {
	endpoint, _ := listening(t)
	for _, args := range [][]string{{"requests", "list"}, {"ledger"}, {"retries"}, {"schemas"}, {"targets", "list"}, {"cases", "list"}, {"metrics"}, {"trigger", "github.push"}} {
		if r := run(t, "", args...); r.code != 2 || !strings.Contains(r.err, "endpoint") {
			t.Errorf("%v of no endpoint: %+v", args, r)
		}
	}
	fails(t, 2, "hookglass endpoints list", "requests", "list")
	object(t, "", "trigger", "github.push", "-e", endpoint)
	object(t, "", "trigger", "push", "-e", endpoint) // an event that one provider has names it
	object(t, "", "trigger", "orders/create", "-e", endpoint)
	fails(t, 1, "no sample", "trigger", "nonsense.paid", "-e", endpoint)
	for _, args := range [][]string{{"ledger", "-e", endpoint}, {"ledger", endpoint}, {"retries", "-e", endpoint}, {"schemas", "-e", endpoint}, {"schemas", "-e", endpoint, "push"}, {"schemas", endpoint, "push"}} {
		object(t, "", args...)
	}
	fails(t, 2, "named twice", "ledger", endpoint, "-e", "another")
	fails(t, 2, "named twice", "schemas", endpoint, "push", "-e", "another")
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	for _, args := range [][]string{{"requests", "list"}, {"ledger"}, {"retries"}, {"schemas"}, {"targets", "list"}, {"cases", "list"}, {"metrics"}, {"trigger", "github.push"}} {
		object(t, "", args...)
	}
	fails(t, 1, "no such endpoint", "requests", "list", "-e", "another")
	fails(t, 1, "no such endpoint. \"hookglass endpoints list\" shows those there are. HOOKGLASS_ENDPOINT is "+endpoint+".\n", "ledger", "another")
	// How soon the server answers is not what is asked here: the time is doubled until it does.
	timeout := 10 * time.Millisecond
	r := run(t, "", "listen", "--exit-after", "1", "--timeout", timeout.String())
	for ; !strings.Contains(r.err, endpoint) && timeout < time.Minute; timeout *= 2 {
		r = run(t, "", "listen", "--exit-after", "1", "--timeout", (2 * timeout).String())
	}
	if !strings.Contains(r.err, endpoint) {
		t.Errorf("listen: %+v", r)
	}
}
