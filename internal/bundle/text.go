package bundle

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"hookglass/internal/jsondoc"
	"hookglass/internal/redact"
)

// maxNested bounds nesting: JSON in a JSON string, in base64, and so on.
const maxNested = 4

// text returns the replacement of a text.
func (m *Maker) text(s string, at spot, depth int) string {
	if s == "" || m.ctx.Err() != nil {
		return s
	}
	if covered(m.keep, at) {
		if m.collect {
			m.known.exempt[lower(s)] = true
			for _, found := range m.detect(s) {
				m.known.exempt[lower(s[found.start:found.end])] = true
			}
		}
		return m.replace(s, at, m.known.find(s, true))
	}
	if covered(m.pointers, at) {
		return m.whole(s, at, Pointed)
	}
	if m.known.exempt[lower(s)] {
		return m.replace(s, at, m.known.find(s, true))
	}
	if m.mail && at.name == "content_base64" { // an attachment, whatever it contains
		return string(m.binary([]byte(s), at.shown))
	}
	if depth < maxNested {
		if inner, ok := m.json([]byte(s), at, depth+1); ok {
			return string(inner)
		}
	}
	if kind := m.fieldKind(at, s); kind != "" && !m.keepKinds[kind] {
		return m.whole(s, at, kind)
	}
	found := slices.Concat(m.known.find(s, false), m.detect(s), m.escaped(s, false), m.table(s, at))
	if depth < maxNested {
		found = append(found, m.nested(s, at, depth)...)
	}
	return m.replace(s, at, found)
}

// whole returns the substitute of an entire text.
func (m *Maker) whole(s string, at spot, kind Kind) string {
	fakes := kind
	if kind == Pointed || kind == Token { // the form of the value determines the substitute
		fakes = cmp.Or(wholeKind(s, m.detect(s)), kind)
	}
	m.remember(s, fakes)
	m.note(at.shown, kind)
	return m.fakes.of(fakes, s)
}

// remember adds a value that is to be replaced everywhere.
func (m *Maker) remember(s string, kind Kind) {
	if !m.collect {
		return
	}
	switch kind {
	case Name, Pointed:
		for _, word := range strings.FieldsFunc(s, space) {
			if !m.ordinary(strings.Trim(word, ".")) {
				m.known.add(word, Name, len(word) >= 8 && kind == Name)
			}
		}
		if strings.ContainsFunc(s, space) || kind == Pointed && len(s) >= 8 {
			m.known.add(s, kind, true)
		}
	case Address, Identifier, Birth:
		m.known.add(s, kind, len(s) >= 8)
	case Phone, Card, IBAN:
		m.known.add(s, kind, true)
		m.known.add(alphanumeric(s), kind, len(s) >= 8)
	case Email:
		m.known.add(s, kind, true)
		local := s[:max(strings.LastIndexByte(s, '@'), 0)]
		if len(local) >= 6 && strings.ContainsAny(local, ".0123456789") { // not a common word
			m.known.add(local, Name, false)
		}
	default:
		sure := true
		if kind == Token {
			s = s[len(tokenPrefix.FindString(s)):]
			sure = len(s) >= 12 || strings.ContainsAny(s, "0123456789") // otherwise it may be an ordinary word
			if m.ordinary(s) {
				return
			}
		}
		m.known.add(s, kind, sure)
	}
}

// ordinary reports whether a word is no name, though it may stand where one does. It is replaced there alone.
func (m *Maker) ordinary(word string) bool {
	word = strings.ToLower(word)
	return nobody[word] != "" || m.words[word]
}

// replace substitutes the found parts of a text; of overlapping ones the longest counts.
func (m *Maker) replace(s string, at spot, found []span) string {
	if len(found) == 0 {
		return s
	}
	slices.SortStableFunc(found, func(a, b span) int { return (b.end - b.start) - (a.end - a.start) })
	var chosen []span
	taken := make([]bool, len(s))
	for _, f := range found {
		if taken[f.start] || taken[f.end-1] { // the other is at least as long
			continue
		}
		for i := f.start; i < f.end; i++ {
			taken[i] = true
		}
		chosen = append(chosen, f)
	}
	slices.SortFunc(chosen, func(a, b span) int { return a.start - b.start })
	var b strings.Builder
	done := 0
	for _, f := range chosen {
		part := s[f.start:f.end]
		put := f.put
		if put == "" {
			m.remember(part, f.kind)
			put = m.fakes.of(f.kind, part)
		}
		b.WriteString(s[done:f.start])
		b.WriteString(put)
		done = f.end
		m.note(at.shown, f.kind)
	}
	b.WriteString(s[done:])
	return b.String()
}

