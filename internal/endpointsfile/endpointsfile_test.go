package endpointsfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/endpointsfile"
)

// vault holds the secrets of a test.
type vault map[string]string

func (v vault) Env(name string) (string, error) { return v.get("env " + name) }

func (v vault) File(path string) (string, error) { return v.get("file " + path) }

func (v vault) get(name string) (string, error) {
	if v[name] == "" {
		return "", errors.New("names nothing")
	}
	return v[name], nil
}

// example is the one of the documentation.
func example(t testing.TB) []byte {
	t.Helper()
	page, err := os.ReadFile("../../docs/endpoints-file.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	return []byte(text)
}

var secrets = vault{"env STRIPE_WEBHOOK_SECRET": "whsec_1", "file acme.secret": "s3cret", "env S": "x", "env STAGING_AUTHORIZATION": "Bearer t0ken", "file bytes": "hush\xff"}

func TestTheExampleOfTheDocumentation(t *testing.T) {
	f, err := endpointsfile.Parse("endpoints.yaml", example(t), secrets)
	if err != nil {
		t.Fatal(err)
	}
	d := f.Declaration
	if len(d.Endpoints) != 3 || !d.Prune.Value || d.Workspace.Value != "Default" || d.Version.Value != 1 {
		t.Fatalf("%+v", d)
	}
	payments, acme := d.Endpoints[0], d.Endpoints[1]
	if payments.Response.Value.Body != `{"received": "{{event.id}}"}` || *payments.Response.Value.Status != 202 {
		t.Errorf("response: %+v", payments.Response.Value)
	}
	if rules := payments.ResponseRules.Value; len(rules) != 1 || rules[0].When != "signature:failed" || *rules[0].Status != 401 {
		t.Errorf("response_rules: %+v", rules)
	}
	if payments.SignatureConfigs[0].Secret.Value != "whsec_1" || acme.SignatureConfigs[0].Secret.Value != "s3cret" {
		t.Error("the secrets are not those that were named")
	}
	if h := payments.ForwardingTargets[0].Headers.Value; len(h) != 2 || h["Authorization"] != "Bearer t0ken" || h["X-Environment"] != "staging" {
		t.Errorf("headers: %v", h)
	}
	if string(payments.Actions[0].Steps.Value[0].Config) != `{"tag":"refund"}` {
		t.Errorf("config: %s", payments.Actions[0].Steps.Value[0].Config)
	}
	if h := acme.ProviderConfig.Value.Handshake; h == nil || *h {
		t.Error("handshake: false was not read")
	}
}

func TestWhatIsWrongIsToldWithItsLine(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for name, c := range map[string]struct{ text, want string }{
		"an unknown key":             {"version: 1\nendpoints:\n  - custom_id: a\n    nmae: b\n", "f:4: endpoints.0.nmae is not a known key"},
		"an unknown key of a part":   {"endpoints:\n- custom_id: a\n  forwarding_targets:\n  - name: x\n    retries: 3\n", "f:5: endpoints.0.forwarding_targets.0.retries is not a known key"},
		"an unknown key at the top":  {"endpoint: []\n", "f:1: endpoint is not a known key"},
		"a wrong type":               {"endpoints:\n- custom_id: a\n  enabled: \"yes\"\n", "f:3: endpoints.0.enabled is of another type"},
		"a number for a name":        {"endpoints:\n- custom_id: 12\n", "f:2: endpoints.0.custom_id is of another type"},
		"a key that is there twice":  {"endpoints:\n- custom_id: a\n  name: a\n  name: b\n", "f:4: endpoints.0.name is there twice"},
		"a secret in the clear":      {"endpoints:\n- custom_id: a\n  signature_configs:\n  - provider: stripe\n    secret: whsec_hush\n", "f:5: endpoints.0.signature_configs.0.secret is never written down: say {env: NAME} or {file: PATH}"},
		"a secret of another place":  {"endpoints:\n- signature_configs:\n  - secret: {vault: x}\n", "f:3: endpoints.0.signature_configs.0.secret is never written down: say {env: NAME} or {file: PATH}"},
		"a secret that is not there": {"endpoints:\n- signature_configs:\n  - secret: {env: NOPE}\n", "f:3: endpoints.0.signature_configs.0.secret names nothing"},
		"a secret of bytes":          {"endpoints:\n- signature_configs:\n  - secret: {file: bytes}\n", "f:3: endpoints.0.signature_configs.0.secret names what is no text in UTF-8"},
		"a credential in the clear":  {"endpoints:\n- forwarding_targets:\n  - headers:\n      X-A: b\n      x-api-key: hush\n", "f:5: endpoints.0.forwarding_targets.0.headers.x-api-key is never written down: say {env: NAME} or {file: PATH}"},
		"an access key in the clear": {"endpoints:\n- forwarding_targets:\n  - headers:\n      X-A: b\n      x-access-key: hush\n", "f:5: endpoints.0.forwarding_targets.0.headers.x-access-key is never written down: say {env: NAME} or {file: PATH}"},
		"a header of another place":  {"endpoints:\n- forwarding_targets:\n  - headers: {X.A: {vault: hush}}\n", "f:3: endpoints.0.forwarding_targets.0.headers.X.A is never written down: say {env: NAME} or {file: PATH}"},
		"a header of a number":       {"endpoints:\n- forwarding_targets:\n  - headers: {X-A: 1}\n", "f:3: endpoints.0.forwarding_targets.0.headers.X-A is of another type"},
		"a merge key":                {"x: &x {name: a}\nendpoints:\n- <<: *x\n", "f:3: endpoints.0 has a merge key (<<), which is not taken"},
		"a key that is a list":       {"endpoints:\n- [a]: b\n", "f:2: endpoints.0 has a key that is no text"},
		"no YAML":                    {"endpoints: [\n", "f:1: is not YAML: did not find expected node content"},
		"nothing":                    {"# only this\n", "f: is empty"},
		"a document of nothing":      {"---\n", "f: is empty"},
		"two documents":              {"version: 1\n---\nversion: 1\n", "f: holds several documents; one is read"},
		"a list":                     {"- a\n", "f:1: is of another type"},
		"too deep":                   {"endpoints: " + deep + "\n", "is more than a file may hold"},
		"not a number":               {"endpoints:\n- custom_id: a\n  response: {status: .nan}\n", "f:3: endpoints.0.response.status is no number that JSON has"},
		"a tag":                      {"endpoints: !!binary aGk=\n", "f:1: endpoints has a tag that is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := endpointsfile.Parse("f", []byte(c.text), secrets)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("the secret shows: %v", err)
			}
		})
	}
}

