package actions_test

import (
	"fmt"
	"net/url"
	"testing"

	"hookglass"
	"hookglass/internal/jsondoc"
	"hookglass/internal/web/actions"
)

// The lines of a body end as they did, though a browser ends all with CR LF.
func TestTheLineEndsOfABodyOutliveTheForm(t *testing.T) {
	for _, c := range []struct{ body, typed, want string }{
		{`a\nb\n`, "a\r\nb\r\n", `a\nb\n`},
		{`a\r\nb\n\rc`, "a\r\nb\r\n\r\nc", `a\r\nb\n\rc`},
		{`--x\r\n\r\n1\r\n`, "--x\r\n\r\n2\r\n", `--x\r\n\r\n2\r\n`}, // edited
		{`a\nb`, "a\r\nc", `a\nc`},
		{`a`, "a\r\nb", `a\nb`},
	} {
		f := actions.ReadForm(url.Values{
			"steps[0].step_type": {"http_request"}, "steps[0].reference_key": {"send"}, "steps[0].config.method": {"POST"}, "steps[0].config.body": {c.typed},
		})
		f.Keep(hookglass.Action{Steps: []hookglass.Step{{Type: hookglass.StepRequest, ReferenceKey: "send", Config: []byte(`{"method":"POST","body":"` + c.body + `"}`)}}})
		if got, want := string((*f.Draft().Steps)[0].Config), `{"method":"POST","headers":{},"body":"`+c.want+`"}`; got != want {
			t.Errorf("%s, typed as %q, is stored as %s", c.body, c.typed, got)
		}
	}
}

// The names that a pick operation makes may hold colons.
func TestNamesOfPickedFieldsMayHoldColons(t *testing.T) {
	const config = `{"source":"request","operations":[{"op":"pick","fields":{"dc:title":"/body/title","all":"","urn:x:y":"/body/http:~1~1a"}}]}`
	shown := actions.FormOf(hookglass.Action{Steps: []hookglass.Step{{Type: hookglass.StepTransform, ReferenceKey: "shape", Config: []byte(config)}}})
	fields := shown.Steps[0].Operations[0].Fields
	for _, typed := range []string{fields, "dc:title:/body/title\nall:\nurn:x:y:/body/http:~1~1a"} {
		f := actions.ReadForm(url.Values{
			"steps[0].step_type": {"transform"}, "steps[0].config.source": {"request"},
			"steps[0].config.operations[0].op": {"pick"}, "steps[0].config.operations[0].fields": {typed},
		})
		if got := string((*f.Draft().Steps)[0].Config); got != config {
			t.Errorf("%q is stored as %s", typed, got)
		}
	}
}

// The page is rendered with all that is read: of 300 KB of steps it had 40 MB, and took minutes.
func TestOfAFormNoMoreIsReadThanAnActionMayHave(t *testing.T) {
	v := url.Values{}
	for i := range 1000 {
		v.Set(fmt.Sprintf("conditions[%d].field", i), "provider")
		v.Set(fmt.Sprintf("steps[%d].step_type", i), "transform")
		v.Set(fmt.Sprintf("steps[0].config.operations[%d].op", i), "select")
		v.Set(fmt.Sprintf("steps[0].conditions[%d].source", i), "request")
	}
	f := actions.ReadForm(v)
	if n := len(f.Steps); n <= 20 || n > 100 {
		t.Errorf("%d steps were read", n)
	}
	if n := len(f.Conditions); n != hookglass.MaxConditions+1 {
		t.Errorf("%d conditions were read", n)
	}
	if n, m := len(f.Steps[0].Operations), len(f.Steps[0].Conditions); n != jsondoc.MaxOperations+1 || m != hookglass.MaxConditions+1 {
		t.Errorf("of a step %d operations and %d conditions were read", n, m)
	}
}
