package jsondoc

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Result is what became of one expected value.
type Result struct {
	Path     string // into both texts, see ShownPointer
	Expected []byte // JSON
	Actual   []byte // JSON; nil: there is no such value
	Matched  bool
}

// maxResults bounds the results of one comparison; maxShown the bytes of a value in one.
const (
	maxResults = 100
	maxShown   = 512
)

// Subset compares as spec: decisions, section 7, has it: objects by subset, arrays element by element and of equal
// length, scalars by equality, numbers by value. It returns a result for each expected scalar and empty container,
// mismatches first where there are more than a hundred. It answers ErrNotJSON when the expected text is none; an actual
// text that is none matches nothing. A byte order mark before either is passed over.
//
// The actual text is read once and not kept, so that a large answer costs no more memory than its text.
func Subset(expected, actual []byte) (matched bool, results []Result, err error) {
	want, err := Parse(expected, Wide())
	if err != nil {
		return false, nil, err
	}
	actual = Unmarked(actual)
	if Check(actual) != nil {
		return false, []Result{{Expected: shown(want.Bytes())}}, nil
	}
	r, err := open(actual)
	if err != nil {
		return false, nil, err
	}
	m := &matcher{reader: r, matched: true}
	if err := m.match(want); err != nil {
		return false, nil, err
	}
	return m.matched, m.results, nil
}

type matcher struct {
	*reader
	path    []string // to the value that is read
	matched bool
	results []Result
}

func (m *matcher) add(r Result) {
	if !r.Matched {
		m.matched = false
		if len(m.results) == maxResults { // a mismatch tells more than a match
			if i := slices.IndexFunc(m.results, func(r Result) bool { return r.Matched }); i >= 0 {
				m.results = slices.Delete(m.results, i, i+1)
			}
		}
	}
	if len(m.results) < maxResults {
		r.Path = ShownPointer(m.path)
		m.results = append(m.results, r)
	}
}

// below matches the value at the next step of the path.
func (m *matcher) below(step string, want Value) error {
	m.path = append(m.path, step)
	err := m.match(want)
	m.path = m.path[:len(m.path)-1]
	return err
}

// kinds are the kinds of values as the tokenizer has them.
var kinds = [...]jsontext.Kind{
	Null: jsontext.KindNull, False: jsontext.KindFalse, True: jsontext.KindTrue, Number: jsontext.KindNumber, String: jsontext.KindString,
	Array: jsontext.KindBeginArray, Object: jsontext.KindBeginObject,
}

// match reads the next actual value and compares it.
func (m *matcher) match(want Value) error {
	matched := m.dec.PeekKind() == kinds[want.kind]
	if matched && want.Len() > 0 {
		if want.kind == Object {
			return m.object(want)
		}
		return m.array(want)
	}
	start := m.start()
	if matched && (want.kind == String || want.kind == Number) {
		t, err := m.token()
		if err != nil {
			return err
		}
		matched = want.kind == String && t.String() == want.text || want.kind == Number && sameNumber(t.String(), want.text)
	} else if err := m.skip(); err != nil {
		return err
	}
	got := m.text[start:m.dec.InputOffset()]
	if matched && want.kind == Array { // an empty one is expected
		matched = len(bytes.TrimSpace(got[1:len(got)-1])) == 0
	}
	m.add(Result{Expected: shown(want.Bytes()), Actual: shown(got), Matched: matched})
	return nil
}

func (m *matcher) object(want Value) error {
	if _, err := m.token(); err != nil {
		return err
	}
	expected := want.places()
	for m.more() {
		name, err := m.token()
		if err != nil {
			return err
		}
		text := name.String()
		i, ok := expected[text]
		if !ok {
			if err := m.skip(); err != nil {
				return err
			}
			continue
		}
		delete(expected, text)
		if err := m.below(text, want.in.values[i]); err != nil {
			return err
		}
	}
	for name, value := range want.All() {
		if _, missing := expected[name]; missing {
			m.path = append(m.path, name)
			m.add(Result{Expected: shown(value.Bytes())})
			m.path = m.path[:len(m.path)-1]
		}
	}
	_, err := m.token()
	return err
}

func (m *matcher) array(want Value) error {
	if _, err := m.token(); err != nil {
		return err
	}
	n := 0
	for ; m.more(); n++ {
		if n >= want.Len() {
			if err := m.skip(); err != nil {
				return err
			}
			continue
		}
		if err := m.below(strconv.Itoa(n), want.in.values[n]); err != nil {
			return err
		}
	}
	if n != want.Len() {
		m.add(Result{Expected: elements(want.Len()), Actual: elements(n)})
	}
	_, err := m.token()
	return err
}

// elements is a length as a result shows it.
func elements(n int) []byte {
	if n == 1 {
		return []byte(`"1 element"`)
	}
	return fmt.Appendf(nil, `"%d elements"`, n)
}

// shown is a value as a result shows it: a long one by its kind and size.
func shown(raw []byte) []byte {
	if len(raw) <= maxShown {
		return bytes.Clone(raw)
	}
	kind := cmp.Or(map[byte]string{'{': "object", '[': "array", '"': "string"}[raw[0]], "number")
	return fmt.Appendf(nil, `"%s of %d bytes"`, kind, len(raw))
}
