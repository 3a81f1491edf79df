package flow

import (
	"io"
	"regexp"
	"regexp/syntax"
	"time"
	"unicode/utf8"
)

// Bounds of patterns. A search takes steps in proportion to the size of the pattern times that of the text. The times
// are those of action conditions (spec, "Limits"): for one pattern, and for all searches of a flow in one event.
const (
	maxPattern  = 10_000  // instructions
	quickSteps  = 1 << 24 // up to this the clock is not checked: 0.2 s
	patternFor  = time.Second
	patternsFor = 5 * time.Second
)

// pattern is a regular expression with its size.
type pattern struct {
	re   *regexp.Regexp
	size int // instructions
}

func newPattern(text string) (*pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	return &pattern{re, len(program.Inst)}, nil
}

// find returns the first group of the first match, or the whole match if the pattern has no group. late says that the
// time ran out.
func (p *pattern) find(text string, within time.Duration) (found string, ok, late bool) {
	var at []int
	if p.size*len(text) <= quickSteps {
		at = p.re.FindStringSubmatchIndex(text)
	} else {
		t := &timedText{rest: text, until: time.Now().Add(within)}
		if at = p.re.FindReaderSubmatchIndex(t); t.late {
			return "", false, true
		}
	}
	if len(at) > 2 {
		at = at[2:4]
	}
	if at == nil || at[0] < 0 {
		return "", false, false
	}
	return text[at[0]:at[1]], true, false
}

// timedText is a text that ends early when the time runs out.
type timedText struct {
	rest  string
	until time.Time
	late  bool
}

// ReadRune implements io.RuneReader.
func (t *timedText) ReadRune() (r rune, size int, err error) {
	if t.late = t.late || time.Now().After(t.until); t.late || t.rest == "" {
		return 0, 0, io.EOF
	}
	r, size = utf8.DecodeRuneInString(t.rest)
	t.rest = t.rest[size:]
	return r, size, nil
}
