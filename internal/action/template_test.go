package action_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/jsondoc"
	"hookglass/internal/redact"
)

// arrival is a webhook with a JSON body.
func arrival(body string) *hookglass.Event {
	return &hookglass.Event{
		ID: "req_1", Type: hookglass.EventWebhook, Method: "POST", Path: "/in/a%20b", RawQuery: "q=1&tag=a&tag=b+c&bad=%zz", ContentType: "application/json",
		Provider: "github", EventType: "push", DeliveryID: "d-1", SignatureStatus: hookglass.SignatureVerified, ReceivedAt: time.Unix(1, 0),
		Payload: &hookglass.Payload{
			Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "X-A", Value: "one"}, {Name: "x-a", Value: "two"}, {Name: "X-Break", Value: "a\tb"}},
			Body:    []byte(body),
		},
	}
}

var endpoint = &hookglass.Endpoint{ID: "ep_1", Name: "Main & more"}

func values(body string) action.Values {
	secrets := map[string]string{"KEY": "s3cret-value-0123456789", "ODD": "a\"b\\c\n{{ request.id }}&/", "CRLF": "a\r\nX-Evil: 1"}
	c := action.NewContext(arrival(body), endpoint, nil)
	c.SetStep("shape", hookglass.StepCompleted, new(jsondoc.Members(jsondoc.Member{Name: "n", Value: jsondoc.Int(7)})))
	c.SetStep("empty", hookglass.StepFailed, nil)
	c.SetStep("null", hookglass.StepCompleted, new(jsondoc.Value))
	return action.Values{Context: c, Secret: func(name string) (string, bool) { s, ok := secrets[name]; return s, ok }}
}

const sample = `{"id":12345678901234567890,"s":"say \"hi\"\n","o":{"b":1.0,"a":[]},"yes":true,"none":null,"list":["x",{"y":"z"}],
	"dot":".","up":"..","empty":"","evil":"{{ secrets.KEY }}{{request.id}}","url":"https://example.com/a?b=c","two words":1,"é":"è","line":"a\r\nb"}`

