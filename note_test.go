package hookglass_test

import (
	"strings"
	"testing"

	"hookglass"
)

func TestNotesAreTextOfABoundedLength(t *testing.T) {
	for written, want := range map[string]string{
		"":                               "",
		" \r\n\t ":                       "",
		"  see the log \n":               "see the log",
		"one\r\ntwo\rthree\n\tfour":      "one\ntwo\nthree\n\tfour",
		strings.Repeat("é", 2000):        strings.Repeat("é", 2000),
		strings.Repeat("a", 2000) + "\n": strings.Repeat("a", 2000),
	} {
		if got, err := hookglass.Note(written); err != nil || got != want {
			t.Errorf("%.40q: %.40q, %v; want %.40q", written, got, err, want)
		}
	}
	for written, want := range map[string]string{
		strings.Repeat("é", 2001): "must have 2000 characters at most",
		"a\x00b":                  "must be text",
		"a\x1b[31mb":              "must be text",
		"a\u0085b":                "must be text",
		"a\xff":                   "must be text",
	} {
		if _, err := hookglass.Note(written); !hookglass.Is(err, hookglass.CodeValidationFailed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v; want %q", written, err, want)
		}
	}
}
