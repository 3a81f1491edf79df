package jsondoc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hookglass/internal/jsondoc"
)

func TestChildrenAreAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1.0 ,"b":{"c":[ 1 ]}, "a":"}" }`: `a=1.0 b={"c":[ 1 ]} a="}"`,
		` [ null, "[,]" , {"a" : 1}]`:           `0=null 1="[,]" 2={"a" : 1}`,
		`{"a\"\u00e9/~":"\ud83d"}`:              `a"é/~="\ud83d"`,
		`{}`:                                    "", `[]`: "", `"a"`: "", `1`: "", `null`: "", ``: "", `}`: "",
		`{"a":1,"b":`: "a=1",
		`[1,2 3]`:     "0=1 1=2",
		`{"a" 1}`:     "",
	} {
		var got []string
		for name, child := range jsondoc.Children([]byte(text)) {
			got = append(got, name+"="+string(child))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A large text is read where it stands: what is copied are names.
func TestChildrenOfALargeTextAreNotCopied(t *testing.T) {
	text := []byte(`{"a":"` + strings.Repeat("x", 8<<20) + `","b":[` + strings.Repeat("1,", 1<<20) + `1]}`)
	read := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			for range jsondoc.Children(text) {
			}
		}
	})
	if bytes := read.AllocedBytesPerOp(); bytes > 1<<20 {
		t.Errorf("%d bytes for a text of %d", bytes, len(text))
	}
}

func FuzzChildren(f *testing.F) {
	for _, text := range []string{`{"a":[1,{"b":2}],"a":"\ud83d\u0000"}`, `[1,"a",null]`, "{\"\xff\":1}", `{"a":1`, ` [[],{}] `} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := map[string]string{}
		for name, child := range jsondoc.Children(text) {
			if !json.Valid(child) {
				t.Fatalf("%q is no JSON", child)
			}
			got[name] = string(child)
		}
		if !json.Valid(text) {
			return
		}
		want := map[string]json.RawMessage{}
		var list []json.RawMessage
		if json.Unmarshal(text, &list) == nil {
			for i, child := range list {
				want[fmt.Sprint(i)] = child
			}
		} else if json.Unmarshal(text, &want) != nil {
			want = nil
		}
		if len(got) != len(want) {
			t.Fatalf("%q, want %q", got, want)
		}
		for name, child := range want {
			if got[name] != string(child) {
				t.Errorf("%q is %q, want %q", name, got[name], child)
			}
		}
	})
}