func TestTemplates(t *testing.T) {
	for _, c := range []struct {
		place          action.Place
		template, want string
	}{
		{action.InText, ``, ``},
		{action.InText, `plain } }} { text`, `plain } }} { text`},
		{action.InText, `{{request.id}} {{ request.method }} {{	request.path
}}`, `req_1 POST /in/a%20b`},
		{action.InText, `{{request.query.q}} {{request.query.tag}} {{request.query.tag.1}} {{request.query.bad}}`, `1 ["a","b c"] b c %zz`},
		{action.InText, `{{request.headers.x-a}} {{request.content_type}}`, `one, two application/json`},
		{action.InText, `{{provider.name}} {{provider.event_type}} {{provider.delivery_id}} {{provider.signature_status}}`, `github push d-1 verified`},
		{action.InText, `{{endpoint.id}} {{endpoint.name}}`, `ep_1 Main & more`},
		{action.InText, `{{steps.shape.status}} {{steps.shape.output.n}} {{steps.shape.output}}`, `completed 7 {"n":7}`},
		{action.InText, `{{request.body.id}} {{request.body.yes}} {{request.body.o}} {{request.body.list.1.y}} {{request.body.é}}`, `12345678901234567890 true {"b":1.0,"a":[]} z è`},
		{action.InText, `{{request.body.evil}}`, `{{ secrets.KEY }}{{request.id}}`},
		{action.InText, `{{{{request.id}}`, ``},
		{action.InText, `{{secrets.KEY}}`, `s3cret-value-0123456789`},
		{action.InText, `{{ secrets.ODD }}`, "a\"b\\c\n{{ request.id }}&/"},

		{action.InJSON, `{"a":"{{request.body.s}}","b":{{request.body.s}}}`, `{"a":"say \"hi\"\n","b":"say \"hi\"\n"}`},
		{action.InJSON, `{"a":"<{{request.body.o}}>","b":{{request.body.o}},"c":{{request.body.id}},"d":{{request.body.yes}}}`, `{"a":"<{\"b\":1.0,\"a\":[]}>","b":{"b":1.0,"a":[]},"c":12345678901234567890,"d":true}`},
		{action.InJSON, `{"a\"{":"{{secrets.ODD}}","b":{{secrets.ODD}}}`, `{"a\"{":"a\"b\\c\n{{ request.id }}&/","b":"a\"b\\c\n{{ request.id }}&/"}`},
		{action.InJSON, `{"a":{{request.body.none}},"b":[{{request.body.none}}]}`, `{"a":null,"b":[null]}`},
		{action.InJSON, `{{request.body.list}}`, `["x",{"y":"z"}]`},
		{action.InJSON, `{"a":"C:\\{{request.body.s}}","b":"\\u00{{request.body.id}}","c":"\u00e9{{request.body.id}}"}`, `{"a":"C:\\say \"hi\"\n","b":"\\u0012345678901234567890","c":"\u00e912345678901234567890"}`},
		{action.InText, `\{{request.body.id}}`, `\12345678901234567890`},
		{action.InJSON, `{"a":{{steps.null.output}}}`, `{"a":null}`},
		{action.InJSON, `{"a":{"b":{{request.body.o}}}}`, `{"a":{"b":{"b":1.0,"a":[]}}}`},

		{action.InJSON, "{\"a\":\"{{request.body.s}}\"}\n{{request.body.o}}\n", "{\"a\":\"say \\\"hi\\\"\\n\"}\n{\"b\":1.0,\"a\":[]}\n"},

		{action.InForm, `to=me&say={{secrets.ODD}}&o={{request.body.o}}`, `to=me&say=a%22b%5Cc%0A%7B%7B%20request.id%20%7D%7D%26%2F&o=%7B%22b%22%3A1.0%2C%22a%22%3A%5B%5D%7D`},
		{action.InForm, `{{request.body.url}}`, `https://example.com/a?b=c`},

		{action.InURL, `https://h/{{request.body.s}}?q={{request.path}}&e={{request.body.é}}`, `https://h/say%20%22hi%22%0A?q=%2Fin%2Fa%2520b&e=%C3%A8`},
		{action.InURL, `https://h/a{{request.body.up}}/{{request.body.up}}.{{request.body.dot}}/?q={{request.body.up}}/{{request.body.up}}#{{request.body.up}}/`, `https://h/a../..../?q=../..#../`},
		{action.InURL, `https://h/../{{request.body.yes}}`, `https://h/../true`},
		{action.InURL, `{{request.body.url}}`, `https://example.com/a?b=c`},
		{action.InURL, `{{request.body.url}}/x`, `https%3A%2F%2Fexample.com%2Fa%3Fb%3Dc/x`},
		{action.InURL, `https://h/{{secrets.ODD}}`, `https://h/a%22b%5Cc%0A%7B%7B%20request.id%20%7D%7D%26%2F`},

		{action.InHeader, `Bearer {{secrets.KEY}}`, `Bearer s3cret-value-0123456789`},
		{action.InHeader, `{{request.body.o}}`, `{"b":1.0,"a":[]}`},
	} {
		template, err := action.ParseTemplate(c.template, c.place)
		if err != nil {
			if c.want != "" {
				t.Errorf("%s: %v", c.template, err)
			}
			continue
		}
		got, err := template.Render(values(sample))
		if err != nil || got.Text != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.template, err, got.Text, c.want)
		}
		if c.place == action.InJSON && !json.Valid([]byte("["+strings.ReplaceAll(strings.TrimSpace(got.Text), "\n", ",")+"]")) {
			t.Errorf("%s is no JSON: %s", c.template, got.Text)
		}
	}
}

