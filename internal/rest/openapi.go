package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/httpd"
)

// version is the version of the API, not of the program (spec, "Versioning").
const version = "1.0.0"

func description(publicURL string) *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "hookglass", Version: version,
			Description: "Capture webhooks and mail, look at them, and use them again. " +
				"A single thing is answered as {\"data\": {…}}, a list as {\"data\": […], \"meta\": {…}}, an error as {\"error\": \"code\", \"message\": \"…\"}. " +
				"Times are RFC 3339 in UTC.",
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: publicURL + Base}},
		Components: &huma.Components{
			Schemas: huma.NewMapRegistry("#/components/schemas/", nameSchema),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				scheme: {Type: "http", Scheme: "bearer", Description: "An API token (hg_…) with the scope named, or, where an operation says so, the key of a temporary endpoint (tk_…)."},
			},
			Responses: failures(),
		},
	}
}

const (
	scheme    = "token"
	errorType = "Error"
)

// nameSchema names the schema of a type as the type, but for the one that would hide what generated clients in
// TypeScript call an answer of fetch.
func nameSchema(t reflect.Type, hint string) string {
	if name := huma.DefaultSchemaNamer(t, hint); name != "Response" {
		return name
	}
	return "EndpointResponse"
}

// nameTypes describes types with their own JSON form to the registry.
func nameTypes(r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[api.Time](), reflect.TypeFor[time.Time]())
	r.RegisterTypeAlias(reflect.TypeFor[api.ChatID](), reflect.TypeFor[string]())
	r.RegisterTypeAlias(reflect.TypeFor[api.TimeShift](), reflect.TypeFor[string]())
	r.RegisterTypeAlias(reflect.TypeFor[api.QueryString](), reflect.TypeFor[string]())
	r.RegisterTypeAlias(reflect.TypeFor[api.JSONObject](), reflect.TypeFor[map[string]any]())
	for _, optional := range []any{
		api.Optional[string]{}, api.Optional[bool]{}, api.Optional[int64]{}, api.Optional[float64]{}, api.Optional[[]string]{}, api.Optional[map[string]string]{},
		api.Optional[map[string]json.RawMessage]{}, api.Optional[api.ChatID]{}, api.Optional[api.ChannelSettings]{}, api.Optional[api.AlertSettings]{},
		api.Optional[api.ProviderConfig]{}, api.Optional[api.Response]{}, api.Optional[[]api.ResponseRule]{}, api.Optional[api.GenericOptions]{},
		api.Optional[api.CaseOptions]{}, api.Optional[api.Assertions]{}, api.Optional[[]api.ActionCondition]{}, api.Optional[[]api.NewStep]{},
		api.Optional[[]api.NewFlowStep]{}, api.Optional[api.FlowCount]{},
	} {
		t := reflect.TypeOf(optional)
		value, _ := t.FieldByName("Value")
		r.RegisterTypeAlias(t, value.Type)
	}
	r.Schema(reflect.TypeFor[api.Error](), true, errorType)
}

// reasons describe the statuses of errors, each with the code of its example.
var reasons = map[int]struct {
	name, text string
	example    error
}{
	400: {"InvalidJSON", "The body is not JSON.", hookglass.Errorf(hookglass.CodeInvalidJSON, "The body is not JSON; the fault is near byte 12.")},
	401: {"Unauthorized", "The token is missing or not valid.", hookglass.Errorf(hookglass.CodeUnauthorized, "The API token is missing or not valid.")},
	403: {"Forbidden", "The token lacks the scope, or its account the right.", hookglass.Errorf(hookglass.CodeInsufficientScope, "This token lacks the scope \"write\".")},
	404: {"NotFound", "There is no such thing for this token.", hookglass.NotFound("endpoint")},
	409: {"Conflict", "The state of the thing does not allow it.", hookglass.Errorf(hookglass.CodeConflict, "The tag is in use.")},
	413: {"PayloadTooLarge", "The body is too large.", hookglass.Errorf(hookglass.CodePayloadTooLarge, "The body may have 2097152 bytes at most.")},
	415: {"UnsupportedMediaType", "The body is not application/json.", hookglass.Errorf(hookglass.CodeUnsupportedMediaType, "The body must be application/json.")},
	422: {"ValidationFailed", "A parameter or a field is wrong; details says which.", hookglass.Invalid("endpoint.name", "is required")},
	429: {"RateLimited", "Too many calls; retry_after says how long to wait.", &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "Too many requests. Try again later.", RetryAfter: 6 * time.Second}},
	500: {"Internal", "Something went wrong in the service.", httpd.ErrInternal},
	503: {"Unavailable", "The storage cannot answer now; Retry-After says when to try again.", hookglass.Errorf(hookglass.CodeUnavailable, "The storage cannot answer now. Try again shortly.")},
}

