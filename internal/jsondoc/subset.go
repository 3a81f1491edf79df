package jsondoc

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
// text that is none matches nothing.
//
// The actual text is read once and not kept, so that a large answer costs no more memory than its text.
func Subset(expected, actual []byte) (matched bool, results []Result, err error) {
	want, err := parse(expected)
	if err != nil {
		return false, nil, err
	}
	if Check(actual) != nil {
		return false, []Result{{Expected: shown(want.raw)}}, nil
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

func parse(text []byte) (node, error) {
	r, err := open(text)
	if err != nil {
		return node{}, err
	}
	n, err := r.node()
	if err != nil {
		return n, err
	}
	return n, r.end()
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
func (m *matcher) below(step string, want node) error {
	m.path = append(m.path, step)
	err := m.match(want)
	m.path = m.path[:len(m.path)-1]
	return err
}

// match reads the next actual value and compares it.
func (m *matcher) match(want node) error {
	kind := m.dec.PeekKind()
	if kind == want.kind && len(want.children) > 0 {
		if kind == jsontext.KindBeginObject {
			return m.object(want)
		}
		return m.array(want)
	}
	start := m.start()
	var text string
	matched := kind == want.kind
	switch {
	case !matched:
	case kind == jsontext.KindString, kind == jsontext.KindNumber:
		t, err := m.token()
		if err != nil {
			return err
		}
		text = t.String()
		if kind == jsontext.KindNumber {
			matched = sameNumber(text, want.text)
		} else {
			matched = text == want.text
		}
		m.add(Result{Expected: shown(want.raw), Actual: shown(m.text[start:m.dec.InputOffset()]), Matched: matched})
		return nil
	case kind == jsontext.KindBeginArray: // an empty one is expected
		if err := m.skip(); err != nil {
			return err
		}
		got := m.text[start:m.dec.InputOffset()]
		m.add(Result{Expected: want.raw, Actual: shown(got), Matched: len(bytes.TrimSpace(got[1:len(got)-1])) == 0})
		return nil
	}
	if err := m.skip(); err != nil {
		return err
	}
	m.add(Result{Expected: shown(want.raw), Actual: shown(m.text[start:m.dec.InputOffset()]), Matched: matched})
	return nil
}

func (m *matcher) object(want node) error {
	if _, err := m.token(); err != nil {
		return err
	}
	index := make(map[string]int, len(want.names))
	for i, name := range want.names {
		index[name] = i
	}
	for m.more() {
		name, err := m.token()
		if err != nil {
			return err
		}
		text := name.String()
		i, ok := index[text]
		if !ok {
			if err := m.skip(); err != nil {
				return err
			}
			continue
		}
		delete(index, text)
		if err := m.below(text, want.children[i]); err != nil {
			return err
		}
	}
	for i, name := range want.names {
		if _, missing := index[name]; missing {
			m.path = append(m.path, name)
			m.add(Result{Expected: shown(want.children[i].raw)})
			m.path = m.path[:len(m.path)-1]
		}
	}
	_, err := m.token()
	return err
}

func (m *matcher) array(want node) error {
	if _, err := m.token(); err != nil {
		return err
	}
	n := 0
	for ; m.more(); n++ {
		if n >= len(want.children) {
			if err := m.skip(); err != nil {
				return err
			}
			continue
		}
		if err := m.below(strconv.Itoa(n), want.children[n]); err != nil {
			return err
		}
	}
	if n != len(want.children) {
		m.add(Result{Expected: elements(len(want.children)), Actual: elements(n)})
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
	kind := map[byte]string{'{': "object", '[': "array", '"': "string"}[raw[0]]
	if kind == "" {
		kind = "number"
	}
	return fmt.Appendf(nil, `"%s of %d bytes"`, kind, len(raw))
}

func escape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