// What cannot be filled in fails with the place of the placeholder, and says nothing of a value.
func TestTemplatesFail(t *testing.T) {
	for _, c := range []struct {
		place    action.Place
		template string
		at       int
		says     string
	}{
		{action.InText, `é {{request.nothing}}`, 3, "no such value"},
		{action.InText, `{{request.body.id}} {{request.body.missing}}`, 21, "no such value"},
		{action.InText, `{{request.body.none}}`, 1, "has no value"},
		{action.InJSON, `{"a":"{{request.body.none}}"}`, 7, "has no value"},
		{action.InJSON, `{"a":{{provider.event_id}}}`, 6, "has no value"},
		{action.InJSON, `{"a":{{request.body.missing}}}`, 6, "no such value"},
		{action.InJSON, `{"a":{{steps.empty.output}}}`, 6, "has no value"},
		{action.InJSON, `{"a":"{{steps.null.output}}"}`, 7, "has no value"},
		{action.InJSON, `{"a":"C:\{{request.body.s}}"}`, 10, "escape sequence"},
		{action.InJSON, `{"a":"\\\{{secrets.KEY}}"}`, 10, "escape sequence"},
		{action.InJSON, `{"a":"{{request.body.s}}\{{request.body.s}}"}`, 26, "escape sequence"},
		{action.InJSON, `{"a":"\u00{{request.body.id}}"}`, 11, "escape sequence"},
		{action.InURL, `https://h/{{request.body.none}}`, 11, "has no value"},
		{action.InURL, `https://h/users/{{request.body.up}}/sessions`, 17, "lead elsewhere"},
		{action.InURL, `https://h/users/{{request.body.up}}`, 17, "lead elsewhere"},
		{action.InURL, `https://h/users/{{request.body.up}}?a=b`, 17, "lead elsewhere"},
		{action.InURL, `https://h/{{request.body.yes}}/{{request.body.dot}}/x`, 32, "lead elsewhere"},
		{action.InURL, `https://h/{{request.body.dot}}{{request.body.dot}}/x`, 11, "lead elsewhere"},
		{action.InURL, `https://h/%2E{{request.body.dot}}/x`, 14, "lead elsewhere"},
		{action.InURL, `https://h/..{{request.body.empty}}/x`, 13, "lead elsewhere"},
		{action.InURL, `https://h/{{request.body.up}};v=1/x`, 11, "lead elsewhere"},
		{action.InText, `{{provider.event_id}}`, 1, "has no value"},
		{action.InText, `{{request.headers.X-A}}`, 1, "no such value"},
		{action.InText, `{{request.body.list.01}}`, 1, "no such value"},
		{action.InText, `{{request.body.list.-}}`, 1, "no such value"},
		{action.InText, `{{email.from}}`, 1, "no mail"},
		{action.InText, `{{steps.later.output}}`, 1, "no such step"},
		{action.InText, `{{steps}}`, 1, "steps.reference_key"},
		{action.InText, `{{nothing}}`, 1, "not known"},
		{action.InText, `{{Request.id}}`, 1, "not known"},
		{action.InText, `{{request_id}}`, 1, "not known"},
		{action.InText, `{{secrets}}`, 1, "secrets.NAME"},
		{action.InText, `{{secrets.KEY.x}}`, 1, "secrets.NAME"},
		{action.InText, `{{secrets.1}}`, 1, "secrets.NAME"},
		{action.InText, `{{secrets.OTHER}}`, 1, `no secret "OTHER"`},
		{action.InHeader, `a{{secrets.CRLF}}`, 2, "control character"},
		{action.InHeader, `a{{request.body.line}}`, 2, "control character"},
		{action.InHeader, `a{{request.headers.x-break}}`, 2, "control character"},
		{action.InURL, `{{request.body.line}}`, 1, "control character"},
	} {
		template, err := action.ParseTemplate(c.template, c.place)
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		got, err := template.Render(values(sample))
		var fault *action.TemplateError
		if !errors.As(err, &fault) || fault.At != c.at || !strings.Contains(fault.Message, c.says) {
			t.Errorf("%s: %v (%q), want %d %s", c.template, err, got.Text, c.at, c.says)
		} else if strings.Contains(err.Error(), "Evil") || strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%s: the error holds a value: %v", c.template, err)
		}
	}
}

