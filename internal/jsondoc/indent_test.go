package jsondoc_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"hookglass/internal/jsondoc"
)

func TestIndentedJSONHasNoMoreBytesThanAreAllowed(t *testing.T) {
	for _, text := range []string{`{}`, `[]`, `0`, `"[,\"]{"`, `{"a":[1,{"b":null,"c":[]},"\\"],"d":{}}`, ` [ 1 , 2 ] `, `[[[[[[[]]]]]]]`} {
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(text), "", "  "); err != nil {
			t.Fatal(err)
		}
		got, ok := jsondoc.Indent([]byte(text), "  ", 1000)
		if !ok || string(got) != want.String() {
			t.Errorf("%s is indented as %q, %v, want %q", text, got, ok, want.String())
		}
		if got, ok := jsondoc.Indent([]byte(text), "  ", want.Len()-1); ok {
			t.Errorf("%s became %d bytes, of %d that are allowed", text, len(got), want.Len()-1)
		}
	}
	for _, text := range []string{``, `{`, `]`, `"`, `"\`, `[1,]`, `]]]][[[[`} {
		if got, ok := jsondoc.Indent([]byte(text), "  ", 1000); ok {
			t.Errorf("%s is no JSON, but became %q", text, got)
		}
	}
}

// Deep nesting costs nothing: what would be 80 MB is not made.
func TestDeepJSONIsNotIndented(t *testing.T) {
	deep := []byte(strings.Repeat("[", 9000) + strings.Repeat("]", 9000))
	if got, ok := jsondoc.Indent(deep, "  ", 1<<20); ok {
		t.Errorf("it became %d bytes", len(got))
	}
}

func FuzzIndent(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}]}`), 40)
	f.Add([]byte(`[[],{},"\"]"]`), 20)
	f.Fuzz(func(t *testing.T, text []byte, most int) {
		got, ok := jsondoc.Indent(text, "  ", most)
		if ok && (len(got) > most || !json.Valid(text)) {
			t.Errorf("%q became %d bytes, of %d that are allowed", text, len(got), most)
		}
	})
}
