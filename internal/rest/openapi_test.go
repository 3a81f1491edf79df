package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hookglass/internal/rest"
	"hookglass/internal/store/storetest"
)

// document is the description as a reader of it sees it.
type document struct {
	OpenAPI string `json:"openapi"`
	Info    struct{ Title, Version string }
	Servers []struct{ URL string }
	Paths   map[string]map[string]described
	raw     map[string]any
}

type described struct {
	OperationID, Summary, Description string
	Tags                              []string
	Parameters                        []struct {
		Name, In, Description string
		Required              bool
		Schema                map[string]any
		Example               any
	}
	RequestBody *struct {
		Content map[string]struct{ Schema, Example any }
	}
	Responses map[string]map[string]any
	Security  []map[string][]string
}

// What the service takes for an address of a person may be one of a host without a dot, which checkers of the format
// email refuse.
func TestNoFormatIsNamedThatAnswersDoNotHave(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	user := s.describe().raw["components"].(map[string]any)["schemas"].(map[string]any)["User"].(map[string]any)
	email := user["properties"].(map[string]any)["email"].(map[string]any)
	if format, named := email["format"]; named || email["type"] != "string" {
		t.Errorf("email is %v of the format %v", email["type"], format)
	}
}

// What a body may be is in its schema, so that who writes one is told before it is sent.
func TestTheBoundsOfBodiesAreDescribed(t *testing.T) {
	schemas := open(t, storetest.SQLite(t)).describe().raw["components"].(map[string]any)["schemas"].(map[string]any)
	for name, want := range map[string]map[string]any{
		"NewFlow/steps":                        {"minItems": 1.0, "maxItems": 20.0},
		"NewFlow/name":                         {"maxLength": 500.0},
		"NewFlow/timeout_seconds":              {"minimum": 0.1, "maximum": 86400.0},
		"NewFlowStep/within_seconds":           {"minimum": 0.001, "maximum": 86400.0},
		"NewFlowStep/id":                       {"pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$"},
		"NewFlowStep/subject":                  {"maxLength": 500.0},
		"FlowCount/at_least":                   {"minimum": 1.0, "maximum": 1000.0},
		"NewAction/name":                       {"minLength": 1.0, "maxLength": 200.0},
		"NewAction/position":                   {"minimum": 1.0},
		"NewAction/conditions":                 {"maxItems": 10.0},
		"ActionCondition/value":                {"minLength": 1.0, "maxLength": 500.0},
		"NewStep/reference_key":                {"pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"},
		"NewForwardingTarget/timeout_seconds":  {"minimum": 1.0, "maximum": 300.0},
		"NewForwardingTarget/rate_limit":       {"minimum": 1.0, "maximum": 1000.0},
		"NewForwardingTarget/dedupe_seconds":   {"minimum": 1.0, "maximum": 604800.0},
		"ForwardingTargetChange/retry_count":   {"minimum": 0.0, "maximum": 5.0},
		"ForwardingTargetChange/headers":       {"maxProperties": 20.0},
		"DeclaredForwardingTarget/retry_count": {"minimum": 0.0, "maximum": 5.0},
		"AlertSettings/window_minutes":         {"minimum": 1.0, "maximum": 1440.0},
		"AlertSettings/factor":                 {"minimum": 1.01, "maximum": 1000000.0},
		"AlertSettings/keyword":                {"minLength": 1.0, "maxLength": 200.0},
		"NewAlert/channel_ids":                 {"maxItems": 20.0},
		"NewActionSecret/name":                 {"pattern": "^[A-Za-z][A-Za-z0-9_]{0,63}$"},
		"NewActionSecret/description":          {"maxLength": 500.0},
		"NewSignatureConfig/secret":            {"minLength": 1.0, "maxLength": 4096.0},
		"NewTag/name":                          {"minLength": 1.0, "maxLength": 64.0},
		"ChannelSettings/to":                   {"minItems": 1.0, "maxItems": 20.0},
		"BacktestAction/limit":                 {"minimum": 1.0, "maximum": 100.0},
		"DeliveryReport/status_code":           {"minimum": 0.0, "maximum": 599.0, "not": map[string]any{"minimum": 1.0, "maximum": 99.0}},
		"DeliveryReport/target_url":            {"maxLength": 8192.0},
		"TunnelReplayResult/status_code":       {"not": map[string]any{"minimum": 1.0, "maximum": 99.0}},
		"TunnelReplayResult/response_headers":  {"maxProperties": 100.0},
		"ConnectTunnel/client_name":            {"maxLength": 255.0},
		"ConnectTunnel/capabilities":           {"maxItems": 32.0},
		"NewReplayCase/assertions":             {"minProperties": 1.0},
		"ReplayCaseChange/assertions":          {"minProperties": 1.0},
		"Assertions/status":                    {"minProperties": 1.0},
		"NewFlowStep/count":                    {"minProperties": 1.0, "maxProperties": 1.0},
		"NewFlowStep/where":                    {"maxProperties": 20.0},
		"NewFlowStep/extract":                  {"maxProperties": 20.0},
		"ActionStepCondition/path":             {"maxLength": 500.0},
		"AlertSettings/event_type":             {"maxLength": 200.0},
		"AlertSettings/field":                  {"pattern": "^((any|body|headers|path|query|event_type|subject|from|to)$|/)"},
		"DeclaredForwardingTarget/url":         {"maxLength": 2048.0},
		"GenericOptions/payload_template":      {"maxLength": 500.0},
		"NewEndpoint/workspace_id":             {"minimum": 1.0},
		"NewTag/workspace_id":                  {"minimum": 1.0},
		"Overrides/headers":                    {"maxProperties": 50.0},
		"EndpointResponse/body":                {"maxLength": 1048576.0},
		"EndpointResponse/headers":             {"maxProperties": 50.0},
		"ResponseRule/headers":                 {"maxProperties": 50.0},
		"SendTestRequest/headers":              {"maxProperties": 256.0},
		"SendTestRequest/path":                 {"pattern": "^([/?]|$)", "maxLength": 65536.0},
		"SendTestRequest/set":                  {"maxProperties": 100.0},
		"RerunAction/run":                      {"minProperties": 1.0},
		"NewRerun/event_id":                    {"minLength": 1.0},
		"ReplayRequest/target_url":             {"pattern": "^(tunnel$|[Hh][Tt][Tt][Pp][Ss]?://)"},
		"CreateReplayBatch/target_url":         {"pattern": "^(tunnel$|[Hh][Tt][Tt][Pp][Ss]?://)"},
		"NewReplayCase/target_url":             {"pattern": "^(tunnel$|[Hh][Tt][Tt][Pp][Ss]?://)"},
		"ReplayCaseChange/target_url":          {"pattern": "^(tunnel$|[Hh][Tt][Tt][Pp][Ss]?://)"},
		"NewForwardingTarget/url":              {"pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"},
		"ForwardingTargetChange/url":           {"pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"},
		"DeclaredForwardingTarget/dedupe_by":   {"pattern": "^((id|body)$|header[.]|/)"},
		"ChannelSettings/webhook_url":          {"pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"},
		"NewTag/color":                         {"pattern": "^(#[0-9a-fA-F]{3}|#[0-9a-fA-F]{6}|[a-zA-Z]{3,32})?$"},

		"DeliveryReport/declared_content_length": {"minimum": 0.0, "maximum": 1125899906842624.0},
		"DeliveryReport/decoded_bytes_observed":  {"minimum": 0.0, "maximum": 1125899906842624.0},
		"TunnelReplayResult/retained_bytes":      {"minimum": 0.0, "maximum": 1125899906842624.0},
	} {
		of, field, _ := strings.Cut(name, "/")
		described := schemas[of].(map[string]any)["properties"].(map[string]any)[field].(map[string]any)
		for bound, value := range want {
			if !reflect.DeepEqual(described[bound], value) {
				t.Errorf("%s of %s is %v, want %v", bound, name, described[bound], value)
			}
		}
	}
}

