package inspector

import (
	"encoding/json"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/jsondoc"
	"hookglass/internal/web/show"
)

// Found is a place in a JSON body.
type Found struct {
	Pointer string // RFC 6901
	Cut     bool   // Pointer is shortened for display and leads nowhere
	Text    string // the value, shortened; of an object or array its bracket
}

// maxFound bounds the results of a search.
const maxFound = 100

// Find searches the names and scalar values of a whole JSON body, or of a form and the JSON in its fields, for text,
// ignoring case. more says that it stopped at the bound.
func Find(body []byte, contentType, encoding, text string) (found []Found, more bool) {
	if plain, ok := coding.Beginning(body, encoding, maxDecoded); ok {
		body = plain
	}
	if !isText(body) {
		if plain, name := coding.Text(body, contentType, maxDecoded); name != "" {
			body = plain
		}
	}
	f := finder{text: strings.ToLower(text)}
	if document := string(jsondoc.Unmarked(body)); jsondoc.Bracketed(document) || !hookglass.IsForm(contentType) {
		f.in(document, false)
		return f.found, f.more
	}
	parsed := 0
	for name, value := range hookglass.Pairs(string(body)) {
		name, value = hookglass.Readable(name), hookglass.Readable(value)
		f.path = append(f.path[:0], place{name, -1})
		document := jsondoc.Unmarked(value)
		if parsed < jsondoc.MaxParsed && jsondoc.Bracketed(document) && json.Valid([]byte(document)) {
			parsed++
			f.in(document, f.has(name))
		} else if f.has(name) || f.has(value) {
			f.add(quote(value))
		}
		if f.more {
			break
		}
	}
	return f.found, f.more
}

// in searches a JSON text, up to a syntax error.
func (f *finder) in(text string, named bool) {
	f.Decoder = json.NewDecoder(strings.NewReader(text))
	f.UseNumber()
	_ = f.value(named)
}

type finder struct {
	*json.Decoder
	text  string
	path  []place // from the root to the current value
	found []Found
	more  bool
}

// place is a step of a path: a name or an index.
type place struct {
	name  string
	index int // -1: name counts
}

// pointer returns the pointer of the current value. It is shortened if names are too long to read, because a long name
// may be part of many results.
func (f *finder) pointer() (shown string, whole bool) {
	path := make([]string, len(f.path))
	for i, p := range f.path {
		if path[i] = p.name; p.index >= 0 {
			path[i] = strconv.Itoa(p.index)
		}
	}
	return jsondoc.PointerOf(path)
}

func (f *finder) has(s string) bool { return strings.Contains(strings.ToLower(s), f.text) }

func (f *finder) add(text string) {
	if len(f.found) == maxFound {
		f.more = true
		return
	}
	text, _ = show.Cut(text, 200)
	pointer, whole := f.pointer()
	f.found = append(f.found, Found{pointer, !whole, show.Line(text)})
}

// value reads one value. named says that its name contains the text.
func (f *finder) value(named bool) error {
	token, err := f.Token()
	if err != nil || f.more || len(f.path) > 1000 {
		return errBound
	}
	switch v := token.(type) {
	case json.Delim:
		if named {
			f.add(string(rune(v)) + "…")
		}
		for n := 0; f.More(); n++ {
			at, has := place{index: n}, false
			if v == '{' {
				key, err := f.Token()
				if err != nil {
					return err
				}
				name, _ := key.(string)
				at, has = place{name, -1}, f.has(name)
			}
			f.path = append(f.path, at)
			if err := f.value(has); err != nil {
				return err
			}
			f.path = f.path[:len(f.path)-1]
		}
		_, err := f.Token()
		return err
	case string:
		if named || f.has(v) {
			f.add(quote(v))
		}
	case json.Number:
		if named || f.has(v.String()) {
			f.add(v.String())
		}
	case bool:
		if named || f.has(strconv.FormatBool(v)) {
			f.add(strconv.FormatBool(v))
		}
	default:
		if named || f.has("null") {
			f.add("null")
		}
	}
	return nil
}
