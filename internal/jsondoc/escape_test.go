package jsondoc_test

import (
	"testing"

	"hookglass/internal/jsondoc"
)

func TestEscapeSequencesThatDoNotEnd(t *testing.T) {
	for part, want := range map[string]bool{
		``: false, `a`: false, `\\`: false, `\n`: false, `\"`: false, `u`: false, `u00`: false, `\\u00`: false,
		`\u00e9`: false, `\u00e90`: false, `\\\\`: false, `\uu`: false,
		`\`: true, `a\`: true, `\\\`: true, `\u`: true, `\u0`: true, `\u00E`: true, `\\\u00e`: true,
	} {
		if got := jsondoc.EndsInEscape(part); got != want {
			t.Errorf("%s: %t, want %t", part, got, want)
		}
	}
}
