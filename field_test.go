package hookglass_test

import (
	"testing"

	"hookglass"
)

func TestTokensAndFieldValues(t *testing.T) {
	for b := range 256 {
		c := string([]byte{byte(b)})
		digit, letter := '0' <= b && b <= '9', 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
		mark := false
		for _, m := range "!#$%&'*+-.^_`|~" { // RFC 9110, section 5.6.2
			mark = mark || rune(b) == m
		}
		if got := hookglass.IsToken("x" + c); got != (digit || letter || mark) {
			t.Errorf("a token with the byte %d: %t", b, got)
		}
		if got := hookglass.IsFieldValue("x" + c); got != (b == '\t' || b >= ' ' && b != 0x7f) {
			t.Errorf("a value with the byte %d: %t", b, got)
		}
	}
	if hookglass.IsToken("") || !hookglass.IsFieldValue("") {
		t.Error("a name has a character, and a value may have none")
	}
}
