// Package jsondoc reads and changes JSON without losing any of it: numbers stay as they are spelled and are compared by
// value, members keep their order, names must not repeat (RFC 8259, section 4), and size and depth are bounded. It
// knows pointers (RFC 6901), the transforms of actions, subsets, differences and redaction. It hides the tokenizer.
//
// It is pure and safe for concurrent use.
package jsondoc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a document.
const (
	MaxBytes = 1 << 20 // what an answer of a target is cut at
	MaxDepth = 128
)

// ErrNotJSON says that a text is no single JSON value within the bounds.
var ErrNotJSON = errors.New("jsondoc: not one JSON value within the bounds")

// Check answers ErrNotJSON unless the text is one JSON value within the bounds.
func Check(text []byte) error {
	d, err := open(text)
	if err != nil {
		return err
	}
	if err := d.skip(); err != nil {
		return err
	}
	return d.end()
}

// EndsInString reports whether a part of a JSON text ends inside a string, given whether it began inside one. A
// backslash at its end counts for nothing.
func EndsInString(part string, quoted bool) bool {
	for i := 0; i < len(part); i++ {
		switch {
		case part[i] == '"':
			quoted = !quoted
		case part[i] == '\\' && quoted:
			i++
		}
	}
	return quoted
}

// EndsInEscape reports whether a part of a JSON text that ends inside a string ends inside an escape sequence of it:
// behind a backslash that escapes what follows, or within \u and its four digits.
func EndsInEscape(part string) bool {
	digits := len(part) - len(strings.TrimRight(part, "0123456789abcdefABCDEF"))
	if before, ok := strings.CutSuffix(part[:len(part)-digits], "u"); ok && digits < 4 {
		part = before
	}
	backslashes := len(part) - len(strings.TrimRight(part, `\`))
	return backslashes%2 == 1
}

// reader reads one value from a bounded text.
type reader struct {
	text []byte
	dec  *jsontext.Decoder
}

func open(text []byte) (*reader, error) {
	if len(text) > MaxBytes || !utf8.Valid(text) {
		return nil, ErrNotJSON
	}
	return &reader{text, jsontext.NewDecoder(bytes.NewReader(text), halves)}, nil
}

// halves lets an escape stand for half of a pair (\ud83d), as senders write who cut texts after so many units. It is
// read as U+FFFD. The option lets pass what is not UTF-8 too, which is no JSON (RFC 8259, section 8.1), so whoever uses
// it looks for that.
var halves = jsontext.AllowInvalidUTF8(true)

func (r *reader) token() (jsontext.Token, error) {
	t, err := r.dec.ReadToken()
	if err != nil || r.dec.StackDepth() > MaxDepth {
		return t, ErrNotJSON
	}
	return t, nil
}

// skip reads a value and forgets it.
func (r *reader) skip() error {
	for depth := r.dec.StackDepth(); ; {
		if _, err := r.token(); err != nil {
			return err
		}
		if r.dec.StackDepth() <= depth {
			return nil
		}
	}
}

// end answers ErrNotJSON when anything follows the value.
func (r *reader) end() error {
	if _, err := r.dec.ReadToken(); err != io.EOF {
		return ErrNotJSON
	}
	return nil
}

// more reports whether the object or array that is open has another member or element.
func (r *reader) more() bool {
	switch r.dec.PeekKind() {
	case jsontext.KindEndObject, jsontext.KindEndArray, jsontext.KindInvalid:
		return false
	}
	return true
}

// start is where the next value begins.
func (r *reader) start() int {
	r.dec.PeekKind() // reads over white space and separators, but does not count them
	at := int(r.dec.InputOffset())
	for at < len(r.text) && bytes.IndexByte([]byte(" \t\r\n,:"), r.text[at]) >= 0 {
		at++
	}
	return at
}
