package jsondoc_test

import (
	"strings"
	"testing"

	"hookglass/internal/jsondoc"
)

// Pointers go on in the first thousand fields that hold JSON: strangers may send a million.
func TestAFormOfManyDocuments(t *testing.T) {
	form := jsondoc.Form("c=%EF%BB%BF[8]&" + strings.Repeat("a=[7]&", 1000) + "b=1")
	for pointer, want := range map[string]string{"/a/998/0": "7", "/a/999/0": "", "/a/999": "[7]", "/b": "1", "/c/0": "8", "/c": "\ufeff[8]"} {
		p, err := jsondoc.ParsePointer(pointer)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := form.At(p); ok != (want != "") || ok && v.Text() != want {
			t.Errorf("%s is %s, %t", pointer, v.Text(), ok)
		}
	}
}