// All faults are told at once, of the form and of what it says.
func TestAllFaultsOfAFileAreToldAtOnce(t *testing.T) {
	text := `endpoints:
- custom_id: aa
  colour: red
  signature_configs:
  - {provider: stripe, secret: whsec_hush, a/b: 1}
  forwarding_targets:
  - {name: 5, url: "https://app.example.com/", retry_count: many}
  - {name: next, url: "https://app.example.com/", headers: {Authorization: {env: UNSET}}}
- custom_id: bb
  enabled: "yes"
`
	f, err := endpointsfile.Parse("f", []byte(text), secrets)
	for _, want := range []string{
		"f:3: endpoints.0.colour is not a known key", "f:5: endpoints.0.signature_configs.0.secret is never written down", "f:5: endpoints.0.signature_configs.0.a/b is not a known key",
		"f:7: endpoints.0.forwarding_targets.0.name is of another type", "f:7: endpoints.0.forwarding_targets.0.retry_count is of another type", "f:8: endpoints.0.forwarding_targets.1.headers.Authorization names nothing",
		"f:10: endpoints.1.enabled is of another type",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if f == nil || len(f.Declaration.Endpoints) != 2 {
		t.Fatalf("what is left is %+v", f)
	}
	located := f.Locate([]hookglass.FieldError{
		{Field: "declaration.endpoints.0.signature_configs.0.secret", Message: "is required"},
		{Field: "declaration.endpoints.0.forwarding_targets.1.headers", Message: "may not leave Authorization empty"},
		{Field: "declaration.endpoints.1.custom_id", Message: "must be longer"},
	})
	if located.Error() != "f:9: endpoints.1.custom_id must be longer" {
		t.Errorf("got %v", located)
	}
	many := "endpoints:\n- custom_id: aa\n"
	for i := range 100 {
		many += fmt.Sprintf("  k%d: 1\n", i)
	}
	if _, err := endpointsfile.Parse("f", []byte(many), secrets); strings.Count(err.Error(), "\n") != 19 {
		t.Errorf("%d faults", 1+strings.Count(err.Error(), "\n"))
	}
}

// A key that cannot be kept is one fault, and what stands around it is judged.
func TestAKeyThatCannotBeKeptIsToldOnce(t *testing.T) {
	f, err := endpointsfile.Parse("f", []byte("endpoints:\n- custom_id: aa\n  name: a\n  name: b\n- ? [name]\n  : c\n"), secrets)
	if want := "f:4: endpoints.0.name is there twice\nf:5: endpoints.1 has a key that is no text"; err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if f == nil || len(f.Declaration.Endpoints) != 2 {
		t.Errorf("what is left is %+v", f)
	}
}

func TestAFileIsBounded(t *testing.T) {
	fits := []byte("version: 1\n" + strings.Repeat("#", endpointsfile.MaxBytes-11))
	if _, err := endpointsfile.Parse("f", fits, secrets); err != nil {
		t.Error(err)
	}
	if _, err := endpointsfile.Parse("f", append(fits, '#'), secrets); err == nil {
		t.Error("a byte more was read")
	}
	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'k'; i++ {
		laughs += string(i) + ": &" + string(i) + " [" + strings.Repeat("*"+string(i-1)+",", 10) + "]\n"
	}
	if _, err := endpointsfile.Parse("f", []byte(laughs), secrets); err == nil || !strings.Contains(err.Error(), "more than a file may hold") {
		t.Errorf("aliases of aliases: %v", err)
	}
}

func TestAnchorsAreValues(t *testing.T) {
	f, err := endpointsfile.Parse("f", []byte("endpoints:\n- {custom_id: a, response: &r {status: 0xC9}}\n- {custom_id: b, response: *r}\n"), secrets)
	if err != nil {
		t.Fatal(err)
	}
	if *f.Declaration.Endpoints[1].Response.Value.Status != 201 {
		t.Errorf("%+v", f.Declaration.Endpoints[1])
	}
}

func TestPathsOfTheAPIAreFoundInTheFile(t *testing.T) {
	f, err := endpointsfile.Parse("f", example(t), secrets)
	if err != nil {
		t.Fatal(err)
	}
	for path, line := range map[string]int{
		"declaration.endpoints.0.forwarding_targets.0.url": 20,
		"endpoints.0.actions.0.steps.0.config.tag":         35,
		"endpoints.0.actions.0.steps.0.config.other.inner": 35, // the nearest around it
		"endpoints.2.kind": 51,
	} {
		fault := f.Fault(path, "x")
		if fault.Line != line {
			t.Errorf("%s stands in line %d, got %d", path, line, fault.Line)
		}
	}
	err = f.Locate([]hookglass.FieldError{{Field: "endpoints.0.name", Message: "is bad"}, {Field: "workspace", Message: "is no workspace of yours"}})
	if want := "f:7: endpoints.0.name is bad\nf:2: workspace is no workspace of yours"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// An email endpoint of an older version may have settings of answers, which the server takes no more.
func TestSettingsOfAnswersAreNotWrittenOfMail(t *testing.T) {
	answer, no := &api.Response{Body: "ok"}, false
	for kind, want := range map[string]bool{"webhook": true, "email": false} {
		var out bytes.Buffer
		e := endpointsfile.Existing{Endpoint: api.Endpoint{ID: "ep_x", Name: "One", Kind: kind, Response: answer, ProviderConfig: api.ProviderConfig{Handshake: &no}}}
		if err := endpointsfile.Write(&out, []endpointsfile.Existing{e}, nil); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "response:") != want || strings.Contains(out.String(), "provider_config:") != want {
			t.Errorf("%s: %s", kind, out.String())
		}
	}
}

// Of headers a file has no value: a comment says where they belong.
func TestHeadersOfTargetsAreWrittenByTheirNames(t *testing.T) {
	id := "pay-1"
	existing := []endpointsfile.Existing{{
		Endpoint: api.Endpoint{ID: "ep_x", Name: "Pay", Kind: "webhook", CustomID: &id},
		Targets:  []api.ForwardingTarget{{Name: "crm", URL: "https://a.example.com/", Headers: map[string]string{"X-Env": "[redacted]", "Authorization": "[redacted]"}}},
	}}
	var out bytes.Buffer
	if err := endpointsfile.Write(&out, existing, nil); err != nil {
		t.Fatal(err)
	}
	want := "url: https://a.example.com/ # headers: {Authorization: {env: PAY_1_CRM_AUTHORIZATION}, X-Env: {env: PAY_1_CRM_X_ENV}}; without headers those that are there stay\n"
	if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "redacted") {
		t.Error(out.String())
	}
	f, err := endpointsfile.Parse("f", out.Bytes(), secrets)
	if err != nil || f.Declaration.Endpoints[0].ForwardingTargets[0].Headers.Set {
		t.Errorf("%v", err)
	}
}

