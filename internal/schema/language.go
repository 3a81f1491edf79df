package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Code returns types of a language, go or ts, for bodies of this schema; name is the name of the outermost.
func (s *Schema) Code(language, name string) string {
	w := &writer{used: map[string]bool{}, golang: language == "go"}
	whole := w.unique(identifier(name))
	place := whole
	if r := s.Root; r != nil && r.Types[Object] != nil && len(r.types()) > 1 { // the body is not always an object
		place = w.unique(whole + "Object")
	}
	root := w.kind(s.Root, place)
	if len(w.made) == 0 || !s.Root.structured() {
		w.made = append(w.made, w.pick("type "+whole+" "+root, "export type "+whole+" = "+root+";")+"\n")
	}
	slices.Reverse(w.made) // the outermost first
	if w.times {
		w.made = slices.Insert(w.made, 0, "// time.Time needs: import \"time\"\n")
	}
	return strings.Join(w.made, "\n")
}

// structured reports whether a place holds only objects, with named members.
func (n *Node) structured() bool {
	all := n.types()
	return len(all) == 1 && all[0] == Object && len(n.Members) > 0
}

type writer struct {
	golang bool
	times  bool // time.Time is used
	used   map[string]bool
	made   []string
}

func (w *writer) unique(name string) string {
	made := name
	for i := 2; w.used[made]; i++ {
		made = fmt.Sprintf("%s%d", name, i)
	}
	w.used[made] = true
	return made
}

// kind returns the type of a place; name is the name to give it if it is an object.
func (w *writer) kind(n *Node, name string) string {
	if n == nil || n.N == 0 {
		return w.pick("any", "unknown")
	}
	var kinds []string
	null := false
	for _, t := range n.types() {
		switch t {
		case Null:
			null = true
		case Object:
			kinds = append(kinds, w.object(n, name))
		case Array:
			item := w.kind(n.Items, w.unique(name+"Item"))
			if !w.golang && strings.Contains(item, "|") {
				item = "(" + item + ")"
			}
			kinds = append(kinds, w.pick("[]"+item, item+"[]"))
		case String:
			kinds = append(kinds, w.text(n))
		case Number:
			kinds = append(kinds, w.pick("float64", "number"))
		case Integer:
			kinds = append(kinds, w.pick("int64", "number"))
		case Boolean:
			kinds = append(kinds, w.pick("bool", "boolean"))
		}
	}
	if !w.golang {
		if null || len(kinds) == 0 {
			kinds = append(kinds, "null")
		}
		return strings.Join(kinds, " | ")
	}
	switch {
	case len(kinds) != 1:
		return "any"
	case null && !strings.HasPrefix(kinds[0], "[]") && !strings.HasPrefix(kinds[0], "map["):
		return "*" + kinds[0]
	}
	return kinds[0]
}

func (w *writer) pick(golang, ts string) string {
	if w.golang {
		return golang
	}
	return ts
}

func (w *writer) text(n *Node) string {
	if w.golang {
		if n.format() == "date-time" {
			w.times = true
			return "time.Time"
		}
		return "string"
	}
	if words := n.closed(); words != nil {
		quoted := make([]string, len(words))
		for i, word := range words {
			quoted[i] = fmt.Sprintf("%q", word)
		}
		return strings.Join(quoted, " | ")
	}
	return "string"
}

func (w *writer) object(n *Node, name string) string {
	if len(n.Members) == 0 {
		return w.pick("map[string]", "Record<string, ") + w.kind(n.Rest, w.unique(name+"Value")) + w.pick("", ">")
	}
	var b strings.Builder
	b.WriteString(w.pick("type "+name+" struct {\n", "export interface "+name+" {\n"))
	fields := map[string]bool{}
	var rows [][3]string // of Go: name, type and tag of fields whose columns are aligned
	for _, key := range sortedNames(n.Members) {
		m := n.Members[key]
		if m.N == 0 {
			continue
		}
		part := identifier(key)
		kind := w.kind(m, w.unique(name+part))
		if !w.golang {
			b.WriteString("  " + property(key))
			if !n.always(m) {
				b.WriteString("?")
			}
			b.WriteString(": " + kind + ";\n")
			continue
		}
		for i := 2; fields[part]; i++ {
			part = fmt.Sprintf("%s%d", identifier(key), i)
		}
		fields[part] = true
		omit := ""
		switch {
		case !n.always(m) && (kind == "time.Time" || m.structured()): // omitempty omits no struct
			omit = ",omitzero"
		case !n.always(m):
			omit = ",omitempty"
		case key == "-": // json:"-" would omit the field
			omit = ","
		}
		if strings.ContainsFunc(key, notOfTag) {
			align(&b, rows)
			rows = rows[:0]
			b.WriteString("\t// left out: a member whose name cannot be written in a tag\n")
			continue
		}
		rows = append(rows, [3]string{part, kind, "`json:\"" + key + omit + "\"`"})
	}
	align(&b, rows)
	if !w.golang && n.Rest != nil && n.Rest.N > 0 {
		b.WriteString("  [name: string]: unknown;\n")
	}
	b.WriteString("}\n")
	w.made = append(w.made, b.String())
	return name
}

// align writes fields of a struct of Go in columns, as gofmt does.
func align(b *strings.Builder, rows [][3]string) {
	var wide [2]int
	for _, r := range rows {
		for i := range wide {
			wide[i] = max(wide[i], utf8.RuneCountInString(r[i]))
		}
	}
	for _, r := range rows {
		fmt.Fprintf(b, "\t%-*s %-*s %s\n", wide[0], r[0], wide[1], r[1], r[2])
	}
}

// notOfTag reports characters that encoding/json does not accept in a tag's name; it would use the field's name
// instead.
func notOfTag(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
}

// property returns a member's name in TypeScript.
func property(key string) string {
	for i, r := range key {
		if !(r == '_' || r == '$' || r < 0x80 && unicode.IsLetter(r) || i > 0 && r >= '0' && r <= '9') {
			quoted, _ := json.Marshal(key) // of a string it never fails
			return string(quoted)
		}
	}
	return key
}

// initialisms are written in capitals in Go.
var initialisms = []string{"api", "html", "http", "https", "id", "ip", "json", "sha", "url", "uri", "uuid"}

// identifier derives an exported name from any text.
func identifier(text string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r >= 0x80 || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if slices.Contains(initialisms, strings.ToLower(part)) {
			b.WriteString(strings.ToUpper(part))
			continue
		}
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	name := b.String()
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "X" + name
	}
	return name
}