// tags say what the operations of each group are about.
var tags = map[string]string{
	"Account":               "Whose token this is, and how the command line gets one.",
	"Endpoints":             "URLs and addresses that receive webhooks and mail, and how they answer.",
	"Requests":              "What was received: webhooks and mails, exact to the byte.",
	"Signatures":            "Secrets with which signatures of senders are checked.",
	"Forwarding targets":    "URLs that every event of an endpoint is sent to, and its deliveries to them.",
	"Replay":                "Sending an event again, or all that a query finds.",
	"Releases":              "Sending a mail on to real addresses.",
	"Replay cases":          "Events with assertions on how a target answers them, and their runs.",
	"Actions":               "What happens by itself when an event arrives, and its runs.",
	"Action secrets":        "Secrets that steps of actions use. Their values are never shown.",
	"Share links":           "Pages that show one event to whoever has their link.",
	"Share bundles":         "Files of events without personal data, whose signatures still verify.",
	"Activity":              "What happened lately, of all kinds.",
	"Tags":                  "Words by which events are grouped.",
	"Notification channels": "Where alerts and actions send their messages.",
	"Alerts":                "Conditions on what arrives, or does not, and when they were met.",
	"Metrics":               "Figures of an endpoint, the ledger of what became of its events, and how senders retry.",
	"Flows":                 "Webhooks and mails that a test expects.",
	"Schemas":               "The form of an endpoint's bodies, inferred by event type.",
	"Tunnel":                "How events reach a developer's machine.",
}

func failures() map[string]*huma.Response {
	all := make(map[string]*huma.Response, len(reasons))
	whole := &huma.Schema{Type: huma.TypeInteger}
	for status, reason := range reasons {
		f := httpd.Fail(context.Background(), reason.example)
		r := &huma.Response{
			Description: reason.text,
			Content: map[string]*huma.MediaType{"application/json": {
				Schema: &huma.Schema{Ref: "#/components/schemas/" + errorType}, Example: plain(f),
			}},
		}
		switch status {
		case http.StatusUnauthorized, http.StatusForbidden:
			r.Headers = map[string]*huma.Param{"WWW-Authenticate": {Schema: &huma.Schema{Type: huma.TypeString}}}
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			r.Headers = map[string]*huma.Param{"Retry-After": {Description: "Seconds to wait.", Schema: whole}}
		}
		all[reason.name] = r
	}
	return all
}

// description returns the text of an operation. It says whether the key of a temporary endpoint will do, which no
// security scheme can say beside the scope of a token.
func (op operation) description() string {
	if !op.access.key {
		return op.text
	}
	return strings.TrimSpace(op.text + " The key of a temporary endpoint will do.")
}

// responses returns the responses of an operation besides those that follow from its types.
func (op operation) responses(media []string) map[string]*huma.Response {
	statuses := append([]int{http.StatusInternalServerError, http.StatusServiceUnavailable}, op.errors...)
	if !op.access.public {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden)
	}
	if strings.Contains(op.path, "{") {
		statuses = append(statuses, http.StatusNotFound)
	}
	if op.limit.calls > 0 {
		statuses = append(statuses, http.StatusTooManyRequests)
	}
	all := make(map[string]*huma.Response, len(statuses)+1)
	for _, status := range statuses {
		all[strconv.Itoa(status)] = refusal(status)
	}
	if len(media) > 0 {
		success := &huma.Response{Description: http.StatusText(http.StatusOK), Content: make(map[string]*huma.MediaType, len(media))}
		for _, m := range media {
			success.Content[m] = &huma.MediaType{Schema: fileSchema(m)}
		}
		if op.file {
			success.Headers = map[string]*huma.Param{"Content-Disposition": {Description: "Names the file.", Schema: &huma.Schema{Type: huma.TypeString}}}
		}
		all["200"] = success
	}
	return all
}

