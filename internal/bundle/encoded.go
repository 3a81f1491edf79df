package bundle

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hookglass/internal/coding"
)

// runForm finds runs that may be base64 or hexadecimal. In mail they are wrapped into lines of equal length except for
// the last; within JSON the line ends are escaped.
var (
	runForm = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}={0,2}`)
	lineEnd = regexp.MustCompile(`^(?:\r|\\r)?(?:\n|\\n)`)
)

// maxLineEnd bounds the end of a line, with its escapes.
const maxLineEnd = 4

// nested finds base64 and hexadecimal text that contains known values, and edits it inside if it decodes to text.
func (m *Maker) nested(s string, at spot, depth int) (found []span) {
	found = m.encoded(s, false)
	for r := range runs(s) {
		code, text := codeOf(r.text)
		if code == nil {
			var whole bool
			if code, text, whole = m.unpacked(r.text); code == nil {
				if whole {
					found = append(found, span{start: r.start, end: r.end, kind: Encoded})
				}
				continue
			}
		}
		inside := at
		inside.name, inside.path = "", append(slices.Clone(at.path), "\x00")
		if put := m.text(text, inside, depth+1); put != text {
			found = append(found, span{start: r.start, end: r.end, kind: Encoded, put: r.wrap(code(put))})
		}
	}
	// Prefer replacements that were edited inside over those of the same part that could not be.
	slices.SortStableFunc(found, func(a, b span) int { return len(b.put) - len(a.put) })
	return found
}

// encoded returns runs of base64 and hexadecimal that contain known values, at any offset.
func (m *Maker) encoded(s string, sure bool) (found []span) {
	if len(m.known.entries) == 0 {
		return nil
	}
	for r := range runs(s) {
		for _, plain := range readings(r.text) {
			if len(m.known.find(plain, sure)) > 0 {
				found = append(found, span{start: r.start, end: r.end, kind: Encoded})
				break
			}
		}
	}
	return found
}

// run is a part of a text that may be base64 or hexadecimal.
type run struct {
	start, end int
	text       string // without line ends
	width      int    // of its lines; 0: a single line
	mark       string // its line end
}

// runs yields the runs of a text: each line by itself, and after the first line the lines that may continue it.
func runs(s string) iter.Seq[run] {
	return func(yield func(run) bool) {
		wrapped := 0 // lines have been joined up to here
		for _, at := range runForm.FindAllStringIndex(s, -1) {
			r := run{start: at[0], end: at[1], text: s[at[0]:at[1]]}
			if !yield(r) {
				return
			}
			if r.start < wrapped || !r.unwrap(s) {
				continue
			}
			if wrapped = r.end; !yield(r) {
				return
			}
		}
	}
}

// unwrap adds the following lines: they are as long as the first, except that the last may be shorter.
func (r *run) unwrap(s string) bool {
	var lines strings.Builder
	first := len(r.text)
	for last := strings.HasSuffix(r.text, "="); !last; {
		mark := lineEnd.FindString(s[r.end:min(len(s), r.end+maxLineEnd)])
		start := r.end + len(mark)
		end := start
		for end < len(s) && (inCode(s[end]) || s[end] == '=') && end-start <= first {
			end++
		}
		switch {
		case mark == "", r.mark != "" && mark != r.mark, end == start, end-start > first, strings.HasPrefix(s[start:], "--"): // a boundary
			last = true
			continue
		case r.mark == "":
			r.mark, r.width = mark, first
			lines.WriteString(r.text)
		}
		lines.WriteString(s[start:end])
		r.end, last = end, end-start < first || s[end-1] == '='
	}
	if r.width > 0 {
		r.text = lines.String()
	}
	return r.width > 0
}

// wrap wraps a text into lines like those of the run.
func (r *run) wrap(text string) string {
	if r.width == 0 {
		return text
	}
	var b strings.Builder
	for ; len(text) > r.width; text = text[r.width:] {
		b.WriteString(text[:r.width] + r.mark)
	}
	return b.String() + text
}

func inCode(c byte) bool { return alphanumericByte(c) || strings.IndexByte("+/_-", c) >= 0 }

// readings returns the possible decodings of a run, which has 12 characters at least, for each offset at which its
// groups may begin.
func readings(run string) (all []string) {
	std := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(run)
	for start := range 4 {
		whole := start + (len(std)-start)/4*4
		if b, err := base64.StdEncoding.DecodeString(std[start:whole]); err == nil {
			if rest, err := base64.RawStdEncoding.DecodeString(std[whole:]); err == nil {
				b = append(b, rest...)
			}
			all = append(all, string(b))
		}
	}
	for part := range strings.FieldsFuncSeq(run, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }) {
		for start := range 2 {
			if text := part[start:]; len(text) >= 12 {
				if b, err := hex.DecodeString(text[:len(text)&^1]); err == nil {
					all = append(all, string(b))
				}
			}
		}
	}
	return all
}

// base64s are the alphabets of base64, with padding and without.
var base64s = []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding}

// codeOf decodes a run that is readable text in base64 or hexadecimal, and returns the matching encoder, or nil if it
// is neither.
func codeOf(run string) (code func(string) string, text string) {
	if len(run)%2 == 0 {
		if b, err := hex.DecodeString(run); err == nil && readable(b) {
			if strings.ToUpper(run) == run {
				return func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }, string(b)
			}
			return func(s string) string { return hex.EncodeToString([]byte(s)) }, string(b)
		}
	}
	for _, e := range base64s {
		if b, err := e.Strict().DecodeString(run); err == nil && readable(b) {
			return func(s string) string { return e.EncodeToString([]byte(s)) }, string(b)
		}
	}
	return nil, ""
}

// gzipMark is how gzip begins in base64.
const gzipMark = "H4sI"

// Bounds of what is unpacked: of one run, and of all.
const (
	maxUnpacked      = 1 << 20
	maxUnpackedInAll = 64 << 20
)

// unpacked is codeOf for text that was compressed with gzip before it was encoded in base64. closed reports whether the
// run is gzip into which nobody may look, because it is too large.
func (m *Maker) unpacked(run string) (code func(string) string, text string, closed bool) {
	if !strings.HasPrefix(run, gzipMark) {
		return nil, "", false
	}
	for _, e := range base64s {
		packed, err := e.Strict().DecodeString(run)
		if err != nil {
			continue
		}
		if m.inflated > maxUnpackedInAll {
			return nil, "", true
		}
		plain, err := coding.Decoded(packed, "gzip", maxUnpacked)
		m.inflated += len(plain) + len(packed)
		if errors.Is(err, coding.ErrLonger) {
			return nil, "", true
		}
		if err != nil || !readable(plain) {
			return nil, "", false
		}
		return func(s string) string { return e.EncodeToString(coding.Gzipped(s)) }, string(plain), false
	}
	return nil, "", false
}

func readable(b []byte) bool {
	if len(b) < leastSure || !utf8.Valid(b) {
		return false
	}
	for _, r := range string(b) {
		if !unicode.IsPrint(r) && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
	}
	return true
}

// escaped finds parts of a text that contain known values in the escapes of URLs, HTML or mail, or directly next to
// escapes: %20Ada does not contain the word 20Ada.
func (m *Maker) escaped(s string, sure bool) (found []span) {
	for _, way := range escapes {
		if !strings.Contains(s, way.sign) {
			continue
		}
		plain, at := way.plain(s)
		spans := m.known.find(plain, sure)
		if !sure {
			spans = append(spans, m.detect(plain)...)
		}
		for _, f := range spans {
			f.start, f.end, f.put = at[f.start], at[f.end], plain[f.start:f.end]
			switch {
			case f.start == f.end: // only a part of one escape's text
				continue
			case f.put == s[f.start:f.end]:
				f.put = ""
			default:
				m.remember(f.put, f.kind)
				f.put = way.write(m.fakes.of(f.kind, f.put))
			}
			found = append(found, f)
		}
	}
	return found
}

// escape is an escaping of characters: its marker, its decoder and its encoder.
type escape struct {
	sign  string // a text without it has no such escapes
	marks string
	read  func(s string) (plain string, n int) // decodes the escape that s begins with; n is 0 if there is none
	write func(string) string
}

// escapes are the supported escapings. A URL in the query of another is percent-encoded twice, and values of its own
// query three times.
var escapes = []escape{
	{"%", "%", readPercent, percent},
	{"%", "%+", readForm, url.QueryEscape},
	{"%25", "%", func(s string) (string, int) { return readAgain(s, 1) }, func(s string) string { return again(percent(s), 1) }},
	{"%2525", "%", func(s string) (string, int) { return readAgain(s, 2) }, func(s string) string { return again(percent(s), 2) }},
	{"&", "&", readReference, html.EscapeString},
	{"quoted-printable", "=", readQuoted, quoted},
}

// plain returns a text without its escapes, and the original offset of each byte.
func (e escape) plain(s string) (string, []int) {
	var plain strings.Builder
	at := make([]int, 0, len(s)+1)
	for i := 0; i < len(s); {
		text, n := s[i:i+1], 1
		if strings.IndexByte(e.marks, s[i]) >= 0 {
			if read, length := e.read(s[i:]); length > 0 {
				text, n = read, length
			}
		}
		for range len(text) {
			at = append(at, i)
		}
		plain.WriteString(text)
		i += n
	}
	return onlyText(plain.String()), append(at, len(s))
}

// onlyText returns a text with a mark in place of each byte that is not text.
func onlyText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	b := []byte(s)
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			b[i] = '?'
		}
		i += size
	}
	return string(b)
}

func readPercent(s string) (string, int) {
	if len(s) > 2 {
		if b, err := hex.DecodeString(s[1:3]); err == nil {
			return string(b), 3
		}
	}
	return "", 0
}

// readForm additionally decodes the plus sign, a form's blank.
func readForm(s string) (string, int) {
	if s[0] == '+' {
		return " ", 1
	}
	return readPercent(s)
}

// readAgain decodes text that was percent-encoded that many more times; a form's blank is %2B after the first.
func readAgain(s string, times int) (string, int) {
	s, found := strings.CutPrefix(s, "%"+strings.Repeat("25", times-1))
	switch n := 2*times - 1; {
	case !found:
	case strings.HasPrefix(s, "25"):
		if text, more := readPercent(s[1:]); more > 0 {
			return text, n + len("25") + len("40")
		}
	case strings.HasPrefix(s, "2B"):
		return " ", n + len("2B")
	}
	return "", 0
}

func again(s string, times int) string {
	return strings.ReplaceAll(s, "%", "%"+strings.Repeat("25", times))
}

// readQuoted decodes quoted-printable (RFC 2045, section 6.7), in which a line may be broken anywhere.
func readQuoted(s string) (string, int) {
	for _, softBreak := range []string{"=\r\n", "=\n"} {
		if strings.HasPrefix(s, softBreak) {
			return "", len(softBreak)
		}
	}
	return readPercent(s)
}

func quoted(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < ' ' || c >= 0x7f || c == '=' {
			fmt.Fprintf(&b, "=%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// maxReference bounds a character reference of HTML: the longest name has 31 letters.
const maxReference = 34

func readReference(s string) (string, int) {
	end := strings.IndexByte(s[:min(len(s), maxReference)], ';') + 1
	if end == 0 {
		return "", 0
	}
	if text := html.UnescapeString(s[:end]); text != s[:end] {
		return text, end
	}
	return "", 0
}

// percent encodes a value for any part of a URL.
func percent(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