// The config of a step is an object of no fixed form, so its description is all that who writes one has.
func TestTheConfigsOfStepsAreDescribed(t *testing.T) {
	schemas := open(t, storetest.SQLite(t)).describe().raw["components"].(map[string]any)["schemas"].(map[string]any)
	config := schemas["NewStep"].(map[string]any)["properties"].(map[string]any)["config"].(map[string]any)
	told, _ := config["description"].(string)
	for _, words := range []string{
		"forward {url, timeout_seconds, retry_count, append_path, append_query}", "notify {channel, message}", "tag {tag}",
		"ignore {reason}, noise, mistake, resolved or test", "transform {source, operations}", "{op: pick, fields: {name: path}}",
		"http_request {method, url, headers, body, timeout_seconds}", "{{ secrets.NAME }}", "Unknown keys are refused",
	} {
		if !strings.Contains(told, words) {
			t.Errorf("config does not tell %q: %s", words, told)
		}
	}
}

// What is required is refused where it is empty, so the description says that it is not.
func TestTextThatIsRequiredIsDescribedAsNotEmpty(t *testing.T) {
	d := open(t, storetest.SQLite(t)).describe()
	schemas := d.raw["components"].(map[string]any)["schemas"].(map[string]any)
	var walk func(at string, schema map[string]any)
	walk = func(at string, schema map[string]any) {
		if ref, ok := schema["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/components/schemas/")
			at, schema = name, schemas[name].(map[string]any)
		}
		if items, ok := schema["items"].(map[string]any); ok {
			walk(at+".0", items)
		}
		required, _ := schema["required"].([]any)
		properties, _ := schema["properties"].(map[string]any)
		for name, p := range properties {
			member := p.(map[string]any)
			walk(at+"."+name, member)
			bounded := member["minLength"] != nil || member["pattern"] != nil || member["enum"] != nil || member["format"] != nil
			if slices.Contains(required, any(name)) && member["type"] == "string" && !bounded {
				t.Errorf("%s.%s is required, and described as if it may be empty", at, name)
			}
		}
	}
	d.each(func(_, _ string, op described) {
		if op.RequestBody != nil {
			for media, content := range op.RequestBody.Content {
				walk(op.OperationID+" "+media, content.Schema.(map[string]any))
			}
		}
	})
}