func TestTemplatesAreStrict(t *testing.T) {
	for _, c := range []struct {
		place    action.Place
		template string
		at       int
	}{
		{action.InText, `{{`, 1},
		{action.InText, `é{{request.id`, 2},
		{action.InText, `é{{request.id}}ü{{ ré }}{{`, 25},
		{action.InText, `{{request.id}`, 1},
		{action.InText, `{{request.id} }`, 1},
		{action.InText, `{{}}`, 1},
		{action.InText, `{{ }}`, 1},
		{action.InText, `{{request..id}}`, 1},
		{action.InText, `{{.request}}`, 1},
		{action.InText, `{{request.}}`, 1},
		{action.InText, `{{request.id | upper}}`, 1},
		{action.InText, `{{request id}}`, 1},
		{action.InText, `{{{request.id}}}`, 1},
		{action.InText, `{{#if request.id}}x{{/if}}`, 1},
		{action.InText, `{{"x"}}`, 1},
		{action.InText, `{{f(x)}}`, 1},
		{action.InText, "{{request.\x00}}", 1},
		{action.InText, "\xff", 0},
		{action.InHeader, "a\r\nb", 0},
		{action.InHeader, "{{request.id}}\x00", 0},
		{action.InHeader, "a\u0085b", 0},
		{action.InURL, "https://h/\n", 0},
		{action.InText, strings.Repeat("a", 256<<10+1), 0},
		{action.InText, strings.Repeat("{{request.id}}", 1001), 14*1000 + 1},
	} {
		_, err := action.ParseTemplate(c.template, c.place)
		var fault *action.TemplateError
		if !errors.As(err, &fault) || fault.At != c.at {
			t.Errorf("%.60q: %v, want a fault at %d", c.template, err, c.at)
		}
	}
}

func TestRenderedTextsAreBounded(t *testing.T) {
	big := func(n int) string { return `{"s":"` + strings.Repeat("a", n) + `"}` }
	for _, c := range []struct {
		place    action.Place
		template string
		size     int
		ok       bool
	}{
		{action.InText, `{{request.body.s}}`, 256<<10 - 2, true},
		{action.InText, `{{request.body.s}}xx`, 256<<10 - 2, true},
		{action.InText, `{{request.body.s}}xxx`, 256<<10 - 2, false},
		{action.InText, `{{request.body.s}}`, 256 << 10, true},
		{action.InText, `{{request.body.s}}`, 256<<10 + 1, false},
		{action.InJSON, `"{{request.body.s}}"`, 256<<10 - 2, true},
		{action.InJSON, `{{request.body.s}}`, 256<<10 - 1, false},
		{action.InText, `{{request.body.s}}`, 300 << 10, false},
		{action.InText, strings.Repeat(`{{request.body.s}}`, 1000), 200 << 10, false},
		{action.InURL, `https://h/{{request.body.s}}`, 2048 - 10, true},
		{action.InURL, `https://h/{{request.body.s}}`, 2048 - 9, false},
		{action.InURL, `{{request.body.s}}`, 2048, true},
		{action.InURL, `{{request.body.s}}`, 2049, false},
	} {
		template, err := action.ParseTemplate(c.template, c.place)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = template.Render(values(big(c.size))); (err == nil) != c.ok {
			t.Errorf("%.40s with %d bytes: %v", c.template, c.size, err)
		}
	}
	// What a text takes in JSON is not what it takes here.
	template, err := action.ParseTemplate(`{{request.body.s}}`, action.InText)
	if err != nil {
		t.Fatal(err)
	}
	quotes := `{"s":"` + strings.Repeat(`\"`, 200<<10) + `"}`
	if got, err := template.Render(values(quotes)); err != nil || len(got.Text) != 200<<10 {
		t.Errorf("200 KiB of quotes made %d bytes: %v", len(got.Text), err)
	}
}

func TestTemplatesTellWhatTheyName(t *testing.T) {
	template, err := action.ParseTemplate(`{{secrets.B}}{{secrets.A}}{{secrets.B}}{{steps.x.output}}{{steps.y.status}}{{steps.x}}{{request.id}}{{secrets}}`, action.InText)
	if err != nil {
		t.Fatal(err)
	}
	if got := template.Secrets(); !slices.Equal(got, []string{"B", "A"}) {
		t.Error(got)
	}
	if got := template.Steps(); !slices.Equal(got, []string{"x", "y"}) {
		t.Error(got)
	}
}