func TestThingsOfOneNameAreWrittenWithNamesThatDiffer(t *testing.T) {
	long := strings.Repeat("é", 200)
	id := "pay"
	existing := []endpointsfile.Existing{{
		Endpoint: api.Endpoint{ID: "ep_x", Name: "Pay", Kind: "webhook", CustomID: &id},
		Targets:  []api.ForwardingTarget{{Name: "crm"}, {Name: "crm 2"}, {Name: "crm"}, {Name: "crm"}},
		Actions:  []api.Action{{Name: long}, {Name: long}},
		Alerts:   []api.Alert{{Name: "crm", Kind: "missing_webhook"}},
	}}
	notes := endpointsfile.Distinct(existing)
	if len(notes) != 3 || !strings.Contains(notes[0], `pay has more than one forwarding target called "crm"; one is "crm 3"`) {
		t.Errorf("%q", notes)
	}
	var out bytes.Buffer
	if err := endpointsfile.Write(&out, existing, nil); err != nil {
		t.Fatal(err)
	}
	f, err := endpointsfile.Parse("f", out.Bytes(), secrets)
	if err != nil {
		t.Fatal(err)
	}
	e := f.Declaration.Endpoints[0]
	for i, want := range []string{"crm", "crm 2", "crm 3", "crm 4"} {
		if got := e.ForwardingTargets[i].Name.Value; got != want {
			t.Errorf("target %d is %q, want %q", i, got, want)
		}
	}
	if got := e.Actions[1].Name.Value; got == long || !strings.HasSuffix(got, "é 2") || utf8.RuneCountInString(got) > 200 {
		t.Errorf("the second action is %q", got)
	}
	if notes := endpointsfile.Distinct(existing); len(notes) > 0 {
		t.Errorf("what differs is said to be the same: %q", notes)
	}
}