// An answer of fetch is a Response to TypeScript, which a schema of that name hides in clients that orval generates.
func TestNoSchemaHidesTheAnswerOfFetch(t *testing.T) {
	schemas := open(t, storetest.SQLite(t)).describe().raw["components"].(map[string]any)["schemas"].(map[string]any)
	if schemas["Response"] != nil || schemas["EndpointResponse"] == nil {
		t.Error("the answer of an endpoint is called Response")
	}
}

// A client that was generated from the description can only send the types that it names.
func TestSecondTypesOfMembersAreDescribed(t *testing.T) {
	schemas := open(t, storetest.SQLite(t)).describe().raw["components"].(map[string]any)["schemas"].(map[string]any)
	for name, want := range map[string]string{
		"ReplayRequest/time_shift": "[map[type:string] map[type:integer]]",
		"Overrides/query":          "[map[type:string] map[type:object]]",
		"ChannelSettings/chat_id":  "[map[type:string] map[type:integer]]",
	} {
		of, field, _ := strings.Cut(name, "/")
		member := schemas[of].(map[string]any)["properties"].(map[string]any)[field].(map[string]any)
		if got := fmt.Sprint(member["anyOf"]); got != want || member["type"] != nil {
			t.Errorf("%s is described as %v", name, member)
		}
	}
}

// An id or a place that an answer has as a number is one in a path, or a client that was generated has to convert it.
func TestNumbersOfAnswersAreNumbersInPaths(t *testing.T) {
	numbers := []string{"index", "workspace_id", "config_id", "target_id", "tag_id", "share_id"}
	open(t, storetest.SQLite(t)).describe().each(func(method, path string, op described) {
		for _, p := range op.Parameters {
			if p.In == "path" && (p.Schema["type"] == "integer") != slices.Contains(numbers, p.Name) {
				t.Errorf("%s %s: %s is %v", method, path, p.Name, p.Schema)
			}
		}
	})
}

// A list that null ends is described so, or a client that was generated from the description cannot end it.
func TestListsThatMayBeNullAreDescribedSo(t *testing.T) {
	schemas := open(t, storetest.SQLite(t)).describe().raw["components"].(map[string]any)["schemas"].(map[string]any)
	for name, want := range map[string]any{
		"NewEndpoint/response_rules":    []any{"array", "null"},
		"EndpointChange/response_rules": []any{"array", "null"},
		"TryRules/response_rules":       []any{"array", "null"},
		"Endpoint/response_rules":       "array",
		"NewAction/conditions":          "array",
	} {
		of, field, _ := strings.Cut(name, "/")
		if got := schemas[of].(map[string]any)["properties"].(map[string]any)[field].(map[string]any)["type"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s is described as %v, want %v", name, got, want)
		}
	}
}

