package email_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass/internal/cputime"
	"hookglass/internal/email"
)

// bomb is a message of nested multiparts, none of them ended.
func bomb(levels int) []byte {
	var b bytes.Buffer
	b.WriteString("Subject: bomb\r\n")
	for i := range levels {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	b.WriteString("\r\ntext\r\n")
	return b.Bytes()
}

func TestNestingIsBounded(t *testing.T) {
	for levels, deep := range map[int]bool{1: false, 20: false, 21: true, 8000: true, 20000: true} {
		m := email.Parse(bomb(levels))
		if slices.Contains(m.Faults, email.TooDeep) != deep {
			t.Errorf("%d levels: %v", levels, m.Faults)
		}
		if !deep && m.Text != "text\n" {
			t.Errorf("%d levels: text %q", levels, m.Text)
		}
		if deep && (len(m.Attachments) != 1 || m.Attachments[0].ContentType != "multipart/mixed") {
			t.Errorf("%d levels: %+v", levels, m.Attachments)
		}
		holds(t, bomb(levels), m)
	}
}

func TestPartsAreBounded(t *testing.T) {
	for parts, many := range map[int]bool{200: false, 201: true, 1_000_000: true} {
		raw := []byte("Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\n\r\n", parts) + "--b--\r\n")
		m := email.Parse(raw)
		if slices.Contains(m.Faults, email.TooManyParts) != many {
			t.Errorf("%d parts: %v", parts, m.Faults)
		}
	}
	// The bound is of the message, not of each multipart.
	inner := nested("i", "mixed", slices.Repeat([]string{plain}, 50)...)
	m := email.Parse([]byte(multi("mixed", inner, inner, inner, inner, inner)))
	if got := strings.Count(m.Text, "text"); !slices.Contains(m.Faults, email.TooManyParts) || got < 100 || got > 200 {
		t.Errorf("%d parts, %v", got, m.Faults)
	}
}

