package action_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/url"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/jsondoc"
)

func at(t *testing.T, c *action.Context, pointer string) string {
	t.Helper()
	p, err := jsondoc.ParsePointer(pointer)
	if err != nil {
		t.Fatal(err)
	}
	v, ok := c.At(p)
	if !ok {
		return "absent"
	}
	return string(v.Bytes())
}

func TestTheContextOfAWebhook(t *testing.T) {
	c := action.NewContext(arrival(`{"b":1.0,"a":2}`), endpoint, nil)
	const request = `{"id":"req_1","method":"POST","path":"/in/a%20b","query":{"q":"1","tag":["a","b c"],"bad":"%zz"},` +
		`"headers":{"content-type":"application/json","x-a":"one, two","x-break":"a\tb"},"content_type":"application/json","body":{"b":1.0,"a":2}}`
	const provider = `{"name":"github","event_type":"push","event_id":null,"delivery_id":"d-1","signature_status":"verified"}`
	const ep = `{"id":"ep_1","name":"Main & more"}`
	for pointer, want := range map[string]string{
		"/request": request, "/provider": provider, "/endpoint": ep, "/email": "absent", "/email/from": "absent",
		"/request/body": `{"b":1.0,"a":2}`, "/request/body/b": "1.0", "/request/body/c": "absent", "/request/query/tag/0": `"a"`, "/request/nothing": "absent",
		"/request/headers/x-a": `"one, two"`, "/request/headers/X-A": "absent", "/steps": `{}`, "/steps/a": "absent", "/secrets": "absent", "/nothing": "absent",
		"": `{"request":` + request + `,"provider":` + provider + `,"endpoint":` + ep + `,"steps":{}}`,
	} {
		if got := at(t, c, pointer); got != want {
			t.Errorf("%s is %s\nwant %s", pointer, got, want)
		}
	}
	c.SetStep("a", hookglass.StepFailed, nil)
	c.SetStep("b", hookglass.StepCompleted, new(jsondoc.Int(1)))
	if got := at(t, c, "/steps"); got != `{"a":{"status":"failed","output":null},"b":{"status":"completed","output":1}}` {
		t.Error(got)
	}
	if got := at(t, c.Fresh(), "/steps"); got != `{}` {
		t.Errorf("the next action sees %s", got)
	}
	for name, want := range map[string]bool{
		"request": true, "provider": true, "endpoint": true, "steps.a": true, "steps.c": false, "steps": false, "email": false, "secrets": false, "request.body": false, "": false,
	} {
		if _, err := c.Source(name); (err == nil) != want {
			t.Errorf("the source %s: %v", name, err)
		}
	}
}

func TestTheContextOfAMail(t *testing.T) {
	ev := &hookglass.Event{
		ID: "eml_1", Type: hookglass.EventEmail, Method: "EMAIL", Path: "box@localhost", From: "a@b.c", To: "box@localhost", Subject: "Hi", Provider: hookglass.UnknownProvider,
		Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "Message-ID", Value: "<1@b.c>"}}, Body: []byte("raw")},
	}
	c := action.NewContext(ev, endpoint, &action.Mail{Text: "Hello"})
	if got := at(t, c, "/email"); got != `{"from":"a@b.c","to":"box@localhost","subject":"Hi","text":"Hello","html":null,"headers":{"message-id":"<1@b.c>"}}` {
		t.Error(got)
	}
	if got := at(t, c, "/request"); got != `{"id":"eml_1","method":"EMAIL","path":"box@localhost","query":{},"headers":{"message-id":"<1@b.c>"},"content_type":null,"body":"Hello"}` {
		t.Error(got)
	}
	if got := at(t, action.NewContext(ev, endpoint, nil), "/email/text"); got != "null" {
		t.Error(got)
	}
}

