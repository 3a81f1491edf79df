package jsondoc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"hookglass/internal/jsondoc"
)

// scope is a context of a few values, whose templates are upper-cased.
type scope struct{ context jsondoc.Value }

func (s scope) At(p jsondoc.Pointer) (jsondoc.Value, bool) { return s.context.At(p) }

func (s scope) Render(template string) (string, error) {
	if template == "bad" {
		return "", errors.New("at character 1: no")
	}
	return strings.ToUpper(template), nil
}

func transform(t testing.TB, operations string) jsondoc.Transform {
	t.Helper()
	tr, faults := jsondoc.ParseTransform(parsed(t, `{"source":"request","operations":[`+operations+`]}`))
	if len(faults) > 0 {
		t.Fatalf("%s: %v", operations, faults)
	}
	return tr
}

const source = `{"method":"POST","body":{"z":1.0,"a":[10,20,30],"o":{"big":12345678901234567890,"x":null},"s":"text"}}`

func TestTransforms(t *testing.T) {
	for _, c := range []struct{ operations, want string }{
		{`{"op":"select","path":""}`, source},
		{`{"op":"select","path":"/body/o"}`, `{"big":12345678901234567890,"x":null}`},
		{`{"op":"select","path":"/body/a/2"}`, `30`},
		{`{"op":"select","path":"/body/o/x"}`, `null`},
		{`{"op":"select","path":"/body/o"},{"op":"select","path":"/big"}`, `12345678901234567890`},

		{`{"op":"set","path":"/method","value":{"n":1E+2}}`, strings.Replace(source, `"POST"`, `{"n":1E+2}`, 1)},
		{`{"op":"set","path":"/new","value":null}`, strings.TrimSuffix(source, `}`) + `,"new":null}`},
		{`{"op":"set","path":"","value":[]}`, `[]`},
		{`{"op":"select","path":"/body/a"},{"op":"set","path":"/1","value":"twenty"}`, `[10,"twenty",30]`},
		{`{"op":"select","path":"/body/o"},{"op":"set","path":"/x","from":"/provider/name"}`, `{"big":12345678901234567890,"x":"stripe"}`},
		{`{"op":"select","path":"/body/o"},{"op":"set","path":"/-","template":"abc"}`, `{"big":12345678901234567890,"x":null,"-":"ABC"}`},
		{`{"op":"select","path":"/body/o"},{"op":"set","path":"/x","value":{}},{"op":"set","path":"/x/y","value":1}`, `{"big":12345678901234567890,"x":{"y":1}}`},

		{`{"op":"select","path":"/body"},{"op":"remove","path":"/a"},{"op":"remove","path":"/o"}`, `{"z":1.0,"s":"text"}`},
		{`{"op":"select","path":"/body/a"},{"op":"remove","path":"/0"}`, `[20,30]`},
		{`{"op":"select","path":"/body/a"},{"op":"remove","path":"/2"},{"op":"remove","path":"/0"},{"op":"remove","path":"/0"}`, `[]`},

		{`{"op":"select","path":"/body"},{"op":"rename","from":"/a","to":"/list"}`, `{"z":1.0,"list":[10,20,30],"o":{"big":12345678901234567890,"x":null},"s":"text"}`},
		{`{"op":"select","path":"/body/o"},{"op":"rename","from":"/big","to":"/"}`, `{"":12345678901234567890,"x":null}`},
		{`{"op":"select","path":"/body"},{"op":"rename","from":"/o/big","to":"/big"}`, `{"z":1.0,"a":[10,20,30],"o":{"x":null},"s":"text","big":12345678901234567890}`},
		{`{"op":"select","path":"/body"},{"op":"rename","from":"/a/0","to":"/o/first"}`, `{"z":1.0,"a":[20,30],"o":{"big":12345678901234567890,"x":null,"first":10},"s":"text"}`},

		{`{"op":"pick","fields":{"id":"/body/o/big","all":"/body/a","verb":"/method","":"/body/o/x"}}`, `{"id":12345678901234567890,"all":[10,20,30],"verb":"POST","":null}`},
		{`{"op":"select","path":"/body/o"},{"op":"wrap","key":"a/b"}`, `{"a/b":{"big":12345678901234567890,"x":null}}`},
		{`{"op":"select","path":"/body/z"},{"op":"wrap","key":"k"},{"op":"wrap","key":"k"},{"op":"rename","from":"/k/k","to":"/n"}`, `{"k":{},"n":1.0}`},
	} {
		from := parsed(t, source)
		got, err := transform(t, c.operations).Apply(from, scope{parsed(t, `{"provider":{"name":"stripe"}}`)})
		if err != nil || string(got.Bytes()) != c.want || got.Size() != len(c.want) {
			t.Errorf("%s\n got %s (%d): %v\nwant %s (%d)", c.operations, got.Bytes(), got.Size(), err, c.want, len(c.want))
		}
		if string(from.Bytes()) != source {
			t.Fatalf("%s changed its source to %s", c.operations, from.Bytes())
		}
	}
}

