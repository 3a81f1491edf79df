package jsondoc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hookglass/internal/cputime"
	"hookglass/internal/jsondoc"
)

func TestSubset(t *testing.T) {
	for _, c := range []struct {
		expected, actual string
		matched          bool
		path             string // of the first mismatch
	}{
		{`{}`, `{}`, true, ""},
		{`{}`, `{"a":1}`, true, ""},
		{`{"a":1}`, `{"b":2,"a":1}`, true, ""},
		{`{"a":1}`, `{"b":2}`, false, "/a"},
		{`{"a":1}`, `{"a":"1"}`, false, "/a"},
		{`{"a":null}`, `{}`, false, "/a"},
		{`{"a":null}`, `{"a":null}`, true, ""},
		{`{"a":{"b":true}}`, `{"a":{"b":true,"c":[]}}`, true, ""},
		{`{"a":{"b":true}}`, `{"a":{"b":false}}`, false, "/a/b"},
		{`{"a":{}}`, `{"a":{"b":1}}`, true, ""},
		{`{"a":{}}`, `{"a":[]}`, false, "/a"},
		{`{"a":[]}`, `{"a":[ ]}`, true, ""},
		{`{"a":[]}`, `{"a":[1]}`, false, "/a"},
		{`{"a":[1]}`, `{"a":[]}`, false, "/a"},
		{`{"a":[1,{"x":1}]}`, `{"a":[1,{"x":1,"y":2}]}`, true, ""},
		{`{"a":[1,2]}`, `{"a":[1,2,3]}`, false, "/a"},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false, "/a/0"},
		{`{"a":1}`, `{"a":1.0}`, true, ""},
		{`{"a":100}`, `{"a":1E+2}`, true, ""},
		{`{"a":0}`, `{"a":-0.0e9}`, true, ""},
		{`{"a":12345678901234567890}`, `{"a":12345678901234567891}`, false, "/a"},
		{`{"a":1e400}`, `{"a":10e399}`, true, ""},
		{`{"a":1e99999999999999999999}`, `{"a":1e99999999999999999999}`, true, ""},
		{`{"a":1e99999999999999999999}`, `{"a":2e99999999999999999999}`, false, "/a"},
		{`{"a":0}`, `{"a":1e99999999999999999999}`, false, "/a"},
		{`{"a":1e99999999999999999999}`, `{"a":0}`, false, "/a"},
		{`{"a":-1}`, `{"a":1}`, false, "/a"},
		{`{"a":"b"}`, `{"a":"c"}`, false, "/a"},
		{`{"a":0.1}`, `{"a":0.10000000000000000001}`, false, "/a"},
		{`{"a":"é"}`, `{"a":"\u00e9"}`, true, ""},
		{`{"a/b~c":1}`, `{"a/b~c":2}`, false, "/a~1b~0c"},
		{`{"a":1}`, `[1]`, false, ""},
		{`{"a":1}`, ``, false, ""},
		{`{"a":1}`, `{"a":1} x`, false, ""},
		{`{"a":1}`, `{"a":1,"a":2}`, false, ""},
		{`{"a":1}`, `<html>`, false, ""},
		{` { "a" : [ 1 , 2 ] } `, "\n{\"a\":\t[1 ,2]}\n", true, ""},
	} {
		matched, results, err := jsondoc.Subset([]byte(c.expected), []byte(c.actual))
		if err != nil || matched != c.matched {
			t.Errorf("%s in %s: %v %v", c.expected, c.actual, matched, err)
			continue
		}
		first := ""
		for _, r := range results {
			if !r.Matched {
				first = r.Path
				break
			}
			if !json.Valid(r.Expected) || r.Actual != nil && !json.Valid(r.Actual) {
				t.Errorf("%s in %s: result %s %s", c.expected, c.actual, r.Expected, r.Actual)
			}
		}
		if first != c.path {
			t.Errorf("%s in %s: the first mismatch is at %q, want %q", c.expected, c.actual, first, c.path)
		}
	}
}

func TestBounds(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := jsondoc.Check(nested(jsondoc.MaxDepth)); err != nil {
		t.Error(err)
	}
	if jsondoc.Check(nested(jsondoc.MaxDepth+1)) == nil {
		t.Error("too deep")
	}
	text := func(n int) []byte { return []byte(`"` + strings.Repeat("a", n-2) + `"`) }
	if err := jsondoc.Check(text(jsondoc.MaxBytes)); err != nil {
		t.Error(err)
	}
	if jsondoc.Check(text(jsondoc.MaxBytes+1)) == nil {
		t.Error("too long")
	}
	// Of very many results the mismatch is kept.
	many := `[` + strings.Repeat("1,", 500) + `2]`
	matched, results, err := jsondoc.Subset([]byte(many), []byte(`[`+strings.Repeat("1,", 500)+`3]`))
	if err != nil || matched || len(results) != 100 || results[99].Matched {
		t.Errorf("%v, %d results: %v", matched, len(results), err)
	}
	_, results, _ = jsondoc.Subset([]byte(`{"a":"x"}`), []byte(`{"a":"`+strings.Repeat("y", 600)+`"}`))
	if len(results) != 1 || string(results[0].Actual) != `"string of 602 bytes"` {
		t.Errorf("%s", results[0].Actual)
	}
}

// A value behind a long name costs no more than one behind a short name: neither time nor what is told of it.
func TestSubsetBehindLongNames(t *testing.T) {
	name := `{"` + strings.Repeat("a", 512<<10) + `":`
	for kind, texts := range map[string][2]string{
		"elements":      {name + "[" + strings.Repeat("1,", 100_000) + "1]}", name + "[" + strings.Repeat("2,", 100_000) + "1]}"},
		"missing names": {name + "{" + manyNames(30_000) + "}}", name + "{}}"},
	} {
		var results []jsondoc.Result
		var err error
		cputime.AtMost(t, 10*time.Second, kind, func() {
			_, results, err = jsondoc.Subset([]byte(texts[0]), []byte(texts[1]))
		})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		size := 0
		for _, r := range results {
			size += len(r.Path)
		}
		if len(results) == 0 || size > 200<<10 {
			t.Errorf("%s: %d results tell their places in %d bytes", kind, len(results), size)
		}
	}
}

func manyNames(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"n%d":1`, i)
	}
	return strings.Join(names, ",")
}

func FuzzSubset(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"c"}]}`), []byte(`{"a":[1.0,{"b":"c"}],"d":null}`))
	f.Fuzz(func(t *testing.T, expected, actual []byte) {
		matched, results, err := jsondoc.Subset(expected, actual)
		if err != nil {
			return
		}
		for _, r := range results {
			if matched && !r.Matched {
				t.Errorf("a match with a mismatch at %q", r.Path)
			}
			if !json.Valid(r.Expected) || r.Actual != nil && !json.Valid(r.Actual) {
				t.Errorf("results are no JSON: %q %q", r.Expected, r.Actual)
			}
		}
		// Every value holds itself.
		if same, _, err := jsondoc.Subset(expected, expected); err != nil || !same {
			t.Errorf("%q does not match itself: %v", expected, err)
		}
	})
}

func TestALengthIsSaidWithItsNoun(t *testing.T) {
	_, results, err := jsondoc.Subset([]byte(`{"a":[1]}`), []byte(`{"a":[1,2]}`))
	last := results[len(results)-1]
	if err != nil || string(last.Expected) != `"1 element"` || string(last.Actual) != `"2 elements"` {
		t.Errorf("%s, %s, %v", last.Expected, last.Actual, err)
	}
}
