package bundle

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hookglass/internal/jsondoc"
)

// Bounds of what stands in one another: JSON in a string of JSON, in base64, and so on.
const maxNested = 4

// runForm finds what may be base64 or hexadecimal.
var runForm = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}={0,2}`)

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
		return s
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
		for _, found := range m.detect(s) {
			if found.start == 0 && found.end == len(s) {
				fakes = found.kind
			}
		}
	}
	m.remember(s, fakes)
	m.note(at.shown, kind, 1)
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
		m.note(at.shown, f.kind, 1)
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
				m.note(here.shown, m.nameKind(l.Text), 1)
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

// number is what stands instead of a JSON number.
func (m *Maker) number(s string, at spot) (string, bool) {
	kind := Kind("")
	switch {
	case covered(m.keep, at):
		if m.collect {
			m.known.exempt[lower(s)] = true
		}
		return "", false
	case covered(m.pointers, at):
		kind = Pointed
	case m.known.exempt[s]:
		return "", false
	default:
		if kind = m.fieldKind(at, s); kind == "" || m.keepKinds[kind] {
			if kind = ""; len(s) >= leastSure {
				for _, found := range slices.Concat(m.known.find(s, false), m.detect(s)) {
					if found.start == 0 && found.end == len(s) {
						kind = found.kind
					}
				}
			}
		}
	}
	if kind == "" {
		return "", false
	}
	m.remember(s, kind)
	m.note(at.shown, kind, 1)
	put := m.fakes.of(kind, s)
	if strings.Trim(s, "0123456789") != "" || strings.HasPrefix(put, "0") {
		put = figures(s, &numbers{key: m.fakes.key, seed: "figures\x00" + s})
	}
	return put, true
}

// nested finds base64 and hexadecimal text that holds what is replaced, and has it edited inside where it is text.
func (m *Maker) nested(s string, at spot, depth int) (found []span) {
	found = append(found, m.encoded(s, false)...)
	for _, r := range runForm.FindAllStringIndex(s, -1) {
		run := s[r[0]:r[1]]
		code, text := codeOf(run)
		if code == nil {
			continue
		}
		inside := at
		inside.name, inside.path, inside.source = "", append(slices.Clone(at.path), "\x00"), at.source
		if put := m.text(text, inside, depth+1); put != text {
			found = append(found, span{start: r[0], end: r[1], kind: Encoded, put: code(put)})
		}
	}
	// What could be edited inside comes before what is the same part and could not.
	slices.SortStableFunc(found, func(a, b span) int { return len(b.put) - len(a.put) })
	return found
}

// encoded lists runs of base64 and hexadecimal that hold known values, at whatever place they begin.
func (m *Maker) encoded(s string, sure bool) (found []span) {
	if len(m.known.entries) == 0 {
		return nil
	}
	for _, r := range runForm.FindAllStringIndex(s, -1) {
		run := s[r[0]:r[1]]
		for _, plain := range readings(run) {
			if len(m.known.find(plain, sure)) > 0 {
				found = append(found, span{start: r[0], end: r[1], kind: Encoded})
				break
			}
		}
	}
	return found
}

// readings are the bytes that a run may stand for, from each place at which its groups may begin.
func readings(run string) (all []string) {
	std := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(run)
	for start := range 4 {
		if text := std[min(start, len(std)):]; len(text) >= 8 {
			text = text[:len(text)-len(text)%4]
			if b, err := base64.StdEncoding.DecodeString(text); err == nil {
				tail := std[min(start, len(std))+len(text):]
				if rest, err := base64.RawStdEncoding.DecodeString(tail); err == nil {
					b = append(b, rest...)
				}
				all = append(all, string(b))
			}
		}
	}
	for part := range strings.FieldsFuncSeq(run, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }) {
		for start := range 2 {
			if text := part[min(start, len(part)):]; len(text) >= 12 {
				if b, err := hex.DecodeString(text[:len(text)&^1]); err == nil {
					all = append(all, string(b))
				}
			}
		}
	}
	return all
}

// codeOf reads a run that is readable text in base64 or hexadecimal, and says how text is written in its way; nil where
// it is neither.
func codeOf(run string) (code func(string) string, text string) {
	if len(run)%2 == 0 {
		if b, err := hex.DecodeString(run); err == nil && readable(b) {
			if strings.ToUpper(run) == run {
				return func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }, string(b)
			}
			return func(s string) string { return hex.EncodeToString([]byte(s)) }, string(b)
		}
	}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := e.Strict().DecodeString(run); err == nil && readable(b) {
			return func(s string) string { return e.EncodeToString([]byte(s)) }, string(b)
		}
	}
	return nil, ""
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

// escaped finds parts of a text that hold what is replaced in the escapes of URLs or of HTML.
func (m *Maker) escaped(s string, sure bool) (found []span) {
	for _, way := range escapes {
		if strings.IndexByte(s, way.mark) < 0 {
			continue
		}
		plain, at := way.plain(s)
		spans := m.known.find(plain, sure)
		if !sure && utf8.ValidString(plain) {
			spans = append(spans, m.detect(plain)...)
		}
		for _, f := range spans {
			start, end := at[f.start], at[f.end]
			if strings.IndexByte(s[start:end], way.mark) >= 0 {
				value := plain[f.start:f.end]
				m.remember(value, f.kind)
				found = append(found, span{start: start, end: end, kind: f.kind, put: way.write(m.fakes.of(f.kind, value))})
			}
		}
	}
	return found
}

// escape is a way in which characters stand for others: how it begins, how it is read and how a value is written in it.
type escape struct {
	mark  byte
	read  func(s string) (plain string, n int) // what s begins with stands for; n is 0 where it is no escape
	write func(string) string
}

var escapes = []escape{{'%', readPercent, percent}, {'&', readReference, html.EscapeString}}

// plain is a text without its escapes, and where each byte of it stood.
func (e escape) plain(s string) (string, []int) {
	var plain strings.Builder
	at := make([]int, 0, len(s)+1)
	for i := 0; i < len(s); {
		text, n := s[i:i+1], 1
		if s[i] == e.mark {
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
	return plain.String(), append(at, len(s))
}

func readPercent(s string) (string, int) {
	if len(s) > 2 {
		if b, err := hex.DecodeString(s[1:3]); err == nil {
			return string(b), 3
		}
	}
	return "", 0
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

// percent writes a value as it may stand in every part of a URL.
func percent(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
