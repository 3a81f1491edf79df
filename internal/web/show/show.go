// Package show formats values for people: sizes, ages, and text that strangers wrote. All functions are pure.
package show

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hookglass"
)

// Bytes formats a size: 512 B, 1.5 KB, 26.2 MB. A kilobyte has 1,000 bytes.
func Bytes(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	size := float64(n)
	for _, unit := range []string{"KB", "MB", "GB"} {
		size /= 1000
		if size < 999.95 || unit == "GB" {
			return strconv.FormatFloat(size, 'f', 1, 64) + " " + unit
		}
	}
	return ""
}

// Count formats a number with thousands separators: 1,234,567.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Plural formats a number with its noun: 1 request, 2 requests.
func Plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Ago formats an age in one unit, as in "5m ago". layout.js updates it in the same words.
func Ago(t, now time.Time) string {
	switch age := now.Sub(t); {
	case age < 5*time.Second:
		return "just now"
	case age < time.Minute:
		return fmt.Sprintf("%ds ago", int(age.Seconds()))
	case age < time.Hour:
		return fmt.Sprintf("%dm ago", int(age.Minutes()))
	case age < 24*time.Hour:
		return fmt.Sprintf("%dh ago", int(age.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(age.Hours()/24))
	}
}

// Time formats a time to the millisecond for people. It is always UTC, so that two people see the same.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

// Machine formats a time for the datetime attribute.
func Machine(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Text makes foreign text safe to show. Bytes that are not text, and characters that would hide or reorder their
// neighbours, are escaped. Line breaks and tabs stay.
func Text(s string) string {
	if !strings.ContainsFunc(s, odd) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			fmt.Fprintf(&b, "\\x%02x", s[i])
		case !odd(r):
			b.WriteString(s[i : i+size])
		case r < ' ':
			b.WriteRune(0x2400 + r) // Unicode has a symbol for each control character
		case r == 0x7f:
			b.WriteRune('␡')
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
		i += size
	}
	return b.String()
}

// Line is like Text for a single line: line breaks and tabs become symbols too.
func Line(s string) string {
	return strings.NewReplacer("\n", "␊", "\r", "␍", "\t", "␉").Replace(Text(s))
}

// Copied returns foreign text for the clipboard. It is unchanged, except that a page can only hold UTF-8.
func Copied(s string) string { return hookglass.Readable(s) }

// odd reports whether Text escapes a character.
func odd(r rune) bool {
	switch {
	case r == '\n', r == '\r', r == '\t':
		return false
	case r == utf8.RuneError:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0xFEFF || r == 0x2028 || r == 0x2029
}

// Cut shortens text to at most n bytes at a character boundary, and reports whether it did.
func Cut(s string, n int) (string, bool) {
	short := hookglass.Beginning(s, n)
	return short, len(short) < len(s)
}

// Short shortens text as [Cut] does, and marks what it shortened.
func Short(s string, n int) string {
	s, cut := Cut(s, n)
	if cut {
		s += "…"
	}
	return s
}

// Took formats how long something took: 1.2 ms, 340 ms, 12.5 s. It is empty if that is not known.
func Took(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < 10*time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// ChannelKind returns the name of a kind of notification channel.
func ChannelKind(k hookglass.ChannelKind) string {
	switch k {
	case hookglass.ChannelSlack:
		return "Slack"
	case hookglass.ChannelDiscord:
		return "Discord"
	case hookglass.ChannelTeams:
		return "Microsoft Teams"
	case hookglass.ChannelTelegram:
		return "Telegram"
	case hookglass.ChannelEmail:
		return "Email"
	}
	return "Webhook"
}

// StepType returns the name of a type of step.
func StepType(t hookglass.StepType) string {
	switch t {
	case hookglass.StepForward:
		return "Forward"
	case hookglass.StepRequest:
		return "HTTP Request"
	case hookglass.StepTransform:
		return "Transform"
	case hookglass.StepNotify:
		return "Notify"
	case hookglass.StepTag:
		return "Tag"
	case hookglass.StepIgnore:
		return "Ignore"
	}
	return string(t)
}

// Provider returns the name of a provider in its own spelling, or one derived from the id.
func Provider(id string) string {
	switch id {
	case "", hookglass.UnknownProvider:
		return ""
	case "github":
		return "GitHub"
	case "gitlab":
		return "GitLab"
	case "paypal":
		return "PayPal"
	case "sendgrid":
		return "SendGrid"
	case "hubspot":
		return "HubSpot"
	}
	return strings.ToUpper(id[:1]) + strings.ReplaceAll(id[1:], "_", " ")
}

// Span tells a time in whole days, hours or minutes, if it is one.
func Span(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return Plural(int64(d/(24*time.Hour)), "day")
	case d%time.Hour == 0:
		return Plural(int64(d/time.Hour), "hour")
	case d%time.Minute == 0:
		return Plural(int64(d/time.Minute), "minute")
	}
	return d.String()
}

// Fault describes a fault of a field that has no special name on its page.
func Fault(wire, message string) string { return "The " + Field(wire) + " " + message + "." }

// Field names a field that has no special name on its page: the last part of its API name, in words.
func Field(wire string) string {
	last := wire[strings.LastIndexByte(wire, '.')+1:]
	switch last {
	case "q":
		return "search"
	case "when":
		return "condition"
	case "dedupe_by":
		return "way to tell duplicates"
	case "dedupe_seconds":
		return "window for duplicates"
	case "set":
		return "list of values"
	}
	words := strings.Split(last, "_")
	for i, word := range words {
		if word == "url" {
			words[i] = "URL"
		}
	}
	return strings.Join(words, " ")
}
