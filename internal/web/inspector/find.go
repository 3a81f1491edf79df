package inspector

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"hookglass/internal/web/show"
)

// Found is a place in a JSON body.
type Found struct {
	Pointer string // RFC 6901
	Text    string // the value, shortened; of an object or array: its mark
}

// maxFound bounds what one search lists.
const maxFound = 100

// Find looks for text in the names and scalar values of a whole JSON body, without regard to the case of ASCII letters.
// more says that it stopped at the bound.
func Find(body []byte, encoding, text string) (found []Found, more bool) {
	if plain, ok := decode(body, encoding); ok {
		body = plain
	}
	f := finder{Decoder: json.NewDecoder(bytes.NewReader(body)), text: strings.ToLower(text)}
	f.UseNumber()
	_ = f.value("", false, 0) // what can not be read ends the search
	return f.found, f.more
}

type finder struct {
	*json.Decoder
	text  string
	found []Found
	more  bool
}

func (f *finder) has(s string) bool { return strings.Contains(strings.ToLower(s), f.text) }

func (f *finder) add(pointer, text string) {
	if len(f.found) == maxFound {
		f.more = true
		return
	}
	text, _ = show.Cut(text, 200)
	f.found = append(f.found, Found{show.Line(pointer), show.Line(text)})
}

// value reads one value; named says that its name has the text.
func (f *finder) value(pointer string, named bool, depth int) error {
	token, err := f.Token()
	if err != nil || f.more || depth > 1000 {
		return errBound
	}
	switch v := token.(type) {
	case json.Delim:
		if named {
			f.add(pointer, string(rune(v))+"…")
		}
		for n := 0; f.More(); n++ {
			at, has := strconv.Itoa(n), false
			if v == '{' {
				key, err := f.Token()
				if err != nil {
					return err
				}
				name, _ := key.(string)
				at, has = strings.NewReplacer("~", "~0", "/", "~1").Replace(name), f.has(name)
			}
			if err := f.value(pointer+"/"+at, has, depth+1); err != nil {
				return err
			}
		}
		_, err := f.Token()
		return err
	case string:
		if named || f.has(v) {
			f.add(pointer, quote(v))
		}
	case json.Number:
		if named || f.has(v.String()) {
			f.add(pointer, v.String())
		}
	case bool:
		if named || f.has(strconv.FormatBool(v)) {
			f.add(pointer, strconv.FormatBool(v))
		}
	default:
		if named || f.has("null") {
			f.add(pointer, "null")
		}
	}
	return nil
}
