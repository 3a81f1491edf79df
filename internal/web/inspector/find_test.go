package inspector_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"hookglass/internal/web/inspector"
)

func TestFindReadsNamesAndValuesOfTheWholeBody(t *testing.T) {
	body := `{"a/b":[{"Needle":1},"a needle here",{"x":{"needle~":{}}}],"rows":[` + strings.Repeat(`{"id":1},`, 200_000) + `{"last":"NEEDLE"}]}`
	found, more := inspector.Find([]byte(body), "", "", "needle")
	want := []inspector.Found{
		{Pointer: "/a~1b/0/Needle", Text: "1"}, {Pointer: "/a~1b/1", Text: `"a needle here"`},
		{Pointer: "/a~1b/2/x/needle~0", Text: "{…"}, {Pointer: "/rows/200000/last", Text: `"NEEDLE"`},
	}
	if len(found) != len(want) || more {
		t.Fatalf("found %v, more %v", found, more)
	}
	for i := range want {
		if found[i] != want[i] {
			t.Errorf("found %v, want %v", found[i], want[i])
		}
	}
	if found, more := inspector.Find([]byte(`[`+strings.Repeat(`1,`, 200)+`1]`), "", "", "1"); len(found) != 100 || !more {
		t.Errorf("%d found, more %v", len(found), more)
	}
	form := "payload=%7B%22a%22%3A%5B%22Needle%22%5D%7D&x=a+needle&needle=%5B1&n=1&marked=%EF%BB%BF%5B%22needle%22%5D"
	if found, _ := inspector.Find([]byte(form), "application/x-www-form-urlencoded", "", "needle"); !slices.Equal(found, []inspector.Found{
		{Pointer: "/payload/a/0", Text: `"Needle"`}, {Pointer: "/x", Text: `"a needle"`}, {Pointer: "/needle", Text: `"[1"`}, {Pointer: "/marked/0", Text: `"needle"`},
	}) {
		t.Errorf("in a form: %v", found)
	}
	if found, _ := inspector.Find([]byte(`{"needle":1`), "", "", "needle"); len(found) != 1 {
		t.Errorf("in a body that is cut: %v", found)
	}
}

// Each place is told in a few words, however long the names are that it stands behind.
func TestPlacesBehindLongNamesAreShort(t *testing.T) {
	body := `{"` + strings.Repeat("a", 1<<20) + `":[` + strings.Repeat(`"needle",`, 99) + `"needle"]}`
	found, _ := inspector.Find([]byte(body), "", "", "needle")
	size := 0
	for _, f := range found {
		size += len(f.Pointer)
	}
	if len(found) != 100 || size > 200<<10 || !strings.HasPrefix(found[0].Pointer, "/aaaa") || !strings.HasSuffix(found[0].Pointer, "…") {
		t.Errorf("%d places are told in %d bytes, the first %.20s", len(found), size, found[0].Pointer)
	}
}

// What is copied or followed is the whole pointer; one that is cut is offered for neither.
func TestAPointerThatIsCutLeadsNowhere(t *testing.T) {
	for name, c := range map[string]struct {
		key, pointer string
		cut          bool
	}{
		"whole":           {strings.Repeat("a", 999), "/" + strings.Repeat("a", 999), false},
		"longer":          {strings.Repeat("a", 1000), "/" + strings.Repeat("a", 999) + "…", true},
		"escaped":         {strings.Repeat("/", 500), "/" + strings.Repeat("~1", 499) + "~…", true},
		"a real ellipsis": {"a…", "/a…", false},
		"odd letters":     {"a\u202eb", "/a\u202eb", false},
	} {
		body, _ := json.Marshal(map[string]string{c.key: "needle"})
		found, _ := inspector.Find(body, "", "", "needle")
		if len(found) != 1 || found[0].Pointer != c.pointer || found[0].Cut != c.cut {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		var page strings.Builder
		if err := inspector.FoundIn(found, false).Render(t.Context(), &page); err != nil {
			t.Fatal(err)
		}
		if led := strings.Contains(page.String(), "data-go-pointer") || strings.Contains(page.String(), "data-copy"); led == c.cut {
			t.Errorf("%s: %s", name, page.String())
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",null]}`), "x")
	f.Fuzz(func(_ *testing.T, body []byte, text string) { inspector.Find(body, "", "", text) })
}