// fileSchema describes an answer of media type m that is a file: text, or bytes that generated clients must not decode.
func fileSchema(m string) *huma.Schema {
	switch {
	case m == "application/json":
		return &huma.Schema{Type: huma.TypeObject}
	case slices.Contains([]string{"*/*", "application/octet-stream", "application/mbox", "message/rfc822"}, m):
		return &huma.Schema{Type: huma.TypeString, Format: "binary"}
	}
	return &huma.Schema{Type: huma.TypeString}
}

func refusal(status int) *huma.Response {
	return &huma.Response{Ref: "#/components/responses/" + reasons[status].name}
}

func (op operation) security() []map[string][]string {
	switch {
	case op.access.public:
		return []map[string][]string{} // explicit, because some tools report a missing list as a mistake
	case op.access.scope == "":
		return []map[string][]string{{scheme: {}}}
	}
	return []map[string][]string{{scheme: {string(op.access.scope)}}}
}

// requestBody describes the JSON of a body.
func (t *table) requestBody(op operation, body any) *huma.RequestBody {
	return &huma.RequestBody{Required: !op.bare, Content: map[string]*huma.MediaType{
		"application/json": {Schema: t.api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(body).Elem(), true, op.id)},
	}}
}

// complete finishes the description once all operations are registered.
func (t *table) complete() {
	doc := t.api.OpenAPI()
	schemas := doc.Components.Schemas.Map()
	// Remove the framework's own form of errors, which is never answered.
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	for name, s := range schemas {
		for _, p := range s.Properties {
			noNullArrays(p)
		}
		if goType := doc.Components.Schemas.TypeFromRef("#/components/schemas/" + name); goType != nil {
			markNull(s, goType)
			markAlso(s, goType)
		}
	}
	for _, tag := range t.tags {
		doc.Tags = append(doc.Tags, &huma.Tag{Name: tag, Description: tags[tag]})
	}
	for _, op := range t.operations {
		if op.RequestBody != nil {
			for _, status := range []int{400, 413, 415, 422} {
				op.Responses[strconv.Itoa(status)] = refusal(status)
			}
			t.exemplify(op.RequestBody.Content)
		}
		for _, p := range op.Parameters {
			if p.In == "query" {
				op.Responses["422"] = refusal(422)
			}
			noNullArrays(p.Schema)
			if p.Schema != nil && len(p.Schema.Examples) > 0 {
				p.Example = p.Schema.Examples[0]
			}
		}
		for status, r := range op.Responses {
			if r.Ref == "" && status < "300" {
				t.exemplify(r.Content)
			}
		}
		nameDeleted(op)
	}
}

// nameDeleted has the example of a deletion name what the example of its path does.
func nameDeleted(op *huma.Operation) {
	if op.Method != http.MethodDelete || op.Responses["200"] == nil {
		return
	}
	var named any
	for _, p := range op.Parameters {
		if p.In == "path" && strings.HasSuffix(op.Path, "{"+p.Name+"}") {
			named = p.Example
		}
	}
	if named == nil {
		return // what is gone belongs to what the path names, as a tag of a request
	}
	for _, m := range op.Responses["200"].Content {
		answer, _ := m.Example.(map[string]any)
		if gone, ok := answer["data"].(map[string]any); ok && gone["id"] != nil {
			gone["id"] = named
		}
	}
}