// A rendering knows which of its parts were secrets, however they were escaped.
func TestRenderedSecretsAreMasked(t *testing.T) {
	for _, c := range []struct {
		place          action.Place
		template, want string
	}{
		{action.InText, `a {{secrets.KEY}} b {{request.id}}{{secrets.ODD}}`, `a {{secrets.KEY}} b req_1{{secrets.ODD}}`},
		{action.InJSON, `{"a":"x{{secrets.ODD}}","b":{{secrets.KEY}}}`, `{"a":"x{{secrets.ODD}}","b":"{{secrets.KEY}}"}`},
		{action.InURL, `https://h/?k={{secrets.ODD}}&x=1`, `https://h/?k={{secrets.ODD}}&x=1`},
		{action.InHeader, `Bearer {{secrets.KEY}}`, `Bearer {{secrets.KEY}}`},
		{action.InHeader, `{{request.id}}`, `req_1`},
	} {
		template, err := action.ParseTemplate(c.template, c.place)
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := template.Render(values(sample))
		if err != nil || rendered.Masked() != c.want {
			t.Errorf("%s: %s: %v", c.template, rendered.Masked(), err)
		}
	}
}

func TestBodiesAreJSONByTheirTypeOrTheirLooks(t *testing.T) {
	for _, c := range []struct {
		contentType, body string
		want              action.Place
	}{
		{"application/json; charset=utf-8", "{{request.body}}", action.InJSON},
		{"Application/CloudEvents+JSON", "x", action.InJSON},
		{"text/plain", `{"a":1}`, action.InText},
		{"application/x-ndjson", `{"a":1}`, action.InJSON},
		{"application/json-seq", `{"a":1}`, action.InJSON},
		{"application/x-www-form-urlencoded; charset=utf-8", `{"a":1}`, action.InForm},
		{"", ` {"a":{{request.id}}}`, action.InJSON},
		{"", `[{{request.id}}]`, action.InJSON},
		{"", `{{request.body}}`, action.InText},
		{"", `a=b`, action.InText},
		{"", ``, action.InText},
		{"{{request.content_type}}", `{"a":1}`, action.InJSON},
	} {
		if got := action.BodyPlace(c.contentType, c.body); got != c.want {
			t.Errorf("%q %s: %v", c.contentType, c.body, got)
		}
	}
}