// The words that a parameter takes are described; each is taken, and no other.
func TestTheWordsOfParametersAreDescribed(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	e := s.newEndpoint("")
	words := map[string]string{
		"type": "webhook email", "method": "GET POST PUT PATCH DELETE HEAD OPTIONS EMAIL", "signature_status": "verified failed unchecked",
		"ignored": "false true any", "format": "ndjson har csv mbox",
	}
	s.describe().each(func(method, path string, op described) {
		for _, p := range op.Parameters {
			if run := op.OperationID == "run-replay-case"; p.Name == "Idempotency-Key" && (p.Required != run || (p.Schema["minLength"] == 1.0) != run) {
				t.Errorf("%s: that %s is required: %v, with %v characters at least", op.OperationID, p.Name, p.Required, p.Schema["minLength"])
			}
			if p.Name == "Idempotency-Key" && p.Schema["pattern"] != `^[^\x00-\x1F\x7F-\x9F]*$` {
				t.Errorf("%s: %s is %v", op.OperationID, p.Name, p.Schema["pattern"])
			}
			if strings.HasSuffix(p.Name, "[]") && p.Schema["maxItems"] != map[bool]float64{true: 1000, false: 100}[p.Name == "endpoint_ids[]"] {
				t.Errorf("%s: %s may have %v entries", op.OperationID, p.Name, p.Schema["maxItems"])
			}
			if p.In == "query" && p.Required && p.Schema["type"] == "string" && p.Schema["minLength"] != 1.0 {
				t.Errorf("%s: %s is required, and described as if it may be empty", op.OperationID, p.Name)
			}
			if p.In != "query" || words[p.Name] == "" {
				continue
			}
			if got := strings.Trim(fmt.Sprint(p.Schema["enum"]), "[]"); got != words[p.Name] {
				t.Errorf("%s: %s is one of %q, want %q", op.OperationID, p.Name, got, words[p.Name])
			}
			if op.OperationID != "export-requests" {
				continue
			}
			for word := range strings.SplitSeq(words[p.Name]+" other", " ") {
				want := 200
				if word == "other" {
					want = 422
				}
				s.want(want, method, strings.ReplaceAll(path, "{endpoint_id}", e.ID)+"?"+p.Name+"="+word, "", nil)
			}
		}
	})
}

func (s *site) describe() (d document) {
	s.t.Helper()
	_, text := s.call("", "GET", "/openapi.json", "")
	for _, into := range []any{&d, &d.raw} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			s.t.Fatal(err)
		}
	}
	return d
}

// operations finds what the description has of the operation that a request calls; every site has the same one.
var operations = struct {
	sync.Once
	at  *http.ServeMux
	all map[string]described // by pattern
}{at: http.NewServeMux(), all: map[string]described{}}

// wantDescribed checks that the description has the status of an answer: whichever state of things a test makes, what
// is answered in it can be read there.
func (s *site) wantDescribed(req *http.Request, res *http.Response) {
	s.t.Helper()
	if res.StatusCode < 400 {
		return
	}
	operations.Do(func() {
		s.describe().each(func(method, path string, op described) {
			pattern := method + " " + rest.Base + path
			operations.at.Handle(pattern, http.NotFoundHandler())
			operations.all[pattern] = op
		})
	})
	_, pattern := operations.at.Handler(req)
	if op, known := operations.all[pattern]; known && op.Responses[strconv.Itoa(res.StatusCode)] == nil {
		s.t.Errorf("%s %s answers %d, which is not described", req.Method, req.URL.Path, res.StatusCode)
	}
}

// each calls fn with every operation.
func (d document) each(fn func(method, path string, op described)) {
	for path, item := range d.Paths {
		for method, op := range item {
			fn(strings.ToUpper(method), path, op)
		}
	}
}

