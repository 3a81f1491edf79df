package jsondoc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hookglass/internal/jsondoc"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct{ left, right, want string }{
		{`{"a":1,"b":[1,2]}`, `{"b":[1.0,2],"a":10e-1}`, ``},
		{`{"a":1}`, `{"a":"1"}`, `/a 1 "1"`},
		{`{"a":null}`, `{}`, `/a null -`},
		{`{"a":"x"}`, `{"a":"y"}`, `/a "x" "y"`},
		{`[1,[2,4]]`, `[1,[3,4]]`, `/1/0 2 3`},
		{`{"a":1,"b":1}`, `{"a":1,"c":1}`, `/b 1 - | /c - 1`},
		{`{}`, `{"a/b":{"c":1}}`, `/a~1b - {"c":1}`},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"c":3,"d":4}}`, `/a/b 1 - | /a/c 2 3 | /a/d - 4`},
		{`[1,2,3]`, `[1,3]`, `/1 2 3 | /2 3 -`},
		{`[1]`, `[1,[2]]`, `/1 - [2]`},
		{`[]`, `{}`, ` [] {}`},
		{`{"a":[]}`, `{"a":{}}`, `/a [] {}`},
		{`true`, `false`, ` true false`},
		{`null`, `null`, ``},
	} {
		found, more := jsondoc.Diff(parsed(t, c.left), parsed(t, c.right), 100)
		var got []string
		side := func(v *jsondoc.Value) string {
			if v == nil {
				return "-"
			}
			return string(v.Bytes())
		}
		for _, d := range found {
			got = append(got, fmt.Sprint(d.Path, " ", side(d.Left), " ", side(d.Right)))
		}
		if strings.Join(got, " | ") != c.want || more {
			t.Errorf("%s and %s: %s", c.left, c.right, strings.Join(got, " | "))
		}
		if same := jsondoc.Same(parsed(t, c.left), parsed(t, c.right)); same != (c.want == "") {
			t.Errorf("%s and %s: same %v", c.left, c.right, same)
		}
	}
	found, more := jsondoc.Diff(parsed(t, `[1,2,3]`), parsed(t, `[4,5,6]`), 2)
	if len(found) != 2 || !more {
		t.Errorf("%d differences, more %v", len(found), more)
	}
	if found, more = jsondoc.Diff(parsed(t, `[1,2]`), parsed(t, `[4,5]`), 2); len(found) != 2 || more {
		t.Errorf("%d differences, more %v", len(found), more)
	}
}

func TestRedact(t *testing.T) {
	r := jsondoc.Redaction{
		Text:   func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") },
		Hidden: func(name string, _ jsondoc.Value) (string, bool) { return "***", name == "password" },
	}
	const text = `{"password":"x","a":{"password":["y"],"b":[1,"it is hunter2!",{"password":null}]},"hunter2":{"password":""},"***":1,"n":12.50,"password2":true}`
	v := parsed(t, text)
	got, paths := v.Redact(r)
	const want = `{"password":"***","a":{"password":"***","b":[1,"it is ***!",{"password":null}]},"***_2":{"password":""},"***":1,"n":12.50,"password2":true}`
	if string(got.Bytes()) != want || got.Size() != len(want) {
		t.Errorf("%s, size %d", got.Bytes(), got.Size())
	}
	if !slices.Equal(paths, []string{"/password", "/a/password", "/a/b/1", "/***_2"}) {
		t.Error(paths)
	}
	if string(v.Bytes()) != text {
		t.Error("the value itself changed")
	}
	for _, path := range paths { // they lead to what was blotted out
		p, err := jsondoc.ParsePointer(path)
		if _, ok := got.At(p); err != nil || !ok {
			t.Errorf("%s leads nowhere", path)
		}
	}
	if same, paths := parsed(t, `{"a":[1]}`).Redact(r); string(same.Bytes()) != `{"a":[1]}` || paths != nil {
		t.Error(paths)
	}
	var members []string
	for i := range 20_000 {
		members = append(members, fmt.Sprintf(`"k%d":1`, i))
	}
	r.Text = func(s string) string {
		if strings.HasPrefix(s, "k") {
			return "***"
		}
		return s
	}
	if got, paths := parsed(t, `{`+strings.Join(members, ",")+`}`).Redact(r); got.Len() != 20_000 || len(paths) != 20_000 {
		t.Errorf("%d members, %d paths", got.Len(), len(paths))
	} else {
		parsed(t, string(got.Bytes())) // their names are still different
	}
	r.Text = func(s string) string { return strings.ReplaceAll(s, "12345678", "***") }
	if got, _ := parsed(t, `[12345678]`).Redact(r); string(got.Bytes()) != `["***"]` {
		t.Errorf("a number may be a secret: %s", got.Bytes())
	}
}

// A difference behind a long name is told in a bounded place.
func TestPlacesOfDifferencesAreBounded(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{strings.Repeat("n", 900), "/" + strings.Repeat("n", 900) + "/a~1b"},
		{strings.Repeat("n", 998), "/" + strings.Repeat("n", 998) + "/…"},
		{strings.Repeat("é", 500_000), "/" + strings.Repeat("é", 499) + "…"},
		{strings.Repeat("~", 600), "/" + strings.Repeat("~0", 499) + "~…"},
	} {
		left, right := jsondoc.Members(jsondoc.Member{Name: "a/b", Value: jsondoc.Int(1)}), jsondoc.Members(jsondoc.Member{Name: "a/b", Value: jsondoc.Int(2)})
		found, _ := jsondoc.Diff(jsondoc.Members(jsondoc.Member{Name: c.name, Value: left}), jsondoc.Members(jsondoc.Member{Name: c.name, Value: right}), 10)
		if len(found) != 1 || found[0].Path != c.want {
			t.Errorf("behind %d bytes: %d bytes ending in %q", len(c.name), len(found[0].Path), found[0].Path[max(len(found[0].Path)-20, 0):])
		}
	}
}
