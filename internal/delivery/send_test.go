package delivery_test

import (
	"strings"
	"testing"

	"hookglass/internal/delivery"
	"hookglass/internal/provider"
)

func TestTheBeginningOfATextIsAText(t *testing.T) {
	for _, c := range []struct {
		body string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 2, "ab"}, {"abc", 3, "abc"}, {"é", 2, "é"}, {"é", 1, ""}, {"a€", 4, "a€"}, {"a€", 3, "a"}, {"a€", 2, "a"}, {"a€", 1, "a"},
		{"a\U0001f600", 4, "a"}, {"a\U0001f600", 5, "a\U0001f600"},
		{"\xffa\xe2\x82", 4, "\xffa\xe2\x82"}, {"a\x82\x82\x82\x82", 5, "a\x82\x82\x82\x82"}, {"a\xff", 2, "a\xff"}, // no text
	} {
		if got := delivery.Beginning([]byte(c.body), c.n); string(got) != c.want {
			t.Errorf("%d of %q: %q, want %q", c.n, c.body, got, c.want)
		}
	}
}

func TestASecretIsFoundInEveryFormOfJSON(t *testing.T) {
	secrets := delivery.Secrets([]provider.Config{{Secrets: []string{`p"<&>é😀\\`}}}, nil)
	for _, text := range []string{`p"<&>é😀\\`, `{"s":"p\"<&>é😀\\\\"}`, `{"s":"p\"\u003c\u0026\u003eé😀\\\\"}`, `{"s":"p\"<&>\u00e9\ud83d\ude00\\\\"}`} {
		if got := delivery.RedactSecrets(text, secrets); strings.Contains(got, "p") || !strings.Contains(got, "[redacted]") {
			t.Errorf("%s: %s", text, got)
		}
	}
	if plain := delivery.Secrets([]provider.Config{{Secrets: []string{"plain-secret"}}}, nil); len(plain) != 1 {
		t.Errorf("%q", plain)
	}
}
