package actions_test

import (
	"net/url"
	"testing"

	"hookglass"
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
