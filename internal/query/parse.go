package query

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
)

// Parse parses a query; durations in it count back from now. An empty query matches every event. A bad one is
// validation_failed of the field "q"; the message and the member "position" of Extra say at which character, counted
// from 0, and what was expected there.
func Parse(q string, now time.Time) (Query, error) {
	terms, _, err := parse(q, now)
	return Query{terms}, err
}

// Split lists the terms of a query as written. Each is a query by itself, and their conjunction is the whole query. It
// answers what [Parse] does.
func Split(q string, now time.Time) ([]string, error) {
	_, written, err := parse(q, now)
	return written, err
}

// Advice is what helps whoever wrote a query that found nothing, or "": AND, OR and NOT are words like any other.
func Advice(q string) string {
	terms, err := Split(q, time.Time{})
	if err == nil && slices.ContainsFunc(terms, func(t string) bool { return t == "AND" || t == "OR" || t == "NOT" }) {
		return "AND, OR and NOT are searched for as words. Terms simply stand beside each other, and all must hold; -term excludes what term finds."
	}
	return ""
}

func parse(q string, now time.Time) (terms []Term, written []string, err error) {
	p := parser{in: q, now: now}
	if !utf8.ValidString(q) {
		return nil, nil, p.fail(invalidAt(q), "expected UTF-8")
	}
	if n := utf8.RuneCountInString(q); n > MaxLength {
		return nil, nil, p.fail(len(string([]rune(q)[:MaxLength])), "expected the end: a query has at most %d characters, this one %d", MaxLength, n)
	}
	for {
		p.skipSpace()
		if p.at == len(p.in) {
			return terms, written, nil
		}
		if len(terms) == MaxTerms {
			return nil, nil, p.fail(p.at, "expected the end: a query has at most %d terms", MaxTerms)
		}
		begin := p.at
		t, err := p.term()
		if err != nil {
			return nil, nil, err
		}
		terms, written = append(terms, t), append(written, q[begin:p.at])
	}
}

type parser struct {
	in  string
	at  int // bytes
	now time.Time
}

// operand is a value as written.
type operand struct {
	at    int
	text  string   // without quotes and escapes, wildcards included
	parts []string // between the wildcards
}

// wild reports whether the value has wildcards, in which case it must match the whole text.
func (o operand) wild() bool { return len(o.parts) > 1 }

func (p *parser) term() (Term, error) {
	var not bool
	if p.in[p.at] == '-' {
		not = true
		p.at++
		if p.at == len(p.in) || isSpace(p.in[p.at]) {
			return Term{}, p.fail(p.at, "expected a term behind the minus; quote a minus to search for it")
		}
	}
	begin := p.at
	name, arg, ok := p.fieldName(not)
	if !ok {
		if word, ok := p.quoting(); ok {
			return Term{Field: Text, Not: not, Pattern: literal(word)}, nil
		}
		value, err := p.value()
		if err != nil {
			return Term{}, err
		}
		if value.text == "" {
			return Term{}, p.fail(begin, "expected text between the quotes")
		}
		return Term{Field: Text, Not: not, Pattern: literal(value.text)}, nil
	}
	if p.at == len(p.in) || isSpace(p.in[p.at]) {
		return Term{}, p.fail(p.at, "expected a value behind %q", p.in[begin:p.at])
	}
	value, err := p.value()
	if err != nil {
		return Term{}, err
	}
	t, fault := p.compile(begin, name, arg, value)
	if fault != nil {
		return Term{}, p.fail(fault.at, "%s", fault.expected)
	}
	t.Not = not
	return t, nil
}

// fieldName parses "name:" or "name.argument:". A word that does not begin like this is text, and so is one whose name
// is neither a field nor nearly one, such as localhost:8080. But an unknown name that is negated or followed by a quote
// is reported as an error: it was probably meant as a field, and a search for it as text would mislead.
func (p *parser) fieldName(turned bool) (name, arg string, ok bool) {
	rest := p.in[p.at:]
	n := 0
	for n < len(rest) && isNameByte(rest[n]) {
		n++
	}
	if n == 0 || !isLetter(rest[0]) || n == len(rest) {
		return "", "", false
	}
	name = foldString(rest[:n])
	switch rest[n] {
	case ':':
	case '.':
		end := strings.IndexFunc(rest[n:], func(r rune) bool { return r == ':' || r == '"' || r < utf8.RuneSelf && isSpace(byte(r)) })
		if end < 0 || rest[n+end] != ':' {
			return "", "", false
		}
		arg = rest[n : n+end]
		n += end
	default:
		return "", "", false
	}
	if _, known := fields[name]; !known {
		meant := turned || nearField(name) || strings.HasPrefix(rest[n:], `:"`)
		if !meant || strings.HasPrefix(rest[n:], "://") {
			return "", "", false
		}
	}
	p.at += n + 1
	return name, arg, true
}

// quoting parses a word that continues after its closing quote, like a fragment of JSON ("id":"evt_1"). It is text,
// including its quotes.
func (p *parser) quoting() (word string, ok bool) {
	if p.in[p.at] != '"' {
		return "", false
	}
	end := p.at + 1
	for end < len(p.in) && p.in[end] != '"' {
		if p.in[end] == '\\' {
			end++
		}
		end++
	}
	if end++; end >= len(p.in) || isSpace(p.in[end]) {
		return "", false
	}
	for end < len(p.in) && !isSpace(p.in[end]) {
		end++
	}
	word, p.at = p.in[p.at:end], end
	return word, true
}

// value parses a word or a quoted text.
func (p *parser) value() (operand, error) {
	o := operand{at: p.at}
	if p.in[p.at] != '"' {
		end := p.at
		for end < len(p.in) && !isSpace(p.in[end]) {
			end++
		}
		o.text = p.in[p.at:end]
		o.parts = strings.Split(o.text, "*")
		p.at = end
		return o, nil
	}
	opening := p.at
	var text, part strings.Builder
	for p.at++; p.at < len(p.in); p.at++ {
		c := p.in[p.at]
		switch c {
		case '"':
			p.at++
			if p.at < len(p.in) && !isSpace(p.in[p.at]) {
				return o, p.fail(p.at, `expected a space behind the closing quote; a quote within quotes is written \"`)
			}
			o.text, o.parts = text.String(), append(o.parts, part.String())
			return o, nil
		case '*':
			o.parts = append(o.parts, part.String())
			part.Reset()
			text.WriteByte(c)
			continue
		case '\\':
			p.at++
			if p.at == len(p.in) || !strings.ContainsRune(`"\*`, rune(p.in[p.at])) {
				return o, p.fail(p.at, `expected ", \ or * behind the backslash`)
			}
			c = p.in[p.at]
		}
		text.WriteByte(c)
		part.WriteByte(c)
	}
	return o, p.fail(p.at, "expected a closing quote for the one at character %d", p.offset(opening))
}

func (p *parser) skipSpace() {
	for p.at < len(p.in) && isSpace(p.in[p.at]) {
		p.at++
	}
}

// offset converts a byte offset to a character offset.
func (p *parser) offset(at int) int { return utf8.RuneCountInString(p.in[:at]) }

func (p *parser) fail(at int, format string, args ...any) error {
	offset := p.offset(at)
	err := hookglass.Invalid("q", "at character %d: %s", offset, fmt.Sprintf(format, args...))
	err.Extra = map[string]any{"position": offset}
	return err
}

func invalidAt(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}

func isSpace(c byte) bool  { return c == ' ' || '\t' <= c && c <= '\r' }
func isLetter(c byte) bool { return 'a' <= lower(c) && lower(c) <= 'z' }
func isNameByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '_' || c == '-'
}