func TestTheDescriptionIsComplete(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	d := s.describe()
	if d.OpenAPI != "3.1.0" || d.Info.Version != "1.0.0" || len(d.Servers) != 1 || d.Servers[0].URL != "https://hooks.example.com"+rest.Base {
		t.Errorf("the head is %+v", d)
	}
	// Every reference leads somewhere.
	var follow func(v any)
	follow = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				at := any(d.raw)
				for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
					at = at.(map[string]any)[name]
				}
				if at == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, member := range v {
				follow(member)
			}
		case []any:
			for _, element := range v {
				follow(element)
			}
		}
	}
	follow(d.raw)

	d.each(func(method, path string, op described) {
		at := fmt.Sprintf("%s %s (%s)", method, path, op.OperationID)
		if op.OperationID == "" || op.Summary == "" || op.Description == "" || len(op.Tags) != 1 {
			t.Errorf("%s has no id, summary, description or tag", at)
		}
		var named []string
		for _, p := range op.Parameters {
			if p.Description == "" || p.Schema["type"] == nil {
				t.Errorf("%s: the parameter %s is not described", at, p.Name)
			}
			if p.In == "path" {
				named = append(named, p.Name)
			}
		}
		var wanted []string
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
			wanted = append(wanted, m[1])
		}
		slices.Sort(named)
		slices.Sort(wanted)
		if !slices.Equal(named, wanted) {
			t.Errorf("%s describes the path parameters %v, want %v", at, named, wanted)
		}
		statuses := slices.Sorted(maps.Keys(op.Responses))
		must := []string{"500", "503"}
		if len(op.Security) > 0 {
			must = append(must, "401", "403")
		}
		if strings.Contains(path, "{") {
			must = append(must, "404")
		}
		if op.RequestBody != nil {
			must = append(must, "400", "413", "415", "422")
			for media, content := range op.RequestBody.Content {
				if content.Example == nil {
					t.Errorf("%s: the body, %s, has no example", at, media)
				}
			}
		}
		for _, status := range must {
			if !slices.Contains(statuses, status) {
				t.Errorf("%s does not describe %s", at, status)
			}
		}
		if statuses[0][0] != '2' {
			t.Errorf("%s describes no success", at)
		}
		for status, r := range op.Responses {
			if status[0] == '2' && r["content"] == nil {
				t.Errorf("%s: %s has no content", at, status)
			}
		}
	})
}

// A body is described as needing what it is refused without, and nothing else.
func TestTheDescriptionSaysWhatABodyNeeds(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	schemas := s.describe().raw["components"].(map[string]any)["schemas"].(map[string]any)
	for name, want := range map[string][]any{
		"ActionCondition": {"field", "operator"}, // exists and not_exists take no value
		// What is not named of one that is there stays. Which endpoint it is, its custom_id or its id says.
		"DeclaredAlert":            {"name"},
		"DeclaredEndpoint":         nil,
		"DeclaredForwardingTarget": {"name"},
		"DeclaredSignatureConfig":  {"provider"},
		"RecoverGap":               {"outcome"}, // counts that are left out are 0
		"DeliveryReport":           {"endpoint_id", "webhook_request_id", "target_url", "status_code"},
		"DeliveryReportByKey":      {"tunnel_key", "webhook_request_id", "target_url", "status_code"}, // the key is of one endpoint
	} {
		if got, _ := schemas[name].(map[string]any)["required"].([]any); !slices.Equal(got, want) {
			t.Errorf("%s is described as needing %v, want %v", name, got, want)
		}
	}
}

// What an operation says of scopes is what the specification says of it.
func TestTheDescriptionNamesScopes(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	s.describe().each(func(method, path string, op described) {
		known := accessFor[strings.TrimRight(op.OperationID, "-23456789")]
		var want []map[string][]string
		switch {
		case known.public:
		case known.scope == "":
			want = []map[string][]string{{"token": {}}}
		default:
			want = []map[string][]string{{"token": {string(known.scope)}}}
		}
		if fmt.Sprint(op.Security) != fmt.Sprint(want) {
			t.Errorf("%s: security is %v, want %v", op.OperationID, op.Security, want)
		}
		if op.Security == nil {
			t.Errorf("%s: that no token is needed is not said", op.OperationID)
		}
	})
}

// docs/api.md refers to the descriptions of the operations for it.
func TestTheDescriptionSaysWhereTheKeyOfATemporaryEndpointWillDo(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	s.describe().each(func(method, path string, op described) {
		known := accessFor[strings.TrimRight(op.OperationID, "-23456789")]
		if says := strings.HasSuffix(op.Description, "The key of a temporary endpoint will do."); says != known.key {
			t.Errorf("%s: its description says that the key will do: %t, and it does: %t", op.OperationID, says, known.key)
		}
	})
}