func TestMessages(t *testing.T) {
	ev := arrival("")
	ev.EventType = ""
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"{{endpoint_name}} {{ endpoint_id }}: {{request_id}} {{event_type}} {{provider}}", "Main & more ep_1: req_1  github"},
	} {
		m, err := action.ParseMessage(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.RenderMessage(ev, endpoint); err != nil || got != c.want || m.Secrets() != nil || m.Steps() != nil {
			t.Errorf("%s: %q %v", c.text, got, err)
		}
	}
	for _, text := range []string{"{{request.id}}", "{{secrets.KEY}}", "a {{unknown}}"} {
		m, err := action.ParseMessage(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.RenderMessage(ev, endpoint); err == nil {
			t.Errorf("%s: %s", text, got)
		}
	}
	if _, err := action.ParseMessage("{{endpoint_name"); err == nil {
		t.Error("braces that do not close")
	}
}

func FuzzTemplate(f *testing.F) {
	for i, seed := range []string{`{"a":"{{request.body.s}}","b":{{ secrets.ODD }}}`, `https://h/{{request.path}}?{{secrets.KEY}}`, `{{`, `Bearer {{secrets.KEY}}`, `{{request.body}}`} {
		f.Add(seed, sample, i%4)
	}
	f.Fuzz(func(t *testing.T, text, body string, place int) {
		if place < 0 || place > 3 {
			return
		}
		template, err := action.ParseTemplate(text, action.Place(place))
		if err != nil {
			return
		}
		got, err := template.Render(values(body))
		if err != nil {
			if strings.Contains(err.Error(), "s3cret") {
				t.Fatal(err)
			}
			return
		}
		from := 0
		for _, s := range got.Spans {
			if s.Start < from || s.End < s.Start || s.End > len(got.Text) {
				t.Fatalf("%v in %d bytes", got.Spans, len(got.Text))
			}
			from = s.End
		}
		if len(got.Text) > action.MaxRendered || !utf8.ValidString(got.Text) {
			t.Fatalf("%q", got.Text)
		}
		if !strings.Contains(text, "s3cret") && !strings.Contains(body, "s3cret") && strings.Contains(got.Masked(), "s3cret-value") {
			t.Fatalf("%q shows a secret in %q", text, got.Masked())
		}
		switch action.Place(place) {
		case action.InHeader:
			if strings.ContainsAny(got.Text, "\r\n\x00") {
				t.Fatalf("%q", got.Text)
			}
		case action.InJSON:
			// Where the template is JSON with words for its placeholders, so is what it makes.
			if !strings.Contains(text, "{{{") && json.Valid([]byte(text)) && !json.Valid([]byte(got.Text)) {
				t.Fatalf("%q became %q", text, got.Text)
			}
		case action.InURL:
			if u, err := url.Parse(text); err == nil && u.Host != "" && !strings.Contains(u.Host, "{{") && !strings.Contains(text, "}}") {
				if v, err := url.Parse(got.Text); err != nil || v.Host != u.Host {
					t.Fatalf("%q became %q", text, got.Text)
				}
			}
		}
	})
}

// A preview renders with words in place of secrets, and shows each as its placeholder; text of the event that looks
// like one is none.
func TestPreviewsShowPlaceholders(t *testing.T) {
	secret, masks := action.StandIns([]string{"KEY", "OTHER"})
	c := action.NewContext(arrival(`{"evil":"{{secrets.KEY}}"}`), endpoint, nil)
	v := action.Values{Context: c, Secret: secret}
	transform, faults := action.ParseTransform([]byte(`{"source":"request","operations":[{"op":"select","path":"/body"},{"op":"set","path":"/k","template":"a {{secrets.KEY}}"},{"op":"wrap","key":"w"}]}`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	out, failure := transform.Run(v)
	if failure != nil {
		t.Fatal(failure)
	}
	template, err := action.ParseTemplate("https://h/{{secrets.OTHER}}?x={{request.body.evil}}", action.InURL)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := template.Render(v)
	if err != nil {
		t.Fatal(err)
	}
	r := redact.New(masks...)
	shown, paths := r.Value(out)
	if string(shown.Bytes()) != `{"w":{"evil":"{{secrets.KEY}}","k":"a {{secrets.KEY}}"}}` || !slices.Equal(paths, []string{"/w/k"}) {
		t.Errorf("%s %q", shown.Bytes(), paths)
	}
	if got := r.Text(rendered.Text); got != "https://h/{{secrets.OTHER}}?x=%7B%7Bsecrets.KEY%7D%7D" {
		t.Error(got)
	}
	key, _ := secret("KEY")
	for value, want := range map[string]string{
		"Bearer " + key: "Bearer {{secrets.KEY}}", key: "{{secrets.KEY}}", key + ":hunter2": "[redacted]", "Bearer abc": "[redacted]",
	} {
		if got := r.Headers(hookglass.Headers{{Name: "Authorization", Value: value}})[0].Value; got != want {
			t.Errorf("%q is shown as %q", value, got)
		}
		got, paths := r.Value(jsondoc.Members(jsondoc.Member{Name: "authorization", Value: jsondoc.Text(value)}))
		if m, _ := got.Member("authorization"); m.Text() != want || !slices.Equal(paths, []string{"/authorization"}) {
			t.Errorf("%q is shown as %s at %q", value, got.Bytes(), paths)
		}
	}
	if _, ok := secret("THIRD"); ok {
		t.Error("a secret that is not there has a stand-in")
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
		cut  bool
	}{{"abc", 3, "abc", false}, {"abcd", 3, "abc", true}, {"aé", 2, "a", true}, {"aé", 3, "aé", false}, {"😀", 3, "", true}, {"", 0, "", false}} {
		if got, cut := action.Cut(c.text, c.n); got != c.want || cut != c.cut {
			t.Errorf("%q to %d: %q %v", c.text, c.n, got, cut)
		}
	}
}
