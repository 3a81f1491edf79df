package bundle

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"hookglass/internal/jsondoc"
)

// Bounds of what stands in one another: JSON in a string of JSON, in base64, and so on.
const maxNested = 4

// text is what stands instead of a text.
func (m *Maker) text(s string, at spot, depth int) string {
	if s == "" {
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
	if m.mail && at.name == "content_base64" { // a file, whatever is in it
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
	found := slices.Concat(m.known.find(s, false), m.detect(s), m.escaped(s, false))
	if depth < maxNested {
		found = append(found, m.nested(s, at, depth)...)
	}
	return m.replace(s, at, found)
}

// whole is the substitute of all of a text.
func (m *Maker) whole(s string, at spot, kind Kind) string {
	fakes := kind
	if kind == Pointed || kind == Token { // what it looks like tells how the substitute shall
		fakes = cmp.Or(wholeKind(s, m.detect(s)), kind)
	}
	m.remember(s, fakes)
	m.note(at.shown, kind)
	return m.fakes.of(fakes, s)
}

// remember has a value looked for everywhere else.
func (m *Maker) remember(s string, kind Kind) {
	if !m.collect {
		return
	}
	switch kind {
	case Name, Pointed:
		for _, word := range strings.FieldsFunc(s, space) {
			if plain := strings.ToLower(strings.Trim(word, ".")); !m.words[plain] && nobody[plain] == "" {
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
		if len(local) >= 6 && strings.ContainsAny(local, ".0123456789") { // no word that many have
			m.known.add(local, Name, false)
		}
	default:
		sure := true
		if kind == Token {
			s = s[len(tokenPrefix.FindString(s)):]
			sure = len(s) >= 12 || strings.ContainsAny(s, "0123456789") // else a word, perhaps of the language
			if m.words[strings.ToLower(s)] || nobody[strings.ToLower(s)] != "" {
				return
			}
		}
		m.known.add(s, kind, sure)
	}
}

// replace puts substitutes into a text; of parts that overlap the longest counts.
func (m *Maker) replace(s string, at spot, found []span) string {
	if len(found) == 0 {
		return s
	}
	slices.SortStableFunc(found, func(a, b span) int { return (b.end - b.start) - (a.end - a.start) })
	var chosen []span
	taken := make([]bool, len(s))
	for _, f := range found {
		if taken[f.start] || taken[f.end-1] { // what is there is no shorter
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

// json edits a JSON object or array in place; it is not ok where the text is none.
func (m *Maker) json(text []byte, at spot, depth int) ([]byte, bool) {
	if start := bytes.TrimLeft(jsondoc.Unmarked(text), " \t\r\n"); len(start) == 0 || start[0] != '{' && start[0] != '[' {
		return nil, false
	}
	bounds := jsondoc.Bounds{Bytes: MaxBytes, Depth: jsondoc.MaxDepth}
	people := map[string]bool{} // objects that are about somebody
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
		here.person = people[jsondoc.ShownPointer(l.Path[:max(len(l.Path)-1, 0)])] // a value behind others is in none
		if l.Kind == jsondoc.Number {
			return m.number(l.Text, here)
		}
		if before.names(l) {
			here.name = before.text
		}
		if before.text = ""; m.Sensitive != nil && m.Sensitive(l.Text) {
			before = beside{slices.Clone(l.Path), l.Text}
		}
		put := m.text(l.Text, here, depth)
		return put, put != l.Text
	})
	return out, err == nil
}

// beside is a text that tells of a credential and may name what comes next.
type beside struct {
	path []string
	text string
}

// names reports whether it is the name of the next leaf: in a list of headers, as in ["X-Token", "abc"], or in the
// member beside it, as in {"name": "token", "value": "abc"}.
func (b beside) names(l jsondoc.Leaf) bool {
	last := len(l.Path) - 1
	if b.text == "" || last < 0 || len(b.path) != len(l.Path) || !slices.Equal(b.path[:last], l.Path[:last]) {
		return false
	}
	is := func(name string, known ...string) bool { return slices.Contains(known, strings.ToLower(name)) }
	if at, err := strconv.Atoi(l.Path[last]); err == nil && at%2 == 1 {
		return b.path[last] == strconv.Itoa(at-1) && (strings.Contains(b.text, "-") || is(b.text, "authorization", "cookie"))
	}
	return is(l.Path[last], "value", "val") && is(b.path[last], "name", "key", "header", "field")
}

// names are the substitutes of those members' names that hold what was recognised: an address, a token, not a word.
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

// pointer is where a leaf stands, in the names that the result has.
func pointer(path []string, names map[string]string) string {
	path = slices.Clone(path)
	for i, token := range path {
		if len(token) > maxName { // each element of a list is behind the name of the list, and looking at that is not free
			path[i] = "…"
		} else if put, changed := names[token]; changed {
			path[i] = put
		}
	}
	return jsondoc.ShownPointer(path)
}

// numberKind is what a JSON number was recognised as, "" for one that stays.
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

// wholeKind is the kind of what was found to be all of a text, "" where nothing was.
func wholeKind(s string, found []span) (kind Kind) {
	for _, f := range found {
		if f.start == 0 && f.end == len(s) {
			kind = f.kind
		}
	}
	return kind
}

// number is what stands instead of a JSON number.
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
	if strings.Trim(s, "0123456789") != "" || strings.HasPrefix(put, "0") {
		put = figures(s, &numbers{key: m.fakes.key, seed: "figures\x00" + s})
	}
	return put, true
}
