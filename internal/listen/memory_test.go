package listen_test

import (
	"strconv"
	"testing"

	"hookglass/internal/listen"
)

// An event that was left for later need not be the last that was seen by then: others came while it waited.
func TestAForgottenEventLeavesNoTraceAmongOthers(t *testing.T) {
	m := listen.NewMemory(2)
	m.See("a")
	m.See("b")
	m.Forget("a")
	for i := range 4 {
		if id := strconv.Itoa(i); !m.See(id) || m.See(id) {
			t.Errorf("%s was not new, or is not known", id)
		}
	}
	m.See("c")
	m.See("d")
	m.Forget("c")
	m.See("c")
	m.See("e")
	if m.See("c") {
		t.Error("an event that came again was dropped in the place of its first time")
	}
}
