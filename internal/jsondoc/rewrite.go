package jsondoc

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Leaf is a string, a number or the name of a member in a text, and where it stands.
type Leaf struct {
	Path []string // names and indexes that lead to the value, or to the value of the member that it names; good until Rewrite goes on
	Name bool     // it names a member
	Kind Kind     // String or Number
	Text string   // of a string, unescaped; of a number, as spelled
}

// Pointer is where the leaf stands, see [ShownPointer].
func (l Leaf) Pointer() string { return ShownPointer(l.Path) }

// Member is the name of the nearest member around the leaf, "" where there is none: that of its array for an element.
func (l Leaf) Member() string {
	for i := len(l.Path) - 1; i >= 0; i-- {
		if _, index := arrayIndex(l.Path[i]); !index {
			return l.Path[i]
		}
	}
	return ""
}

// Rewrite edits the leaves of a text in place. change says what stands instead of a leaf, and whether anything does; a
// number that would not be one is left as it is. All else, a byte order mark, white space, order, escapes and names
// that repeat included, stays byte for byte, and a text in which nothing changes is returned itself. The text may hold
// several values with white space between them, as a file of JSON lines does. It answers ErrNotJSON for what is none,
// and beyond the bounds.
func Rewrite(text []byte, b Bounds, change func(Leaf) (string, bool)) ([]byte, error) {
	if len(text) > b.Bytes || !utf8.Valid(text) {
		return nil, ErrNotJSON
	}
	whole := text
	text = Unmarked(text)
	w := rewriter{
		text: text, out: slices.Clone(whole[:len(whole)-len(text)]), depth: b.Depth, change: change,
		dec: jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), halves),
	}
	for values := 0; ; values++ {
		if w.dec.PeekKind() == jsontext.KindInvalid {
			if _, err := w.dec.ReadToken(); err != io.EOF || values == 0 {
				return nil, ErrNotJSON
			}
			if w.done == 0 {
				return whole, nil
			}
			return append(w.out, text[w.done:]...), nil
		}
		if end := w.dec.InputOffset(); values > 0 && bytes.IndexByte([]byte(" \t\r\n"), text[end]) < 0 {
			return nil, ErrNotJSON // two numbers side by side would become one
		}
		if err := w.value(); err != nil {
			return nil, ErrNotJSON
		}
	}
}

type rewriter struct {
	text   []byte
	out    []byte
	done   int // of text is in out
	depth  int
	dec    *jsontext.Decoder
	path   []string
	change func(Leaf) (string, bool)
}

func (w *rewriter) value() error {
	switch kind := w.dec.PeekKind(); kind {
	case jsontext.KindString:
		return w.leaf(String, false)
	case jsontext.KindNumber:
		return w.leaf(Number, false)
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		if _, err := w.dec.ReadToken(); err != nil {
			return err
		}
		if w.dec.StackDepth() > w.depth {
			return ErrNotJSON
		}
		here := len(w.path)
		w.path = append(w.path, "")
		for n := 0; ; n++ {
			if k := w.dec.PeekKind(); k == jsontext.KindEndObject || k == jsontext.KindEndArray {
				break
			}
			if kind == jsontext.KindBeginArray {
				w.path[here] = strconv.Itoa(n)
			} else if err := w.leaf(String, true); err != nil {
				return err
			}
			if err := w.value(); err != nil {
				return err
			}
		}
		w.path = w.path[:here]
		_, err := w.dec.ReadToken()
		return err
	}
	_, err := w.dec.ReadToken()
	return err
}

// leaf reads a string or a number and writes what stands instead of it.
func (w *rewriter) leaf(kind Kind, name bool) error {
	raw, err := w.dec.ReadValue()
	if err != nil {
		return err
	}
	end := int(w.dec.InputOffset())
	start := end - len(raw)
	text := string(raw)
	if kind == String {
		unquoted, _ := jsontext.AppendUnquote(nil, raw) // it fails for halves alone, which are U+FFFD then
		text = string(unquoted)
	}
	if name {
		w.path[len(w.path)-1] = text
	}
	put, changed := w.change(Leaf{Path: w.path, Name: name, Kind: kind, Text: text})
	if !changed || kind == Number && !number(put) {
		return nil
	}
	w.out = append(w.out, w.text[w.done:start]...)
	if kind == Number {
		w.out = append(w.out, put...)
	} else {
		w.out = appendQuoted(w.out, put)
	}
	w.done = end
	return nil
}

func number(s string) bool {
	v := jsontext.Value(s)
	return v.Kind() == jsontext.KindNumber && v.IsValid() && len(bytes.TrimSpace(v)) == len(s)
}