// Ansible, Helm and others read YAML 1.1, to which these are no texts unless they are quoted.
func TestTextsAreTextsToReadersOfYAML11(t *testing.T) {
	for _, word := range []string{"no", "yes", "on", "Off", "y", "N", "1:30", "=", "<<", "012", "1_000", ".5_"} {
		var out bytes.Buffer
		e := endpointsfile.Existing{
			Endpoint: api.Endpoint{ID: "ep_x", Name: word, Kind: "webhook", CustomID: &word},
			Actions:  []api.Action{{Name: "A", Steps: []api.ActionStep{{ReferenceKey: "a", StepType: "transform", Config: json.RawMessage(`{"` + word + `":1}`)}}}},
		}
		if err := endpointsfile.Write(&out, []endpointsfile.Existing{e}, nil); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{`custom_id: "` + word + `"`, `name: "` + word + `"`, `"` + word + `": 1`} {
			if !strings.Contains(out.String(), line+"\n") {
				t.Errorf("%s is not there:\n%s", line, out.String())
			}
		}
	}
}

// What is written is read back, whatever texts are in it.
func FuzzWrite(f *testing.F) {
	for _, s := range []string{"plain", "true", "12", "0x1f", "~", "a: b", "- x", "#", "é\u2028 ", "two\nlines\n", "\t", "'\"", "{{ secrets.A }}", "2026-11-20", "<<", "!!x", "&a *b", "=", "\x00\x7f", "yes"} {
		f.Add(s, `{"a":[1,2.50,null,true,{"b":"c"}],"z":{}}`)
	}
	f.Fuzz(func(t *testing.T, s, config string) {
		var v map[string]any
		if !json.Valid([]byte(config)) || json.Unmarshal([]byte(config), &v) != nil || len(config) > 1000 {
			return
		}
		s = strings.ToValidUTF8(s, "?")
		id := "ep_x"
		e := endpointsfile.Existing{
			Endpoint: api.Endpoint{ID: id, Name: s, Kind: "webhook", CustomID: &s, Response: &api.Response{Headers: map[string]string{"A": s}, Body: s}},
			Actions:  []api.Action{{Name: s, Steps: []api.ActionStep{{ReferenceKey: "a", StepType: "tag", Name: s, Config: json.RawMessage(config)}}}},
		}
		var out bytes.Buffer
		if err := endpointsfile.Write(&out, []endpointsfile.Existing{e}, nil); err != nil {
			return // JSON with a name twice, which is none to the API
		}
		got, err := endpointsfile.Parse("f", out.Bytes(), secrets)
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		d := got.Declaration.Endpoints[0]
		if d.Name.Value != s || d.CustomID.Value != s || d.Response.Value.Body != s || d.Response.Value.Headers["A"] != s {
			t.Fatalf("%q came back as %+v\n%s", s, d, out.String())
		}
		var back map[string]any
		if err := json.Unmarshal(d.Actions[0].Steps.Value[0].Config, &back); err != nil || !reflect.DeepEqual(back, v) {
			t.Fatalf("%s came back as %s\n%s", config, d.Actions[0].Steps.Value[0].Config, out.String())
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(example(f))
	f.Add([]byte("endpoints:\n- custom_id: a\n  signature_configs: [{provider: stripe, secret: {env: S}}]\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := endpointsfile.Parse("f", text, secrets)
		if err == nil && file == nil {
			t.Error("neither a file nor an error")
		}
	})
}

// The schema for editors knows what the reader knows, and takes the example of the documentation.
func TestTheSchemaIsThatOfTheFile(t *testing.T) {
	text, err := os.ReadFile("../../docs/endpoints-file.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Properties map[string]any `json:"properties"`
		Defs       map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct {
		has  map[string]any
		of   any
		more []string // that the file has and the contract has not
		less []string // the other way round
	}{
		"the file":   {s.Properties, api.Declaration{}, []string{"account"}, nil},
		"endpoints":  {s.Defs["DeclaredEndpoint"].Properties, api.DeclaredEndpoint{}, nil, nil},
		"signatures": {s.Defs["NewSignatureConfig"].Properties, api.DeclaredSignatureConfig{}, nil, nil},
		"targets":    {s.Defs["NewForwardingTarget"].Properties, api.DeclaredForwardingTarget{}, nil, nil},
		"actions":    {s.Defs["NewAction"].Properties, api.NewAction{}, nil, nil},
		"alerts":     {s.Defs["DeclaredAlert"].Properties, api.DeclaredAlert{}, nil, nil},
		"conditions": {s.Defs["ActionCondition"].Properties, api.ActionCondition{}, nil, nil},
		"steps":      {s.Defs["NewStep"].Properties, api.NewStep{}, nil, nil},
		"of steps":   {s.Defs["ActionStepCondition"].Properties, api.ActionStepCondition{}, nil, nil},
		"settings":   {s.Defs["AlertSettings"].Properties, api.AlertSettings{}, nil, nil},
		"options":    {s.Defs["GenericOptions"].Properties, api.GenericOptions{}, nil, nil},
		"responses":  {s.Defs["Response"].Properties, api.Response{}, nil, nil},
		"rules":      {s.Defs["ResponseRule"].Properties, api.ResponseRule{}, nil, nil},
	} {
		want := of.more
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of.of)) {
			if member, _, _ := strings.Cut(f.Tag.Get("json"), ","); member != "" && !slices.Contains(of.less, member) {
				want = append(want, member)
				sameBounds(t, name+"."+member, of.has[member], f.Tag)
			}
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(of.has)); !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %v, the contract %v", name, got, want)
		}
	}
	config, _ := reflect.TypeFor[api.NewStep]().FieldByName("Config")
	if told, want := s.Defs["NewStep"].Properties["config"].(map[string]any)["description"], config.Tag.Get("doc"); told != want {
		t.Errorf("the schema tells %q of the config of a step, and the contract %q", told, want)
	}
	schema := new(jsonschema.Schema)
	if err := json.Unmarshal(text, schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, file := range map[string][]byte{
		"the example":               example(t),
		"a condition without value": []byte("endpoints: [{custom_id: abc, actions: [{name: A, conditions: [{field: has_tag, operator: exists}]}]}]"),
	} {
		var v any
		if err := yaml.Unmarshal(file, &v); err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(plain, &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// sameBounds checks that the schema of a member has the bounds in its tag, so that an editor refuses what the server
// refuses. Secrets are named in a file, not given.
func sameBounds(t *testing.T, member string, schema any, tag reflect.StructTag) {
	t.Helper()
	has, _ := schema.(map[string]any)
	if has == nil || has["oneOf"] != nil {
		return
	}
	for _, bound := range []string{"minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "minProperties", "maxProperties", "pattern"} {
		want := tag.Get(bound)
		got := ""
		if has[bound] != nil {
			got = fmt.Sprint(has[bound])
		}
		if n, err := strconv.ParseFloat(want, 64); err == nil && bound != "pattern" {
			want = fmt.Sprint(n)
		}
		if got != want {
			t.Errorf("%s: %s is %q in the schema, and %q in the contract", member, bound, got, want)
		}
	}
}