// json edits a JSON object or array in place; ok is false if the text is neither.
func (m *Maker) json(text []byte, at spot, depth int) ([]byte, bool) {
	if !jsondoc.Bracketed(text) {
		return nil, false
	}
	bounds := jsondoc.Bounds{Bytes: MaxBytes, Depth: jsondoc.MaxDepth}
	people := map[string]bool{} // objects that describe a person
	_, err := jsondoc.Rewrite(text, bounds, func(l jsondoc.Leaf) (string, bool) {
		if l.Name && personal(l.Text) {
			people[jsondoc.ShownPointer(l.Path[:len(l.Path)-1])] = true
		}
		return "", false
	})
	if err != nil {
		return nil, false
	}
	names := m.names(text, bounds)
	var before beside
	out, err := jsondoc.Rewrite(text, bounds, func(l jsondoc.Leaf) (string, bool) {
		here := spot{source: at.source, path: slices.Concat(at.path, l.Path), name: l.Member(), shown: at.shown}
		if at.source == "" {
			here.shown += pointer(l.Path, names)
		}
		if l.Name {
			put, changed := names[l.Text]
			if changed {
				m.note(here.shown, m.nameKind(l.Text))
			}
			return put, changed
		}
		here.person = people[jsondoc.ShownPointer(l.Path[:max(len(l.Path)-1, 0)])] // values without an object have none
		if l.Kind == jsondoc.Number {
			return m.number(l.Text, here)
		}
		if before.names(l) {
			here.name = before.text
		}
		if before.text = ""; redact.Sensitive(l.Text) {
			before = beside{slices.Clone(l.Path), l.Text}
		}
		put := m.text(l.Text, here, depth)
		return put, put != l.Text
	})
	return out, err == nil
}

// beside is a text that is a credential's name and may name the next value.
type beside struct {
	path []string
	text string
}

// names reports whether it names the next leaf: in a list of headers, as in ["X-Token", "abc"], or in a sibling member,
// as in {"name": "token", "value": "abc"}.
func (b beside) names(l jsondoc.Leaf) bool {
	last := len(l.Path) - 1
	if b.text == "" || last < 0 || len(b.path) != len(l.Path) || !slices.Equal(b.path[:last], l.Path[:last]) {
		return false
	}
	is := func(name string, known ...string) bool { return slices.Contains(known, strings.ToLower(name)) }
	if at, err := strconv.Atoi(l.Path[last]); err == nil && at%2 == 1 {
		return b.path[last] == strconv.Itoa(at-1) && redact.CredentialHeader(b.text)
	}
	return is(l.Path[last], "value", "val") && is(b.path[last], "name", "key", "header", "field")
}

// names returns the substitutes of member names that contain recognised values: an address, a token, not a word.
func (m *Maker) names(text []byte, bounds jsondoc.Bounds) map[string]string {
	changed := map[string]string{}
	_, _ = jsondoc.Rewrite(text, bounds, func(l jsondoc.Leaf) (string, bool) {
		if !l.Name || changed[l.Text] != "" || len(l.Text) < leastSure {
			return "", false
		}
		found := slices.Concat(m.known.find(l.Text, true), m.detect(l.Text))
		if len(found) > 0 {
			quiet := *m
			quiet.replaced, quiet.lines = nil, map[line]int{}
			if put := quiet.replace(l.Text, spot{}, found); put != l.Text {
				changed[l.Text] = put
			}
		}
		return "", false
	})
	return changed
}

func (m *Maker) nameKind(name string) Kind {
	if found := slices.Concat(m.detect(name), m.known.find(name, true)); len(found) > 0 {
		return found[0].kind
	}
	return Pointed
}

// pointer returns the location of a leaf, with the names of the result.
func pointer(path []string, names map[string]string) string {
	path = slices.Clone(path)
	for i, token := range path {
		if len(token) > maxName { // skip long names: every element of a list repeats the list's name
			path[i] = "…"
		} else if put, changed := names[token]; changed {
			path[i] = put
		}
	}
	return jsondoc.ShownPointer(path)
}

// numberKind returns the kind of a JSON number, or "" for one that stays.
func (m *Maker) numberKind(s string, at spot) Kind {
	if covered(m.pointers, at) {
		return Pointed
	}
	if m.known.exempt[s] {
		return ""
	}
	if kind := m.fieldKind(at, s); kind != "" && !m.keepKinds[kind] {
		return kind
	}
	if len(s) < leastSure {
		return ""
	}
	return wholeKind(s, slices.Concat(m.known.find(s, false), m.detect(s)))
}

// wholeKind returns the kind of a finding that covers the entire text, or "".
func wholeKind(s string, found []span) (kind Kind) {
	for _, f := range found {
		if f.start == 0 && f.end == len(s) {
			kind = f.kind
		}
	}
	return kind
}

// number returns the replacement of a JSON number.
func (m *Maker) number(s string, at spot) (string, bool) {
	if covered(m.keep, at) {
		if m.collect {
			m.known.exempt[lower(s)] = true
		}
		return "", false
	}
	kind := m.numberKind(s, at)
	if kind == "" {
		return "", false
	}
	m.remember(s, kind)
	m.note(at.shown, kind)
	put := m.fakes.of(kind, s)
	if strings.Trim(s, "0123456789") != "" {
		put = figures(s, &numbers{key: m.fakes.key, seed: "figures\x00" + s})
	}
	return put, true
}
