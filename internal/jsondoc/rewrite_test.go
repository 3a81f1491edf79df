package jsondoc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"hookglass/internal/jsondoc"
)

func TestRewriteEditsInPlace(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing changes", " { \"a\" : [ 1.50 , \"x\" ] }\n", " { \"a\" : [ 1.50 , \"x\" ] }\n"},
		{"all else stays", "{\"\\u0061\":\"secret\",\r\n \"b\" :1e3, \"c\":\"caf\\u00e9\"}", "{\"\\u0061\":\"hidden\",\r\n \"b\" :1e3, \"c\":\"caf\\u00e9\"}"},
		{"names repeat", `{"a":"secret","a":"secret"}`, `{"a":"hidden","a":"hidden"}`},
		{"a member's name", `{"secret":{"secret":1}}`, `{"hidden":{"hidden":1}}`},
		{"a number", `[42, 420]`, `[7, 420]`},
		{"what would be no number", `[43]`, `[43]`},
		{"escapes are read and written", `["se\u0063ret", "quote"]`, `["hidden", "\"\n"]`},
		{"lines", "\"secret\"\n{\"a\":42}\n", "\"hidden\"\n{\"a\":7}\n"},
		{"a scalar", "42", "7"},
		{"a byte order mark", "\ufeff [42, \"secret\"]", "\ufeff [7, \"hidden\"]"},
		{"a byte order mark before what stays", "\ufeff[1]", "\ufeff[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := jsondoc.Rewrite([]byte(c.text), jsondoc.Wide(), func(l jsondoc.Leaf) (string, bool) {
				with, ok := map[string]string{"secret": "hidden", "42": "7", "43": "seven", "quote": "\"\n"}[l.Text]
				return with, ok
			})
			if err != nil || string(got) != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestRewriteSaysWhereALeafStands(t *testing.T) {
	var got []string
	_, err := jsondoc.Rewrite([]byte(`{"a":[{"b/c":1},"x"],"d":[["y"]]}`), jsondoc.Wide(), func(l jsondoc.Leaf) (string, bool) {
		kind := "value "
		if l.Name {
			kind = "name "
		}
		got = append(got, kind+l.Pointer()+" "+l.Member()+" "+l.Text)
		return "", false
	})
	want := "name /a a a\nname /a/0/b~1c b/c b/c\nvalue /a/0/b~1c b/c 1\nvalue /a/1 a x\nname /d d d\nvalue /d/0/0 d y"
	if err != nil || strings.Join(got, "\n") != want {
		t.Errorf("%v\n%s", err, strings.Join(got, "\n"))
	}
}

func TestRewriteRefuses(t *testing.T) {
	for _, text := range []string{"", " ", "{", "{]", "nul", `{"a"}`, `"` + "\xff" + `"`, strings.Repeat("[", 5) + strings.Repeat("]", 5), "[1] x", "00", "[][]", strings.Repeat(" ", 64) + "1"} {
		if got, err := jsondoc.Rewrite([]byte(text), jsondoc.Bounds{Bytes: 64, Depth: 4}, func(jsondoc.Leaf) (string, bool) { return "", false }); !errors.Is(err, jsondoc.ErrNotJSON) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{strings.Repeat("[", 4) + strings.Repeat("]", 4), strings.Repeat(" ", 63) + "1"} {
		if _, err := jsondoc.Rewrite([]byte(text), jsondoc.Bounds{Bytes: 64, Depth: 4}, func(jsondoc.Leaf) (string, bool) { return "", false }); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is JSON stays JSON of the same shape, whatever the leaves become; what is not changed stays byte for byte.
func FuzzRewrite(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"b",null,true]}`, "[1e5, \"\\ud800\"]", `{"a":1,"a":2}`, "1 2", ` {"x" : {} }`} {
		f.Add([]byte(seed), "put\n\"")
	}
	f.Fuzz(func(t *testing.T, text []byte, put string) {
		same, err := jsondoc.Rewrite(text, jsondoc.Wide(), func(jsondoc.Leaf) (string, bool) { return "", false })
		if err != nil {
			return
		}
		if !bytes.Equal(same, text) {
			t.Fatalf("%q became %q", text, same)
		}
		leaves := 0
		changed, err := jsondoc.Rewrite(text, jsondoc.Wide(), func(l jsondoc.Leaf) (string, bool) {
			leaves++
			if l.Kind == jsondoc.Number {
				return "12", true
			}
			return put, !l.Name
		})
		if err != nil || json.Valid(text) && !json.Valid(changed) {
			t.Fatalf("%q became %q: %v", text, changed, err)
		}
		again := 0
		if _, err := jsondoc.Rewrite(changed, jsondoc.Bounds{Bytes: 1 << 30, Depth: jsondoc.MaxDepth}, func(jsondoc.Leaf) (string, bool) { again++; return "", false }); err != nil || again != leaves {
			t.Fatalf("%d leaves became %d: %v", leaves, again, err)
		}
	})
}
