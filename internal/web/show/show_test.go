package show_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"hookglass/internal/web/show"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 999: "999 B", 1000: "1.0 KB", 1500: "1.5 KB", 999_949: "999.9 KB", 999_950: "1.0 MB", 26_214_400: "26.2 MB", 5_000_000_000: "5.0 GB",
		9_000_000_000_000: "9000.0 GB",
	} {
		if got := show.Bytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestCounts(t *testing.T) {
	for n, want := range map[int64]string{0: "0 requests", 1: "1 request", 999: "999 requests", 1000: "1,000 requests", 1234567: "1,234,567 requests"} {
		if got := show.Plural(n, "request"); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if got := show.Count(-123456); got != "-123,456" {
		t.Errorf("got %q", got)
	}
}

func TestAges(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]string{
		-time.Hour: "just now", 0: "just now", 5*time.Second - 1: "just now", 5 * time.Second: "5s ago", time.Minute - 1: "59s ago", time.Minute: "1m ago",
		time.Hour - 1: "59m ago", time.Hour: "1h ago", 24*time.Hour - 1: "23h ago", 24 * time.Hour: "1d ago", 1000 * time.Hour: "41d ago",
	} {
		if got := show.Ago(now.Add(-age), now); got != want {
			t.Errorf("%v is %q, want %q", age, got, want)
		}
	}
}

func TestForeignTextHidesNothing(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                 "plain",
		"two\nlines\tand a tab": "two\nlines\tand a tab",
		"<b>&amp;":              "<b>&amp;", // markup is the template's business
		"ein Käfer 🐞":           "ein Käfer 🐞",
		"\x00\x1b[2J\x7f":       "␀␛[2J␡",
		"a\xff\xfeb":            `a\xff\xfeb`,
		"\u202egpj.exe":         "⟨U+202E⟩gpj.exe",
		"\u0085\u2028\ufeff":    "⟨U+0085⟩⟨U+2028⟩⟨U+FEFF⟩",
	} {
		if got := show.Text(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	if got := show.Line("a\r\nb\tc"); got != "a␍␊b␉c" {
		t.Errorf("one line is %q", got)
	}
}

func TestCutsEndWithACharacter(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
		cut  bool
	}{
		{"abcdefgh", 8, "abcdefgh", false}, {"abcdefghi", 8, "abcdefgh", true}, {"abcdefgé", 8, "abcdefg", true}, {"abcde🐞", 8, "abcde", true}, {"abcd🐞", 8, "abcd🐞", false},
	} {
		if got, cut := show.Cut(c.in, c.n); got != c.want || cut != c.cut {
			t.Errorf("%q to %d is %q, %v", c.in, c.n, got, cut)
		}
	}
}

func TestProvidersAreWrittenAsTheyWriteThemselves(t *testing.T) {
	for id, want := range map[string]string{"": "", "unknown": "", "github": "GitHub", "stripe": "Stripe", "generic_hmac": "Generic hmac"} {
		if got := show.Provider(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"plain", "\x00\x1b\xff", "\u202e\u2066", "🐞\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		shown := show.Line(s)
		if !utf8.ValidString(shown) {
			t.Errorf("%q is shown as what is no text: %q", s, shown)
		}
		if at := strings.IndexFunc(shown, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }); at >= 0 {
			t.Errorf("%q is shown with a control character: %q", s, shown)
		}
	})
}

func TestFieldsAreNamedInWords(t *testing.T) {
	for wire, want := range map[string]string{"target_url": "target URL", "overrides.method": "method", "url": "URL", "timeout_seconds": "timeout seconds", "q": "search"} {
		if got := show.Field(wire); got != want {
			t.Errorf("%s is called %q, want %q", wire, got, want)
		}
	}
}