// What is not UTF-8 is Latin-1, as where it is shown and searched: conditions find it, and what templates send on has
// no replacement character.
func TestWhatIsNotUTF8IsLatin1(t *testing.T) {
	ev := &hookglass.Event{
		ID: "req_1", Type: hookglass.EventWebhook, Method: "POST", Path: "/caf\xe9", RawQuery: "na%EFve=\xfc&x=%C3%BC", ContentType: "text/plain; x=\xe9",
		Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "X-Place", Value: "caf\xe9"}, {Name: "x-place", Value: "café"}}},
	}
	c := action.NewContext(ev, endpoint, nil)
	want := `{"id":"req_1","method":"POST","path":"/café","query":{"naïve":"ü","x":"ü"},"headers":{"x-place":"café, café"},"content_type":"text/plain; x=é","body":null}`
	if got := at(t, c, "/request"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	trigger, faults := action.NewTrigger([]hookglass.Condition{
		{Field: "request_path", Operator: "equals", Value: "/café"}, {Field: "content_type", Operator: "contains", Value: "é"},
	})
	if r := trigger.Evaluate(c); len(faults) > 0 || !r.Matched || r.Conditions[0].Actual != "/café" {
		t.Errorf("%+v %v", r, faults)
	}
	for place, want := range map[action.Place]string{action.InHeader: "café, café ü", action.InURL: "caf%C3%A9%2C%20caf%C3%A9 %C3%BC"} {
		template, err := action.ParseTemplate("{{ request.headers.x-place }} {{ request.query.naïve }}", place)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := template.Render(action.Values{Context: c}); err != nil || got.Text != want {
			t.Errorf("%q %v, want %q", got.Text, err, want)
		}
	}
}

func TestBodies(t *testing.T) {
	zipped := func(make func(io.Writer) io.WriteCloser, s string) string {
		var b bytes.Buffer
		w := make(&b)
		io.WriteString(w, s)
		w.Close()
		return b.String()
	}
	gz := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	zl := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	raw := func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 1); return f }
	for _, c := range []struct{ contentType, encoding, body, want string }{
		{"application/json", "", ``, `null`},
		{"application/json", "", ` {"a":1} `, `{"a":1}`},
		{"application/json", "", `"text"`, `"text"`},
		{"application/json", "", `12.0`, `12.0`},
		{"application/json", "", `{"a":1`, `"{\"a\":1"`},
		{"application/json", "", `{"cut":"\ud83d","a":1}`, `{"cut":"` + "\ufffd" + `","a":1}`},
		{"application/json", "", `{"a":1,"a":2}`, `"{\"a\":1,\"a\":2}"`},
		{"application/problem+json; charset=utf-8", "", `[1]`, `[1]`},
		{"text/plain", "", `{"a":1}`, `{"a":1}`},
		{"", "", "\n[1]", `[1]`},
		{"application/json", "", "\ufeff{\"a\":1}", `{"a":1}`},
		{"", "", "\ufeff\r\n[1]", `[1]`},
		{"text/plain", "", "\ufeffa", `"` + "\ufeff" + `a"`},
		{"text/plain", "", `12`, `"12"`},
		{"text/plain", "", "a\xffb", `"aÿb"`},
		{"application/x-www-form-urlencoded", "", "caf%E9=na\xefve&x=\xc3\xa9", `{"café":"naïve","x":"é"}`},
		{"application/x-www-form-urlencoded", "", `{"a": {"b": 1}}`, `{"a":{"b":1}}`}, // as curl -d sends it
		{"application/x-www-form-urlencoded", "", `[a]=1`, `{"[a]":"1"}`},
		{"application/x-www-form-urlencoded; charset=utf-8", "", `a=1&b=x+y&a=%C3%A9&&c&=z`, `{"a":["1","é"],"b":"x y","c":"","":"z"}`},
		{"Application/X-WWW-Form-Urlencoded", "", `a=1`, `{"a":"1"}`},
		{"application/json", "gzip", zipped(gz, `{"a":1}`), `{"a":1}`},
		{"application/json", "deflate", zipped(zl, `{"a":1}`), `{"a":1}`},
		{"application/json", "deflate", zipped(raw, `{"a":1}`), `{"a":1}`},
		{"application/json", "gzip", `{"a":1}`, `{"a":1}`},
		{"application/json", "", strings.Repeat("[", 128) + strings.Repeat("]", 128), strings.Repeat("[", 128) + strings.Repeat("]", 128)},
		{"application/json", "", strings.Repeat("[", 129) + strings.Repeat("]", 129), `"` + strings.Repeat("[", 129) + strings.Repeat("]", 129) + `"`},
		{"text/plain", "", strings.Repeat("a", 1<<20), `"` + strings.Repeat("a", 1<<20) + `"`},
		{"text/plain", "", strings.Repeat("a", 1<<20+1), `absent`},
		{"text/plain", "gzip", zipped(gz, strings.Repeat("a", 1<<20)), `"` + strings.Repeat("a", 1<<20) + `"`},
		{"text/plain", "gzip", zipped(gz, strings.Repeat("a", 1<<24)), `absent`},
	} {
		ev := arrival(c.body)
		ev.ContentType, ev.Headers = c.contentType, hookglass.Headers{{Name: "Content-Encoding", Value: c.encoding}}
		context := action.NewContext(ev, endpoint, nil)
		if got := at(t, context, "/request/body"); got != c.want {
			t.Errorf("%s %s %.40q is %.60s, want %.60s", c.contentType, c.encoding, c.body, got, c.want)
		}
		// What is too large to be looked into is no value that is not there: a step that asks for it fails.
		guard, _ := action.NewGuard([]hookglass.StepCondition{{Source: "request", Path: "/body/x", Operator: "not_exists"}})
		if _, failure := guard.Evaluate(context); (failure != nil) != (c.want == "absent") {
			t.Errorf("%.40q: %v", c.body, failure)
		}
		if got := at(t, context, "/request/method"); got != `"POST"` {
			t.Errorf("the rest of the request is %s", got)
		}
	}
	if got := at(t, action.NewContext(&hookglass.Event{ID: "req_1", Type: hookglass.EventWebhook, Method: "GET", Path: "/"}, endpoint, nil), "/request"); got != `{"id":"req_1","method":"GET","path":"/","query":{},"headers":{},"content_type":null,"body":null}` {
		t.Errorf("an event in the list form: %s", got)
	}
}

