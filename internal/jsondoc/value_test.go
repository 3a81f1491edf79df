package jsondoc_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"hookglass/internal/jsondoc"
)

func parsed(t testing.TB, text string) jsondoc.Value {
	t.Helper()
	v, err := jsondoc.Parse([]byte(text), jsondoc.Wide())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestValuesKeepWhatTheyAreMadeOf(t *testing.T) {
	for _, c := range []struct{ text, compact string }{
		{`null`, `null`},
		{` true `, `true`},
		{`false`, `false`},
		{`1.0`, `1.0`},
		{`-0`, `-0`},
		{`1E400`, `1E400`},
		{`12345678901234567890.12345678901234567890`, `12345678901234567890.12345678901234567890`},
		{`""`, `""`},
		{`"\u00e9\/\n\u0001\"\\"`, `"é/\n\u0001\"\\"`},
		{`"\ud83d\ude00"`, `"😀"`},
		{`{"cut \ud83d":["\ude00\ud83d"]}`, `{"cut �":["��"]}`},
		{`{}`, `{}`},
		{"[ ]", `[]`},
		{"\ufeff [1]", `[1]`},
		{`{"z" : 1 , "a":[ 2,{"":null} ] , "\u006d":{}}`, `{"z":1,"a":[2,{"":null}],"m":{}}`},
	} {
		v := parsed(t, c.text)
		if got := string(v.Bytes()); got != c.compact {
			t.Errorf("%s became %s", c.text, got)
		}
		if v.Size() != len(c.compact) {
			t.Errorf("%s: size %d, %d bytes", c.text, v.Size(), len(c.compact))
		}
	}
	for _, text := range []string{
		``, ` `, `{`, `[1,]`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `1 2`, `01`, `+1`, `.5`, `1.`, `nul`, `"a`, "\"\x01\"",
		"\"\xff\"", `{1:2}`, `{"a"}`, `[1}`, `'a'`, `NaN`, "\ufeff", "\ufeff\ufeff{}", "{}\ufeff",
	} {
		if v, err := jsondoc.Parse([]byte(text), jsondoc.Wide()); err == nil {
			t.Errorf("%q was read as %s", text, v.Bytes())
		}
	}
}

func TestValuesAreBounded(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	text := func(n int) []byte { return []byte(`"` + strings.Repeat("a", n-2) + `"`) }
	narrow := jsondoc.Bounds{Bytes: 100, Depth: 3}
	for _, c := range []struct {
		text   []byte
		bounds jsondoc.Bounds
		ok     bool
	}{
		{nested(3), narrow, true},
		{nested(4), narrow, false},
		{text(100), narrow, true},
		{text(101), narrow, false},
		{nested(jsondoc.MaxDepth), jsondoc.Wide(), true},
		{nested(jsondoc.MaxDepth + 1), jsondoc.Wide(), false},
		{text(jsondoc.MaxBytes), jsondoc.Wide(), true},
		{text(jsondoc.MaxBytes + 1), jsondoc.Wide(), false},
		{nested(200_000), jsondoc.Wide(), false},
	} {
		v, err := jsondoc.Parse(c.text, c.bounds)
		if (err == nil) != c.ok {
			t.Errorf("%d bytes within %v: %v", len(c.text), c.bounds, err)
		}
		if err == nil && c.text[0] == '[' && v.Depth() != len(c.text)/2 {
			t.Errorf("depth %d of %s", v.Depth(), c.text)
		}
	}
}

func TestValuesAreMade(t *testing.T) {
	v := jsondoc.Members(
		jsondoc.Member{Name: "s", Value: jsondoc.Text("a\xffb\"")},
		jsondoc.Member{Name: "n", Value: jsondoc.Int(-7)},
		jsondoc.Member{Name: "s", Value: jsondoc.Text("a second one")},
		jsondoc.Member{Name: "l", Value: jsondoc.List(jsondoc.Bool(true), jsondoc.Bool(false), jsondoc.Value{})},
		jsondoc.Member{Name: "e", Value: jsondoc.List()},
		jsondoc.Member{Name: "o", Value: jsondoc.Members()},
		jsondoc.Member{Name: "u", Value: jsondoc.TextOrNull("")},
	)
	const want = `{"s":"a` + "\ufffd" + `b\"","n":-7,"l":[true,false,null],"e":[],"o":{},"u":null}`
	if got := string(v.Bytes()); got != want || v.Size() != len(want) || v.Depth() != 2 {
		t.Errorf("%s, size %d, depth %d", got, v.Size(), v.Depth())
	}
	var names []string
	for name := range v.All() {
		names = append(names, name)
	}
	if !slices.Equal(names, []string{"s", "n", "l", "e", "o", "u"}) {
		t.Error(names)
	}
}

func FuzzValue(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"c\n"}],"":-0.0e+9}`, `"\u0000\ud83d\ude00"`, `[[[]]]`, `{"a":1,"a":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := jsondoc.Parse(text, jsondoc.Wide())
		if (err == nil) != (jsondoc.Check(text) == nil) {
			t.Fatalf("Parse and Check disagree on %q", text)
		}
		if err != nil {
			return
		}
		compact := v.Bytes()
		if len(compact) != v.Size() || !json.Valid(compact) {
			t.Fatalf("%q became %q, of size %d", text, compact, v.Size())
		}
		again, err := jsondoc.Parse(compact, jsondoc.Bounds{Bytes: len(compact), Depth: v.Depth()})
		if err != nil || !jsondoc.Same(v, again) || string(again.Bytes()) != string(compact) || again.Depth() != v.Depth() {
			t.Fatalf("%q became %q, and again %q: %v", text, compact, again.Bytes(), err)
		}
		if found, more := jsondoc.Diff(v, again, 10); len(found) > 0 || more {
			t.Fatalf("%q differs from itself: %v", text, found)
		}
	})
}

func TestWholeNumbersAreThoseOfTheirValue(t *testing.T) {
	for number, want := range map[string]int64{
		"0": 0, "-0": 0, "0.0": 0, "0e99": 0, "30": 30, "30.0": 30, "-30.000": -30, "3e1": 30, "300e-1": 30, "1E+2": 100, "0.5e1": 5,
		"9223372036854775807": math.MaxInt64, "9223372036854775807.0": math.MaxInt64, "-9223372036854775808": math.MinInt64, "9007199254740993.0": 9007199254740993,
	} {
		if n, ok := jsondoc.Whole(number); !ok || n != want {
			t.Errorf("%s is %d, %t", number, n, ok)
		}
	}
	for _, number := range []string{"0.5", "30.00000000000000000001", "-1e-1", "9223372036854775808", "1e19", "1e400", "1e999999999999", "1e-999999999999", "-9223372036854775809.0"} {
		if n, ok := jsondoc.Whole(number); ok {
			t.Errorf("%s is %d", number, n)
		}
	}
}