// A file is described as bytes, of every type that it may come as: that of an attachment is its sender's to choose.
func TestTheDescriptionSaysWhatFilesAre(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	files := map[string][]string{
		"get-request-body":       {"application/octet-stream", "message/rfc822"},
		"get-request-raw":        {"application/octet-stream", "message/rfc822"},
		"get-request-attachment": {"*/*"},
		"get-request-part":       {"*/*"},
		"export-requests":        {"application/json", "application/mbox", "application/x-ndjson", "text/csv"},
		"create-share-bundle":    {"application/json"},
	}
	s.describe().each(func(method, path string, op described) {
		want, file := files[op.OperationID]
		if !file {
			return
		}
		content, _ := op.Responses["200"]["content"].(map[string]any)
		if got := slices.Sorted(maps.Keys(content)); !slices.Equal(got, want) {
			t.Errorf("%s is described as %q, want %q", op.OperationID, got, want)
		}
		if headers, _ := op.Responses["200"]["headers"].(map[string]any); headers["Content-Disposition"] == nil {
			t.Errorf("%s: no header is described that names the file", op.OperationID)
		}
		for media, m := range content {
			text := strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "json")
			if schema, _ := m.(map[string]any)["schema"].(map[string]any); (schema["format"] == "binary") == text {
				t.Errorf("%s: %s is described by %v; text: %v", op.OperationID, media, schema, text)
			}
		}
	})
}

// An example is of the schema that it stands beside, as tools that check descriptions want it, and mocks that answer with
// examples.
func TestExamplesFitTheirSchemas(t *testing.T) {
	f := open(t, storetest.SQLite(t)).fuzzer()
	judged := 0
	fits := func(at string, schema, example any) {
		if schema, ok := schema.(map[string]any); ok && example != nil {
			judged++
			for _, fault := range f.judge(schema, []byte(marshal(example))) {
				t.Errorf("%s: %s", at, fault)
			}
		}
	}
	f.doc.each(func(method, path string, op described) {
		at := method + " " + path
		for _, p := range op.Parameters {
			fits(at+" "+p.Name, p.Schema, p.Example)
		}
		if op.RequestBody != nil {
			for _, media := range op.RequestBody.Content {
				fits(at+" body", media.Schema, media.Example)
			}
		}
		for status, r := range op.Responses {
			content, _ := r["content"].(map[string]any)
			for _, media := range content {
				media := media.(map[string]any)
				fits(at+" "+status, media["schema"], media["example"])
			}
		}
	})
	if judged < 2*len(f.ops) {
		t.Errorf("there are only %d examples", judged)
	}
}

func TestTagsAreDescribed(t *testing.T) {
	described := open(t, storetest.SQLite(t)).describe().raw["tags"].([]any)
	if len(described) < 20 {
		t.Errorf("there are only %d tags", len(described))
	}
	for _, tag := range described {
		if tag := tag.(map[string]any); tag["description"] == nil || tag["description"] == "" {
			t.Errorf("%s is not described", tag["name"])
		}
	}
}

// The example of a deletion is of what its path names: a number, or an id with its own prefix.
func TestTheExampleOfADeletionNamesWhatWasDeleted(t *testing.T) {
	named := map[string]any{}
	open(t, storetest.SQLite(t)).describe().each(func(method, path string, op described) {
		if method != http.MethodDelete {
			return
		}
		content, _ := op.Responses["200"]["content"].(map[string]any)
		media, _ := content["application/json"].(map[string]any)
		answer, _ := media["example"].(map[string]any)
		data, _ := answer["data"].(map[string]any)
		if id, ok := data["id"]; ok {
			named[op.OperationID] = id
			for _, p := range op.Parameters {
				if strings.HasSuffix(path, "{"+p.Name+"}") && p.Example != id {
					t.Errorf("%s: %v was deleted, and %v is named", path, id, p.Example)
				}
			}
		}
	})
	for id, want := range map[string]any{"delete-tag": 4.0, "delete-request": "req_0dfk3v6m8t7h1s9xq2b4c5n6wz", "delete-action-secret": "asec_0dfk3v6m8t7h1s9xq2b4c5n6wz"} {
		if named[id] != want {
			t.Errorf("%s: %v, want %v", id, named[id], want)
		}
	}
}

