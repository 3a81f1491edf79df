package hookglass_test

import (
	"testing"

	"hookglass"
)

func TestABeginningEndsWithACharacter(t *testing.T) {
	for n, want := range []string{"", "a", "a", "aé", "aé", "aé", "aé", "aé😀", "aé😀"} {
		if got := hookglass.Beginning("aé😀", n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
	if got := hookglass.Beginning("\x80\x80\x80", 2); got != "" {
		t.Errorf("of what is no character: %q", got)
	}
}