func TestTransformsFail(t *testing.T) {
	for _, c := range []struct{ operations, says string }{
		{`{"op":"select","path":"/nothing"}`, "operation 1 (select): there is no value at /nothing"},
		{`{"op":"select","path":"/body"},{"op":"select","path":"/a/3"}`, "operation 2 (select): there is no value at /a/3"},
		{`{"op":"select","path":"/body/a/-"}`, "no value at /body/a/-"},
		{`{"op":"select","path":"/body/a/01"}`, "no value"},
		{`{"op":"select","path":"/body/a/1000000000"}`, "no value"},
		{`{"op":"set","path":"/no/way","value":1}`, "no object or array that could hold /no/way"},
		{`{"op":"set","path":"/method/x","value":1}`, "could hold"},
		{`{"op":"set","path":"/body/a/3","value":1}`, "no element to replace at /body/a/3"},
		{`{"op":"set","path":"/body/a/-","value":1}`, "no element"},
		{`{"op":"set","path":"/body/a/1000000000","value":1}`, "no element"},
		{`{"op":"set","path":"/x","from":"/nothing"}`, "the context has no value at /nothing"},
		{`{"op":"set","path":"/x","template":"bad"}`, "the template could not be filled in: at character 1"},
		{`{"op":"remove","path":"/nothing"}`, "no value at /nothing"},
		{`{"op":"remove","path":"/body/a/-"}`, "no value"},
		{`{"op":"remove","path":"/method/x"}`, "no value"},
		{`{"op":"rename","from":"/nothing","to":"/x"}`, "no value at /nothing"},
		{`{"op":"rename","from":"/method","to":"/body"}`, "already a value at /body"},
		{`{"op":"rename","from":"/method","to":"/method"}`, "already a value"},
		{`{"op":"rename","from":"/body/o/x","to":"/body/z"}`, "already a value"},
		{`{"op":"rename","from":"/body","to":"/body/inside"}`, "could hold /body/inside"},
		{`{"op":"rename","from":"/body","to":"/body/o/x/y"}`, "could hold"},
		{`{"op":"set","path":"/l","value":[1,{"a":1}]},{"op":"rename","from":"/l/0","to":"/l/0/b"}`, "could hold /l/0/b"},
		{`{"op":"rename","from":"/method","to":"/no/way"}`, "could hold"},
		{`{"op":"rename","from":"/method","to":"/body/a/3"}`, "no element"},
		{`{"op":"rename","from":"/body/a/0","to":"/body/a/2"}`, "already a value"},
		{`{"op":"set","path":"/l","value":[1,{"a":1},{"b":2}]},{"op":"rename","from":"/l/0","to":"/l/1/b"}`, "already a value at /l/1/b"},
		{`{"op":"pick","fields":{"a":"/method","b":"/nothing"}}`, "no value at /nothing"},
	} {
		v, err := transform(t, c.operations).Apply(parsed(t, source), scope{})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%s), want %s", c.operations, err, v.Bytes(), c.says)
		}
	}
	_, err := transform(t, `{"op":"set","path":"/x","template":"bad"}`).Apply(parsed(t, source), scope{})
	if !errors.Is(err, jsondoc.ErrRender) {
		t.Error("a template that fails is told apart")
	}
}

