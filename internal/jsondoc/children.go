package jsondoc

import (
	"bytes"
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Children yields what is directly within an object, by name, or an array, by index, in its order and as it is written.
// A name that is repeated comes again. Nothing of the text is copied but names, so it may be of any size. There is
// nothing within another value, nor behind the place where a text stops being JSON.
func Children(text []byte) iter.Seq2[string, []byte] {
	return func(yield func(name string, child []byte) bool) {
		dec := jsontext.NewDecoder(bytes.NewBuffer(text), halves, jsontext.AllowDuplicateNames(true))
		begin, err := dec.ReadToken()
		object := begin.Kind() == jsontext.KindBeginObject
		if err != nil || !object && begin.Kind() != jsontext.KindBeginArray {
			return
		}
		r := reader{text, dec}
		for i := 0; r.more(); i++ {
			name := strconv.Itoa(i)
			if object {
				t, err := dec.ReadToken()
				if err != nil {
					return
				}
				name = t.String()
			}
			child, err := dec.ReadValue()
			if err != nil {
				return
			}
			end := int(dec.InputOffset())
			if !yield(name, text[end-len(child):end:end]) {
				return
			}
		}
	}
}