// A field of a form is its text, and pointers go on in the JSON that Slack and others send in one.
func TestPointersGoOnInAFieldOfAForm(t *testing.T) {
	ev := arrival("payload=" + url.QueryEscape(`{"type":"block_actions", "actions":[{"value":1.0}]}`) + "&n=[1&list=[1]&list=[2]")
	ev.ContentType = "application/x-www-form-urlencoded"
	c := action.NewContext(ev, endpoint, nil)
	for pointer, want := range map[string]string{
		"/request/body/payload":                 `"{\"type\":\"block_actions\", \"actions\":[{\"value\":1.0}]}"`,
		"/request/body/payload/type":            `"block_actions"`,
		"/request/body/payload/actions/0/value": `1.0`,
		"/request/body/list/1":                  `"[2]"`,
		"/request/body/list/1/0":                `2`,
		"/request/body/n/0":                     "absent",
		"/request/body/payload/type/0":          "absent",
	} {
		if got := at(t, c, pointer); got != want {
			t.Errorf("%s is %s, want %s", pointer, got, want)
		}
	}
	transform, faults := action.ParseTransform([]byte(`{"source":"request","operations":[{"op":"pick","fields":{"t":"/body/payload/type","all":"/body/payload"}}]}`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	out, failure := transform.Run(action.Values{Context: c})
	if want := `{"t":"block_actions","all":"{\"type\":\"block_actions\", \"actions\":[{\"value\":1.0}]}"}`; failure != nil || string(out.Bytes()) != want {
		t.Errorf("%s %v", out.Bytes(), failure)
	}
	for _, operation := range []string{`"remove","path":"/body/payload/type"`, `"set","path":"/body/payload/type","value":1`, `"rename","from":"/body/payload/type","to":"/body/payload/t"`} {
		transform, faults := action.ParseTransform([]byte(`{"source":"request","operations":[{"op":` + operation + `}]}`))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if out, failure := transform.Run(action.Values{Context: c}); failure == nil {
			t.Errorf("%s makes %s", operation, out.Bytes())
		}
	}
	template, err := action.ParseTemplate("{{request.body.payload.actions.0.value}} of {{request.body.payload.actions}}", action.InText)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := template.Render(action.Values{Context: c}); err != nil || got.Text != `1.0 of [{"value":1.0}]` {
		t.Errorf("%q %v", got.Text, err)
	}
}

func TestTransformSteps(t *testing.T) {
	for _, c := range []struct{ config, want, code string }{
		{`{"source":"request","operations":[{"op":"select","path":"/body"},{"op":"set","path":"/by","template":"{{endpoint.id}} {{secrets.KEY}}"},{"op":"set","path":"/e","from":"/provider/event_type"}]}`,
			`{"n":1.0,"by":"ep_1 s3cret-value-0123456789","e":"push"}`, ""},
		{`{"source":"steps.shape","operations":[{"op":"select","path":"/output/n"}]}`, `7`, ""},
		{`{"source":"provider","operations":[{"op":"pick","fields":{"p":"/name"}}]}`, `{"p":"github"}`, ""},
		{`{"source":"steps.later","operations":[{"op":"select","path":""}]}`, ``, hookglass.FailureTransform},
		{`{"source":"email","operations":[{"op":"select","path":""}]}`, ``, hookglass.FailureTransform},
		{`{"source":"request","operations":[{"op":"select","path":"/nothing"}]}`, ``, hookglass.FailureTransform},
		{`{"source":"request","operations":[{"op":"set","path":"/a","from":"/steps/later"}]}`, ``, hookglass.FailureTransform},
		{`{"source":"request","operations":[{"op":"set","path":"/a","template":"{{request.nothing}}"}]}`, ``, hookglass.FailureTemplate},
		{`{"source":"request","operations":[{"op":"set","path":"/a","template":"{{nothing}}"}]}`, ``, hookglass.FailureTemplate},
		{`{"source":"request","operations":[{"op":"set","path":"/a","template":"{{secrets.OTHER}}"}]}`, ``, hookglass.FailureTemplate},
	} {
		transform, faults := action.ParseTransform([]byte(c.config))
		if len(faults) > 0 {
			t.Errorf("%s: %v", c.config, faults)
			continue
		}
		out, failure := transform.Run(values(`{"n":1.0}`))
		switch {
		case c.code == "" && (failure != nil || string(out.Bytes()) != c.want):
			t.Errorf("%s: %s %v", c.config, out.Bytes(), failure)
		case c.code != "" && (failure == nil || failure.Code != c.code || strings.Contains(failure.Message, "s3cret")):
			t.Errorf("%s: %v, want %s", c.config, failure, c.code)
		}
	}
	for _, c := range []struct{ config, fields string }{
		{`{"source":"endpoint","operations":[{"op":"select","path":""}]}`, "source"},
		{`{"source":"steps.","operations":[{"op":"select","path":""}]}`, "source"},
		{`{"source":"request","operations":[{"op":"set","path":"/a","template":"{{"}]}`, "operations.0.template"},
		{`{"source":"request","operations":[{"op":"set","path":"/a","from":"/secrets/KEY"}]}`, "operations.0.from"},
		{`{"source":"request","source":"email","operations":[]}`, ""},
		{`no`, ""},
	} {
		if _, faults := action.ParseTransform([]byte(c.config)); len(faults) != 1 || fieldsOf(faults) != c.fields {
			t.Errorf("%s: %v", c.config, faults)
		}
	}
	transform, _ := action.ParseTransform([]byte(`{"source":"steps.a","operations":[{"op":"set","path":"/a","template":"{{steps.c.output}}{{secrets.KEY}}"},{"op":"set","path":"/a","from":"/steps/b"},{"op":"set","path":"/a","template":"{{secrets.A}}{{secrets.KEY}}"}]}`))
	if steps, secrets := strings.Join(transform.Steps(), " "), strings.Join(transform.Secrets(), " "); steps != "a b c" || secrets != "A KEY" {
		t.Errorf("steps %s, secrets %s", steps, secrets)
	}
}

func FuzzContext(f *testing.F) {
	f.Add("application/json", "", []byte(`{"a":[1,{"b":"c"}]}`), "q=1&q=2&%zz=+", "X-A", "b")
	f.Add("application/x-www-form-urlencoded", "", []byte("a=%C3%A9&a=%ff&=&"), "", "x-a", "\x00\xff")
	f.Add("text/plain", "deflate", []byte("\x00x"), "&&=", "", "")
	f.Fuzz(func(t *testing.T, contentType, encoding string, body []byte, query, name, value string) {
		ev := arrival(string(body))
		ev.ContentType, ev.RawQuery, ev.Path = contentType, query, query
		ev.Headers = hookglass.Headers{{Name: "Content-Encoding", Value: encoding}, {Name: name, Value: value}, {Name: strings.ToUpper(name), Value: value}}
		c := action.NewContext(ev, endpoint, nil)
		all, ok := c.At(jsondoc.Pointer{})
		if !ok {
			t.Fatal("there is always a context")
		}
		text := all.Bytes()
		again, err := jsondoc.Parse(text, jsondoc.Bounds{Bytes: len(text), Depth: jsondoc.MaxDepth + 2})
		if err != nil || !jsondoc.Same(all, again) || all.Size() != len(text) {
			t.Fatalf("%s: %v", text, err)
		}
	})
}