// markNull marks the members of a struct that may be null: pointers that are always written, and fields of requests
// that are tagged so.
func markNull(s *huma.Schema, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil {
			continue
		}
		always := f.Type.Kind() == reflect.Pointer && !strings.Contains(options, "omit")
		switch {
		case !always && f.Tag.Get("null") != "true":
			p.Nullable = false
		case p.Ref != "":
			s.Properties[name] = &huma.Schema{Description: p.Description, AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
		default:
			p.Nullable = true
			if len(p.Enum) > 0 && !slices.Contains(p.Enum, any(nil)) {
				p.Enum = append(p.Enum, nil)
			}
		}
	}
}

// markAlso describes the members of a struct that take a second type beside text, which is named in their tag also, and
// those whose range has a gap, which is in their tag except. A gap is described by not, which generated clients pass
// over; of anyOf they would make a type for each part.
func markAlso(s *huma.Schema, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		p := s.Properties[jsonName(f)]
		if p == nil {
			continue
		}
		if second := f.Tag.Get("also"); second != "" {
			p.AnyOf, p.Type = []*huma.Schema{{Type: p.Type}, {Type: second}}, ""
		}
		if from, to, ok := strings.Cut(f.Tag.Get("except"), "-"); ok {
			least, _ := strconv.ParseFloat(from, 64)
			most, _ := strconv.ParseFloat(to, 64)
			p.Not = &huma.Schema{Minimum: &least, Maximum: &most}
		}
	}
}

// noNullArrays reverts the framework's assumption that arrays may be null: only tagged ones may.
func noNullArrays(s *huma.Schema) {
	if s != nil && s.Type == huma.TypeArray {
		s.Nullable = false
		noNullArrays(s.Items)
	}
}

func (t *table) exemplify(content map[string]*huma.MediaType) {
	for media, m := range content {
		if media == "application/json" && m.Schema != nil && m.Example == nil {
			m.Example = t.example(m.Schema)
		}
	}
}

// example builds a value from the examples of the fields, so that it always fits the schema. Without an example, a
// field that may be null or absent is.
func (t *table) example(s *huma.Schema) any {
	if s.Ref != "" {
		s = t.api.OpenAPI().Components.Schemas.SchemaFromRef(s.Ref)
	}
	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case len(s.AnyOf) > 0:
		return nil
	case s.Nullable && len(s.Properties) == 0:
		return nil
	}
	switch s.Type {
	case huma.TypeArray:
		count := 1
		if s.MinItems != nil {
			count = max(count, *s.MinItems)
		}
		return slices.Repeat([]any{t.example(s.Items)}, count)
	case huma.TypeObject:
		object := make(map[string]any, len(s.Properties))
		for name, p := range s.Properties {
			if len(p.Examples) > 0 || slices.Contains(s.Required, name) {
				object[name] = t.example(p)
			}
		}
		return object
	case huma.TypeBoolean:
		return false
	case huma.TypeInteger, huma.TypeNumber:
		return 0
	}
	return ""
}

// plain returns a value as decoded from its JSON.
func plain(v any) any {
	var out any
	if b, err := json.Marshal(v); err == nil {
		_ = json.Unmarshal(b, &out) // what was just written can be read
	}
	return out
}

// publish serves the description and the pages derived from it.
func (t *table) publish(mux *httpd.Mux) {
	t.complete()
	doc := t.api.OpenAPI()
	mux.HandleFunc("GET "+Base+"/openapi.json", document("application/json", func() ([]byte, error) { return json.MarshalIndent(doc, "", "  ") }))
	mux.HandleFunc("GET "+Base+"/openapi.yaml", document("application/yaml", doc.YAML))
	t.serveDocs(mux)
}

// document serves what write returns. It must be revalidated each time, because the next version has the same URL.
// write is called by the first request: most processes never get one, and writing takes longer than the rest of their
// start.
func document(media string, write func() ([]byte, error)) http.HandlerFunc {
	written := sync.OnceValue(func() httpd.Document {
		content, err := write()
		if err != nil {
			panic("the API cannot be described: " + err.Error()) // a fault in the table, which tests find
		}
		return httpd.NewDocument(media, content)
	})
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		written().ServeHTTP(w, r)
	}
}
