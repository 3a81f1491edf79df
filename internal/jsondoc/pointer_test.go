package jsondoc_test

import (
	"strings"
	"testing"

	"hookglass/internal/jsondoc"
)

// The examples of RFC 6901, section 5, and what its grammar refuses.
func TestPointersFind(t *testing.T) {
	doc := parsed(t, `{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8,"-":9,"01":10,"~1":11,
		"n":null,"many":[0,1,2,3,4,5,6,7,8,9,10]}`)
	for pointer, want := range map[string]string{
		"/foo": `["bar","baz"]`, "/foo/0": `"bar"`, "/foo/1": `"baz"`, "/": "0", "/a~1b": "1", "/c%d": "2", "/e^f": "3", "/g|h": "4",
		`/i\j`: "5", `/k"l`: "6", "/ ": "7", "/m~0n": "8", "/-": "9", "/01": "10", "/~01": "11", "/n": "null", "/many/10": "10",
	} {
		p, err := jsondoc.ParsePointer(pointer)
		if err != nil {
			t.Errorf("%s: %v", pointer, err)
			continue
		}
		if p.String() != pointer {
			t.Errorf("%s is written as %s", pointer, p)
		}
		if v, ok := doc.At(p); !ok || string(v.Bytes()) != want {
			t.Errorf("%s finds %s, want %s", pointer, v.Bytes(), want)
		}
	}
	if v, ok := doc.At(jsondoc.Pointer{}); !ok || !jsondoc.Same(v, doc) {
		t.Error("the empty pointer does not mean the whole value")
	}
	for _, pointer := range []string{
		"/foo/2", "/foo/-", "/foo/00", "/foo/01", "/many/010", "/foo/-1", "/foo/+1", "/foo/1.0", "/foo/1e0", "/foo/", "/foo/ 1", "/foo/0x1",
		"/foo/1000000000", "/foo/18446744073709551616", "/foo/99999999999999999999999", "/foo/0/0", "/n/a", "/nothing", "//", "/foo/٠",
	} {
		p, err := jsondoc.ParsePointer(pointer)
		if err != nil {
			t.Errorf("%s: %v", pointer, err)
		} else if v, ok := doc.At(p); ok {
			t.Errorf("%s finds %s", pointer, v.Bytes())
		}
	}
	for _, pointer := range []string{"foo", " ", "#/foo", "/~", "/~2", "/a~", "/a/~/b", "/~~0", "/m~n"} {
		if _, err := jsondoc.ParsePointer(pointer); err == nil {
			t.Errorf("%q is no pointer", pointer)
		}
	}
}

func FuzzPointer(f *testing.F) {
	for _, seed := range []string{"", "/", "/a~1b/m~0n/0", "/~2", "a", "/~01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := jsondoc.ParsePointer(s)
		if err != nil {
			return
		}
		if p.String() != s {
			t.Fatalf("%q is written as %q", s, p)
		}
		// What its tokens name is what it finds.
		v := jsondoc.Int(1)
		tokens := p.Tokens()
		for i := len(tokens) - 1; i >= 0; i-- {
			if strings.ToValidUTF8(tokens[i], "�") != tokens[i] {
				return
			}
			v = jsondoc.Members(jsondoc.Member{Name: tokens[i], Value: v})
		}
		if found, ok := v.At(p); !ok || found.Text() != "1" {
			t.Fatalf("%q does not find its own", s)
		}
	})
}