// An example of a body can be sent as it stands.
func TestExamplesOfBodiesWork(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	s.describe().each(func(method, path string, op described) {
		if op.RequestBody == nil {
			return
		}
		body, err := json.Marshal(op.RequestBody.Content["application/json"].Example)
		if err != nil {
			t.Fatal(err)
		}
		e := s.newEndpoint("")
		on := target{endpoint: e.ID, event: s.arrive(e.ID, nil)}
		if strings.HasSuffix(path, "/releases") { // of mail
			on.endpoint, on.event = s.mailbox("inbox").ID, s.deliver("inbox", welcome)
		}
		if strings.Contains(path, "{config_id}") {
			on.config = s.newSignatureConfig(e.ID)
		}
		if strings.Contains(path, "{target_id}") {
			on.forward = s.newForwardingTarget(e.ID)
		}
		if strings.Contains(path, "{tag_id}") || strings.Contains(path, "{channel_id}") || strings.Contains(path, "{alert_id}") {
			on.alertThings = s.newAlertThings(e.ID)
		}
		if strings.Contains(path, "{action_id}") || strings.Contains(path, "{workspace_id}") {
			on.actionThings = s.newActionThings(e.ID, on.event)
			body = []byte(strings.NewReplacer("req_0dfk3v6m8t7h1s9xq2b4c5n6wz", on.event, "arun_0dfk3v6m8t7h1s9xq2b4c5n6wy", on.run).Replace(string(body)))
		}
		if strings.Contains(path, "{case_id}") {
			on.replayThings = s.newReplayThings(e.ID, on.event)
		}
		// What an example refers to must exist; of a case that is its source alone.
		body = []byte(strings.ReplaceAll(string(body), `"source_id":"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`, `"source_id":"`+on.event+`"`))
		if strings.Contains(string(body), "7XK2-M9QD-4TWH") {
			body = []byte(strings.ReplaceAll(string(body), "7XK2-M9QD-4TWH", s.code()))
		}
		if path == "/flows" {
			body = []byte(strings.ReplaceAll(string(body), "ep_7c1v9k2m4n6p8q0r2s4t6v8w0y", on.endpoint))
		}
		if strings.Contains(path, "/tunnel/") || strings.Contains(string(body), `"tunnel_key"`) {
			on.tunnelThings = s.newTunnelThings(e.ID)
			endpoint, event := on.endpoint, on.event
			if strings.Contains(string(body), `"tunnel_key"`) {
				endpoint, event = on.keyEndpoint, on.keyEvent
			}
			body = []byte(strings.NewReplacer("ep_7c1v9k2m4n6p8q0r2s4t6v8w0y", endpoint, "req_0dfk3v6m8t7h1s9xq2b4c5n6wz", event, "tk_0dfk3v6m8t7h1s9xq2b4c5n6wz", on.key).Replace(string(body)))
		}
		known := accessFor[strings.TrimRight(op.OperationID, "-23456789")]
		r := route{op.OperationID, method, path, access{body: string(body)}}
		if known.alone != "" {
			if status, code := s.try("", r, on); code != known.alone {
				t.Errorf("%s %s: %d %s", op.OperationID, body, status, code)
			}
			return
		}
		if status, code := s.try(s.token, r, on); status > 299 {
			t.Errorf("%s %s: %d %s", op.OperationID, body, status, code)
		}
	})
}

func TestNoAnswerHasWhatItsSchemaDoesNot(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	d := s.describe()
	schemas := d.raw["components"].(map[string]any)["schemas"].(map[string]any)
	e := s.newEndpoint(`,"custom_id":"payments","response":{"status":200,"headers":{"X-A":"1"}}`)
	mail := s.newEndpoint(`,"kind":"email"`)
	id := s.arrive(e.ID, nil)
	for path, schema := range map[string]string{
		"/auth/verify": "Verification", "/endpoints": "ListEndpoint", "/endpoints/payments": "OneEndpoint", "/endpoints/" + mail.ID: "OneEndpoint",
		"/endpoints/payments/requests": "EventList", "/endpoints/payments/requests/" + id: "OneEventDetail", "/events": "ActivityList", "/nothing": "Error",
	} {
		_, text := s.call(s.token, "GET", path, "")
		var answer any
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err)
		}
		for _, fault := range conform(schemas, map[string]any{"$ref": "#/components/schemas/" + schema}, answer, "") {
			t.Errorf("%s: %s", path, fault)
		}
	}
}

