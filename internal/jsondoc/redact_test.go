package jsondoc_test

import (
	"fmt"
	"strings"
	"testing"

	"hookglass/internal/jsondoc"
)

// Members behind a long name are all hidden, and the places where that happened take no more than a bounded memory.
func TestPlacesOfARedactionAreBounded(t *testing.T) {
	const members, name = 5_000, 100_000
	var b strings.Builder
	fmt.Fprintf(&b, `{"%s":{"m":0`, strings.Repeat("n", name))
	for i := range members {
		fmt.Fprintf(&b, `,"m%d":1`, i)
	}
	b.WriteString("}}")
	v, err := jsondoc.Parse([]byte(b.String()), jsondoc.Wide())
	if err != nil {
		t.Fatal(err)
	}
	shown, paths := v.Redact(jsondoc.Redaction{
		Text:   func(s string) string { return s },
		Hidden: func(name string, v jsondoc.Value) (string, bool) { return "x", v.Scalar() },
	})
	if hidden := strings.Count(string(shown.Bytes()), `"x"`); hidden != members+1 {
		t.Errorf("%d members are hidden", hidden)
	}
	if size := len(strings.Join(paths, "")); size < 1<<20 || size > 2<<20 {
		t.Errorf("%d places have %d bytes", len(paths), size)
	}
}