func TestTransformsAreBounded(t *testing.T) {
	text := func(n int) jsondoc.Value { return jsondoc.Text(strings.Repeat("a", n-2)) }
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	whole := `{"op":"select","path":""}`
	for _, c := range []struct {
		name       string
		source     jsondoc.Value
		operations string
		ok         bool
	}{
		{"256 KiB", text(jsondoc.MaxTransformBytes), whole, true},
		{"256 KiB and a byte", text(jsondoc.MaxTransformBytes + 1), whole, false},
		{"a large source of which little is selected", jsondoc.List(text(jsondoc.MaxTransformBytes), jsondoc.Int(1)), `{"op":"select","path":"/1"}`, true},
		{"a wrap beyond the bound", text(jsondoc.MaxTransformBytes), `{"op":"wrap","key":"k"}`, false},
		{"a wrap within the bound", text(jsondoc.MaxTransformBytes - 6), `{"op":"wrap","key":"k"}`, true},
		{"depth 32", parsed(t, nested(32)), whole, true},
		{"depth 33", parsed(t, nested(33)), whole, false},
		{"wrapped to depth 33", parsed(t, nested(32)), `{"op":"wrap","key":"k"}`, false},
		{"fifty wraps", jsondoc.Int(1), strings.TrimSuffix(strings.Repeat(`{"op":"wrap","key":"k"},`, 50), ","), false},
		{"picked twice each time", text(1000), strings.TrimSuffix(strings.Repeat(`{"op":"pick","fields":{"a":"","b":""}},`, 30), ","), false},
	} {
		_, err := transform(t, c.operations).Apply(c.source, scope{})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestTransformConfigurationsAreStrict(t *testing.T) {
	repeat := func(n int) string {
		return `{"source":"request","operations":[` + strings.TrimSuffix(strings.Repeat(`{"op":"select","path":""},`, n), ",") + `]}`
	}
	picks := func(n int) string {
		fields := ""
		for i := range n {
			fields += fmt.Sprintf(`"%d":"",`, i)
		}
		return `{"source":"request","operations":[{"op":"pick","fields":{` + strings.TrimSuffix(fields, ",") + `}}]}`
	}
	long := strings.Repeat("é", 1001)
	for _, c := range []struct{ config, fields string }{
		{repeat(50), ""},
		{repeat(51), "operations"},
		{picks(500), ""},
		{picks(501), "operations.0.fields"},
		{`[]`, ""}, // "" is the whole, see below
		{`{}`, "source operations"},
		{`{"source":1,"operations":{}}`, "source operations"},
		{`{"source":"request","operations":[]}`, "operations"},
		{`{"source":"request","operations":[{"op":"select","path":""}],"extra":1}`, "extra"},
		{`{"source":"request","operations":[1]}`, "operations.0"},
		{`{"source":"request","operations":[{"op":"copy"}]}`, "operations.0.op"},
		{`{"source":"request","operations":[{"path":""}]}`, "operations.0.op"},
		{`{"source":"request","operations":[{"op":"select"}]}`, "operations.0.path"},
		{`{"source":"request","operations":[{"op":"select","path":"x"}]}`, "operations.0.path"},
		{`{"source":"request","operations":[{"op":"select","path":"/~2"}]}`, "operations.0.path"},
		{`{"source":"request","operations":[{"op":"select","path":1}]}`, "operations.0.path"},
		{`{"source":"request","operations":[{"op":"select","path":"/` + long[:2*999] + `"}]}`, ""},
		{`{"source":"request","operations":[{"op":"select","path":"/` + long + `"}]}`, "operations.0.path"},
		{`{"source":"request","operations":[{"op":"select","path":"","Path":""}]}`, "operations.0.Path"},
		{`{"source":"request","operations":[{"op":"select","path":""},{"op":"set","path":"/a"}]}`, "operations.1"},
		{`{"source":"request","operations":[{"op":"set","path":"/a","value":1,"from":"/a"}]}`, "operations.0"},
		{`{"source":"request","operations":[{"op":"set","path":"/a","value":null}]}`, ""},
		{`{"source":"request","operations":[{"op":"set","path":"/a","from":"a"}]}`, "operations.0.from"},
		{`{"source":"request","operations":[{"op":"set","path":"/a","template":1}]}`, "operations.0.template"},
		{`{"source":"request","operations":[{"op":"remove","path":""}]}`, "operations.0.path"},
		{`{"source":"request","operations":[{"op":"rename","from":"","to":""}]}`, "operations.0.from operations.0.to"},
		{`{"source":"request","operations":[{"op":"rename","path":"/a","to":"/b"}]}`, "operations.0.path operations.0.from"},
		{`{"source":"request","operations":[{"op":"pick","fields":{}}]}`, "operations.0.fields"},
		{`{"source":"request","operations":[{"op":"pick","fields":["a"]}]}`, "operations.0.fields"},
		{`{"source":"request","operations":[{"op":"pick","fields":{"a":"/a","b":"b"}}]}`, "operations.0.fields.b"},
		{`{"source":"request","operations":[{"op":"wrap","key":""}]}`, "operations.0.key"},
		{`{"source":"request","operations":[{"op":"wrap"}]}`, "operations.0.key"},
		{`{"source":"request","operations":[{"op":"wrap","key":"` + long + `"}]}`, "operations.0.key"},
	} {
		_, faults := jsondoc.ParseTransform(parsed(t, c.config))
		var fields []string
		for _, f := range faults {
			fields = append(fields, f.Field)
			if f.Message == "" {
				t.Errorf("%s: %s has no message", c.config, f.Field)
			}
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%.100s: faults of %q, want %q", c.config, got, c.fields)
		}
	}
	if _, faults := jsondoc.ParseTransform(parsed(t, `[]`)); len(faults) != 1 {
		t.Error("a configuration is an object")
	}
}

func TestATransformTellsWhatItReads(t *testing.T) {
	tr := transform(t, `{"op":"set","path":"/a","template":"x"},{"op":"set","path":"/b","from":"/steps/one"},{"op":"select","path":""}`)
	got := ""
	for field, text := range tr.Templates() {
		got += fmt.Sprintln(field, text)
	}
	for field, p := range tr.Reads() {
		got += fmt.Sprintln(field, p)
	}
	if tr.Source != "request" || got != "operations.0.template x\noperations.1.from /steps/one\n" {
		t.Errorf("%s\n%s", tr.Source, got)
	}
}

func FuzzTransform(f *testing.F) {
	f.Add([]byte(`{"source":"request","operations":[{"op":"select","path":"/body"},{"op":"set","path":"/a/1","value":1.0},{"op":"rename","from":"/o/x","to":"/y"}]}`), []byte(source))
	f.Add([]byte(`{"source":"email","operations":[{"op":"pick","fields":{"a":"/a","b":""}},{"op":"wrap","key":"k"},{"op":"remove","path":"/k/a/0"},{"op":"set","path":"/z","from":"/a"},{"op":"set","path":"/z","template":"t"}]}`), []byte(`{"a":[1,2]}`))
	f.Fuzz(func(t *testing.T, config, text []byte) {
		c, err := jsondoc.Parse(config, jsondoc.Wide())
		if err != nil {
			return
		}
		from, err := jsondoc.Parse(text, jsondoc.Wide())
		if err != nil {
			return
		}
		tr, faults := jsondoc.ParseTransform(c)
		if len(faults) > 0 {
			return
		}
		before := string(from.Bytes())
		out, err := tr.Apply(from, scope{from})
		if string(from.Bytes()) != before {
			t.Fatal("the source changed")
		}
		if err != nil {
			return
		}
		compact := out.Bytes()
		again, err := jsondoc.Parse(compact, jsondoc.Bounds{Bytes: jsondoc.MaxTransformBytes, Depth: jsondoc.MaxTransformDepth})
		if err != nil || len(compact) != out.Size() || again.Depth() != out.Depth() {
			t.Fatalf("%s: size %d, depth %d: %v", compact, out.Size(), out.Depth(), err)
		}
	})
}