func TestMessagesInMessagesAreNotOpened(t *testing.T) {
	raw := []byte("Content-Type: message/rfc822\r\n\r\n")
	raw = bytes.Repeat(raw, 1000)
	if m := email.Parse(raw); len(m.Attachments) != 1 || m.Attachments[0].ContentType != "message/rfc822" {
		t.Errorf("%+v", m.Attachments)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	for _, c := range []struct {
		name      string
		header    string
		truncated bool
	}{
		{"1,000 fields", strings.Repeat("X-A: 1\r\n", 999) + "Subject: s\r\n", false},
		{"1,001 fields", strings.Repeat("X-A: 1\r\n", 1000) + "Subject: s\r\n", true},
		{"10 MB of fields", strings.Repeat("X-A: "+strings.Repeat("x", 990)+"\r\n", 10_000), true},
		{"10 MB of one field", "X-A: " + strings.Repeat("x", 10<<20) + "\r\n", true},
		{"10 MB of folds", "X-A: x\r\n" + strings.Repeat(" x\r\n", 2<<20), true},
		{"a name of 300 KB", strings.Repeat("a", 300_000) + ": x\r\nSubject: s\r\n", true},
		{"a subject of 1 MB", "Subject: " + strings.Repeat("=?utf-8?q?=C3=A9?= ", 50_000) + "\r\n", true},
	} {
		raw := []byte(c.header + "\r\nthe body\r\n")
		m := email.Parse(raw)
		if slices.Contains(m.Faults, email.HeaderTruncated) != c.truncated || m.Text != "the body\n" {
			t.Errorf("%s: %v, text of %d bytes", c.name, m.Faults, len(m.Text))
		}
		holds(t, raw, m)
	}
}

func TestANameBeyondTheBoundOfAPartIsLeftOut(t *testing.T) {
	raw := []byte("Content-Type: multipart/mixed; boundary=q\r\n\r\n--q\r\n" + strings.Repeat("a", 40_000) + ": x\r\n\r\nhi\r\n--q--\r\n")
	if m := email.Parse(raw); m.Text != "hi" || !slices.Contains(m.Faults, email.HeaderTruncated) {
		t.Errorf("%v, text of %d bytes", m.Faults, len(m.Text))
	}
}

func TestAHeaderWithoutABodyIsBounded(t *testing.T) {
	if m := email.Parse([]byte("From: " + strings.Repeat("a,", 1<<20))); !slices.Contains(m.Faults, email.HeaderTruncated) {
		t.Errorf("%v, from of %d bytes", m.Faults, len(m.From))
	}
}

// Headers that are made to be read again and again cost no more than others of their size.
func TestTimeIsInProportion(t *testing.T) {
	parse := func(header string) func() {
		raw := []byte(header + "\r\n\r\n")
		return func() { email.Parse(raw) }
	}
	ordinary := parse("To: " + strings.Repeat("Ada <ada@example.com>, ", 10_000))
	for name, header := range map[string]string{
		"colons behind an address":     "To: " + strings.Repeat("a", 120_000) + "@" + strings.Repeat(":", 120_000),
		"colons behind quotes":         "To: \"" + strings.Repeat("a", 120_000) + "@\"" + strings.Repeat(":", 120_000),
		"words that do not end":        "Subject: " + strings.Repeat("=?utf-8?q?a", 20_000),
		"words of no charset":          "Subject: " + strings.Repeat("=?a b?q?a", 25_000) + "?=",
		"words of no encoding":         "Subject: " + strings.Repeat("=?utf-8?x?a", 20_000) + "?=",
		"comments that do not end":     "Content-Type: text/plain" + strings.Repeat("(", 240_000),
		"quotes in parameters":         "Content-Type: text/plain" + strings.Repeat(";\"", 120_000),
		"quotes that open each other":  "Content-Type: text/plain; " + strings.Repeat("a=\"\\\";", 40_000),
		"parentheses in a bare value":  "Content-Type: text/plain; a=" + strings.Repeat("(", 240_000),
		"space that leads to no dot":   "To: a@b" + strings.Repeat(" ", 240_000),
		"angles that are never closed": "To: " + strings.Repeat("<", 240_000),
	} {
		cputime.AtMost(t, 10*cputime.Of(ordinary)+200*time.Millisecond, name, parse(header))
	}
}

// However many quotes are never closed, what stands behind them is read.
func TestAParameterBehindOpenQuotesIsRead(t *testing.T) {
	for _, quotes := range []int{1, 7, 8, 9, 10_000} {
		raw := "Content-Type: text/plain\r\nContent-Disposition: attachment; " + strings.Repeat("a=\"\\\";", quotes) + " b; filename=report.txt\r\n\r\nx"
		if m := email.Parse([]byte(raw)); len(m.Attachments) != 1 || m.Attachments[0].Filename != "report.txt" {
			t.Errorf("%d quotes: %+v", quotes, m.Attachments)
		}
	}
}

// UTF-7 shifts in and out of base64 as often as it likes.
func TestShiftsOfUTF7AreCheap(t *testing.T) {
	raw := []byte("Content-Type: text/plain; charset=utf-7\r\n\r\n" + strings.Repeat("+2D3eAA-+AGE-", 500_000))
	var m *email.Message
	cputime.AtMost(t, 2*time.Second, "a million shifts", func() { m = email.Parse(raw) })
	if want := strings.Repeat("\U0001F600a", 500_000); m.Text != want {
		t.Errorf("the text is %.40q…", m.Text)
	}
}

// reliability: memory stays flat whatever is sent. What Parse allocates is bounded by a small multiple of the message.
func TestMemoryIsInProportion(t *testing.T) {
	attachment := "Content-Type: application/zip\r\nContent-Transfer-Encoding: base64\r\n\r\n" + strings.Repeat(strings.Repeat("A", 76)+"\r\n", 100_000)
	for _, c := range []struct {
		name   string
		raw    []byte
		factor float64
	}{
		{"8,000 levels", bomb(8000), 2},
		{"a million parts", []byte("Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\n\r\n", 1_000_000)), 0.1},
		{"10 MB of header", []byte(strings.Repeat("X-A: "+strings.Repeat("x", 990)+"\r\n", 10_000)), 0.2},
		{"a large attachment", []byte(multi("mixed", plain, attachment)), 0.01},
		{"a large text", []byte(head + "\r\n" + strings.Repeat(strings.Repeat("x", 70)+"\r\n", 100_000)), 4},
		{"quoted-printable of escapes alone", []byte(head + "Content-Transfer-Encoding: quoted-printable\r\n\r\n" + strings.Repeat("=41", 1_000_000)), 4},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m := email.Parse(c.raw)
		runtime.ReadMemStats(&after)
		if got := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(c.raw)); got > c.factor {
			t.Errorf("%s: %.2f bytes allocated for each of %d, want %.2f", c.name, got, len(c.raw), c.factor)
		}
		runtime.KeepAlive(m)
	}
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct {
		name string
		raw  []byte
	}{
		{"4KiB", []byte(multi("alternative", "Content-Type: text/plain\r\n\r\n"+strings.Repeat("line of text\r\n", 100), "Content-Type: text/html\r\n\r\n"+strings.Repeat("<p>line of text</p>\r\n", 120)))},
		{"10MiB-attachment", []byte(multi("mixed", plain, "Content-Type: application/zip\r\nContent-Transfer-Encoding: base64\r\n\r\n"+strings.Repeat(strings.Repeat("A", 76)+"\r\n", 134_000)))},
		{"8000-levels", bomb(8000)},
		{"20000-levels", bomb(20000)},
		{"million-parts", []byte("Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\n\r\n", 1_000_000))},
		{"delimiters-that-are-none", []byte("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n" + strings.Repeat("\n--", 3<<20))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.raw)))
			b.ReportAllocs()
			for b.Loop() {
				email.Parse(c.raw)
			}
		})
	}
}

func BenchmarkExtract(b *testing.B) {
	m := email.Parse([]byte(multi("alternative", "Content-Type: text/plain\r\n\r\nYour verification code is 482910.\r\n"+strings.Repeat("line of text https://example.com/\r\n", 60),
		"Content-Type: text/html\r\n\r\n"+strings.Repeat("<p>line of <a href=\"https://example.com/\">text</a></p>\r\n", 60))))
	hostile := &email.Message{Text: strings.Repeat("code 123 ", 120_000), HTML: strings.Repeat("<a href=x>", 100_000)}
	for name, m := range map[string]*email.Message{"4KiB": m, "2MiB-of-mentions": hostile} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				email.Extract(m)
			}
		})
	}
}
