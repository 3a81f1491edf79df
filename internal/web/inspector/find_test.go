package inspector_test

import (
	"strings"
	"testing"

	"hookglass/internal/web/inspector"
)

func TestFindReadsNamesAndValuesOfTheWholeBody(t *testing.T) {
	body := `{"a/b":[{"Needle":1},"a needle here",{"x":{"needle~":{}}}],"rows":[` + strings.Repeat(`{"id":1},`, 200_000) + `{"last":"NEEDLE"}]}`
	found, more := inspector.Find([]byte(body), "", "needle")
	want := []inspector.Found{{"/a~1b/0/Needle", "1"}, {"/a~1b/1", `"a needle here"`}, {"/a~1b/2/x/needle~0", "{…"}, {"/rows/200000/last", `"NEEDLE"`}}
	if len(found) != len(want) || more {
		t.Fatalf("found %v, more %v", found, more)
	}
	for i := range want {
		if found[i] != want[i] {
			t.Errorf("found %v, want %v", found[i], want[i])
		}
	}
	if found, more := inspector.Find([]byte(`[`+strings.Repeat(`1,`, 200)+`1]`), "", "1"); len(found) != 100 || !more {
		t.Errorf("%d found, more %v", len(found), more)
	}
	if found, _ := inspector.Find([]byte(`{"needle":1`), "", "needle"); len(found) != 1 {
		t.Errorf("in a body that is cut: %v", found)
	}
}

// Each place is told in a few words, however long the names are that it stands behind.
func TestPlacesBehindLongNamesAreShort(t *testing.T) {
	body := `{"` + strings.Repeat("a", 1<<20) + `":[` + strings.Repeat(`"needle",`, 99) + `"needle"]}`
	found, _ := inspector.Find([]byte(body), "", "needle")
	size := 0
	for _, f := range found {
		size += len(f.Pointer)
	}
	if len(found) != 100 || size > 200<<10 || !strings.HasPrefix(found[0].Pointer, "/aaaa") || !strings.HasSuffix(found[0].Pointer, "…") {
		t.Errorf("%d places are told in %d bytes, the first %.20s", len(found), size, found[0].Pointer)
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",null]}`), "x")
	f.Fuzz(func(_ *testing.T, body []byte, text string) { inspector.Find(body, "", text) })
}