// conform checks a value against the part of JSON Schema that the description uses. An unknown member is a fault:
// an answer may gain fields, but the description should have them.
func conform(schemas, s map[string]any, v any, at string) (faults []string) {
	if ref, ok := s["$ref"].(string); ok {
		s = schemas[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
	}
	if options, ok := s["anyOf"].([]any); ok {
		for _, o := range options {
			if faults = conform(schemas, o.(map[string]any), v, at); len(faults) == 0 {
				return nil
			}
		}
		return faults
	}
	kind := "null"
	switch v := v.(type) {
	case map[string]any:
		kind = "object"
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, there := v[name.(string)]; !there {
				faults = append(faults, at+"."+name.(string)+" is missing")
			}
		}
		for name, member := range v {
			if p, known := properties[name].(map[string]any); known {
				faults = append(faults, conform(schemas, p, member, at+"."+name)...)
			} else if properties != nil {
				faults = append(faults, at+"."+name+" is not described")
			}
		}
	case []any:
		kind = "array"
		items, _ := s["items"].(map[string]any)
		for i, element := range v {
			faults = append(faults, conform(schemas, items, element, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case string:
		kind = "string"
	case bool:
		kind = "boolean"
	case float64:
		kind = "number"
		if v == float64(int64(v)) {
			kind = "integer"
		}
	}
	if enum, ok := s["enum"].([]any); ok && !slices.Contains(enum, v) {
		faults = append(faults, fmt.Sprintf("%s is %v, not one of %v", at, v, enum))
	}
	switch want := s["type"].(type) {
	case string:
		if want != kind && (want != "number" || kind != "integer") {
			faults = append(faults, fmt.Sprintf("%s is of type %s, not %s", at, kind, want))
		}
	case []any:
		if !slices.Contains(want, any(kind)) && (kind != "integer" || !slices.Contains(want, any("number"))) {
			faults = append(faults, fmt.Sprintf("%s is of type %s, not one of %v", at, kind, want))
		}
	}
	return faults
}

func TestTheReadablePageAsksNobodyElse(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	req, err := http.NewRequestWithContext(t.Context(), "GET", strings.TrimSuffix(s.url, rest.Base)+"/docs", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, page := s.do(req)
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("got %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	csp := res.Header.Get("Content-Security-Policy")
	// Browsers ask for the icon of a site by themselves, and Firefox complains on every page whose policy forbids it.
	if !strings.HasPrefix(csp, "default-src 'none'; style-src 'sha256-") || !strings.Contains(csp, "img-src 'self'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
		t.Errorf("the policy is %s", csp)
	}
	for _, never := range []string{"<script", "<link", "<img", "<iframe", "style=", "onclick", "@import", "url(", "ZgotmplZ"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %s", never)
		}
	}
	s.describe().each(func(method, path string, op described) {
		if !strings.Contains(page, `id="`+op.OperationID+`"`) {
			t.Errorf("the page does not have %s", op.OperationID)
		}
	})
}

// WCAG 2.2, 2.1.1: what scrolls in itself is reached by keys. Blocks of code are, by their tabindex, and the list of
// operations, by its links.
func TestTheReadablePageScrollsWhereKeysCan(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	req, err := http.NewRequestWithContext(t.Context(), "GET", strings.TrimSuffix(s.url, rest.Base)+"/docs", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, page := s.do(req)
	style, _, _ := strings.Cut(page, "</style>")
	for _, rule := range strings.SplitAfter(style, "}") {
		selector, declared, _ := strings.Cut(strings.Trim(rule, "}\n"), "{")
		if strings.Contains(declared, "overflow") && strings.Contains(declared, ":auto") && !strings.HasSuffix(selector, "pre") && !strings.HasSuffix(selector, "nav") {
			t.Errorf("%s scrolls", selector)
		}
	}
	if strings.Contains(page, "<pre>") {
		t.Error("a block of code is not reached by keys")
	}
}

func TestDescriptionsNeedNoToken(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	for path, media := range map[string]string{"/openapi.json": "application/json", "/openapi.yaml": "application/yaml"} {
		if res, text := s.call("", "GET", path, ""); res.StatusCode != 200 || res.Header.Get("Content-Type") != media || !strings.Contains(text, "3.1.0") {
			t.Errorf("%s: %d %s", path, res.StatusCode, res.Header.Get("Content-Type"))
		}
	}
}
