package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"hookglass"
	"hookglass/internal/httpd"
	"hookglass/internal/store"
)

// operation is one row of the table.
type operation struct {
	id      string // operationId, stable
	method  string
	path    string // below Base
	tag     string // the resource, for readers
	summary string
	text    string // more for readers, when the summary does not say it all
	access  access
	limit   rate
	status  int // of success; 200 when 0
	errors  []int
	strict  bool     // unknown query parameters are refused: a misspelt bound must not select everything
	empty   bool     // a body that says anything is refused: a bound in it would be passed over
	loose   bool     // unknown members of the body are ignored: existing clients send more than is described
	bare    bool     // without a body it is called as with {}
	aliases []string // other paths of the same operation, kept for older clients
}

// access says who may call an operation (spec, "Authentication").
type access struct {
	public bool            // without a token
	scope  hookglass.Scope // the token must have it; "" for any valid token
	key    bool            // open to the key of a temporary endpoint as well
}

// rate bounds how often a caller may call; the zero rate does not.
type rate struct {
	calls int
	per   time.Duration
}

// table registers operations.
type table struct {
	api          huma.API
	db           *store.DB
	authenticate httpd.Authenticator
	operations   []*huma.Operation
	tags         []string
}

func newTable(mux *httpd.Mux, deps Deps) *table {
	t := &table{db: deps.DB, authenticate: deps.Accounts.Authenticate}
	cfg := huma.Config{
		OpenAPI:       description(deps.Addresses.PublicURL),
		Formats:       map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{t.refuseParameters},
	}
	// Answers may gain fields; the structs of requests say for themselves that they may not.
	cfg.AllowAdditionalPropertiesByDefault = true
	t.api = humago.NewWithPrefix(mux, Base, cfg)
	nameTypes(t.api.OpenAPI().Components.Schemas)
	return t
}

// handle registers an operation that takes parameters and answers with JSON.
func handle[In, Out any](t *table, op operation, fn func(ctx context.Context, in *In) (Out, error)) {
	register(t, op, t.admit(op), nil, answering(t, fn))
}

// handleBody registers an operation that takes parameters and a JSON body and answers with JSON.
func handleBody[In, Body, Out any](t *table, op operation, fn func(ctx context.Context, in *In, body *Body) (Out, error)) {
	described := t.requestBody(op, new(Body))
	read, body := reading[Body](t, op, described)
	register(t, op, read, described, answering(t, func(ctx context.Context, in *In) (Out, error) {
		return fn(ctx, in, body(ctx))
	}))
}

// handleBodyRaw registers an operation that takes parameters and a JSON body and writes its answer itself, as with
// handleRaw.
func handleBodyRaw[In, Body any](t *table, op operation, media []string, fn func(in *In, body *Body, w http.ResponseWriter, r *http.Request) error) {
	described := t.requestBody(op, new(Body))
	read, body := reading[Body](t, op, described)
	register(t, op, read, described, writing(t, func(ctx context.Context, in *In, w http.ResponseWriter, r *http.Request) error {
		return fn(in, body(ctx), w, r)
	}), media...)
}

// reading admits who may call and reads the body, which the operation then has from its context.
func reading[Body any](t *table, op operation, described *huma.RequestBody) (read func(huma.Context, func(huma.Context)), body func(context.Context) *Body) {
	admit := t.admit(op)
	type key struct{}
	return func(hc huma.Context, next func(huma.Context)) {
			admit(hc, func(hc huma.Context) {
				r, w := humago.Unwrap(hc)
				body := new(Body)
				text, err := readBody(w, r, body, op)
				if err == nil && !op.loose {
					err = refuseNulls(text, described.Content["application/json"].Schema, t.api.OpenAPI().Components.Schemas)
				}
				if err != nil {
					httpd.WriteError(w, r, t.told(hc.Context(), err))
					return
				}
				next(huma.WithValue(hc, key{}, body))
			})
		}, func(ctx context.Context) *Body {
			return ctx.Value(key{}).(*Body)
		}
}

// handleRaw registers an operation that writes its answer itself, in one of the media types. An error returned
// before anything was written is answered as every other.
func handleRaw[In any](t *table, op operation, media []string, fn func(in *In, w http.ResponseWriter, r *http.Request) error) {
	register(t, op, t.admit(op), nil, writing(t, func(_ context.Context, in *In, w http.ResponseWriter, r *http.Request) error {
		return fn(in, w, r)
	}), media...)
}

// handleWritten registers an operation that writes an answer of JSON itself, because it may be larger than memory or is
// compressed. It is described as that of any other.
func handleWritten[In, Out any](t *table, op operation, fn func(in *In, w http.ResponseWriter, r *http.Request) error) {
	const media = "application/json"
	handleRaw(t, op, []string{media}, fn)
	described := t.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Out](), true, op.id)
	t.find(op.method, op.path).Responses["200"].Content[media].Schema = described
}

// writeJSON writes an answer that is held whole, as the framework does.
func writeJSON(w http.ResponseWriter, out any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = text.WriteTo(w) // nobody is left to tell
	return nil
}

// writeZipped is writeJSON for an answer that is compressed for callers that accept it.
func writeZipped(w http.ResponseWriter, r *http.Request, out any) error {
	w.Header().Set("Content-Type", "application/json")
	z := httpd.NewZip(w, r, http.StatusOK)
	enc := json.NewEncoder(z) // writes all at once
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil && !z.Begun() {
		return err
	}
	_ = z.Close() // nobody is left to tell
	return nil
}

func writing[In any](t *table, fn func(ctx context.Context, in *In, w http.ResponseWriter, r *http.Request) error) func(context.Context, *In) (*raw, error) {
	return func(ctx context.Context, in *In) (*raw, error) {
		return &raw{func(hc huma.Context) {
			r, w := humago.Unwrap(hc)
			if err := fn(ctx, in, w, r); err != nil {
				httpd.WriteError(w, r, t.told(ctx, err))
			}
		}}, nil
	}
}

// answer and raw are the answers as the framework takes them.
type answer[T any] struct{ Body T }

type raw struct{ Body func(huma.Context) }

func answering[In, Out any](t *table, fn func(context.Context, *In) (Out, error)) func(context.Context, *In) (*answer[Out], error) {
	return func(ctx context.Context, in *In) (*answer[Out], error) {
		out, err := fn(ctx, in)
		if err != nil {
			return nil, httpd.Fail(ctx, t.told(ctx, err))
		}
		return &answer[Out]{out}, nil
	}
}

// admit lets through who may call: the token first, then the rate, then the right.
func (t *table) admit(op operation) func(huma.Context, func(huma.Context)) {
	return func(hc huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(hc)
		if err := t.mayCall(r, op); err != nil {
			httpd.WriteError(w, r, err)
			return
		}
		hc = huma.WithValue(hc, asked{}, r)
		if op.empty {
			if err := refuseBody(w, r); err != nil {
				httpd.WriteError(w, r, t.told(hc.Context(), err))
				return
			}
		}
		next(hc)
	}
}

// asked is the key of the request in the context of an operation.
type asked struct{}

func (t *table) mayCall(r *http.Request, op operation) error {
	var who hookglass.Principal
	if !op.access.public {
		var err error
		if who, err = httpd.Authenticate(r, t.authenticate); err != nil {
			return err
		}
	}
	if op.limit.calls > 0 {
		if err := t.db.Allow(r.Context(), op.id+" "+httpd.From(r.Context()).Caller(), op.limit.calls, op.limit.per); err != nil {
			return err
		}
	}
	if op.access.public {
		return nil
	}
	if !op.access.key {
		if err := who.MayManage(); err != nil {
			return err
		}
	}
	if op.access.scope != "" {
		return who.May(op.access.scope)
	}
	return nil
}

func register[In, Out any](t *table, op operation, admit func(huma.Context, func(huma.Context)), body *huma.RequestBody, fn func(context.Context, *In) (*Out, error), media ...string) {
	if !slices.Contains(t.tags, op.tag) {
		t.tags = append(t.tags, op.tag)
	}
	for i, path := range append([]string{op.path}, op.aliases...) {
		hop := &huma.Operation{
			OperationID: op.id, Method: op.method, Path: path, Summary: op.summary, Description: op.text,
			Tags: []string{op.tag}, DefaultStatus: max(op.status, http.StatusOK), Responses: op.responses(media),
			Security: op.security(), Middlewares: huma.Middlewares{addressed, admit, named[In], readable[In](t)}, RejectUnknownQueryParameters: op.strict,
		}
		if i > 0 {
			hop.OperationID += "-" + strconv.Itoa(i+1)
			hop.Summary += " (older path)"
			hop.Deprecated = true
		}
		huma.Register(t.api, *hop, fn)
		// The framework keeps its own copy. The body is described there only now, after it has decided that
		// there is none for it to read.
		kept := t.find(op.method, path)
		kept.RequestBody = body
		narrow[In](kept)
		t.operations = append(t.operations, kept)
	}
}

// narrow describes what parameters take that are judged behind the framework, by who knows the words, with faults of
// its own: words are all that a parameter may be, form is a pattern of it, longest bounds its characters.
func narrow[In any](op *huma.Operation) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[In]()) {
		words, form := f.Tag.Get("words"), f.Tag.Get("form")
		longest, _ := strconv.Atoi(f.Tag.Get("longest"))
		if words == "" && form == "" && longest == 0 {
			continue
		}
		i := slices.IndexFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == f.Tag.Get(p.In) })
		s := *op.Parameters[i].Schema // the framework judges by the other
		s.Pattern = form
		if longest > 0 {
			s.MaxLength = &longest
		}
		for word := range strings.SplitSeq(words, ",") {
			if word != "" {
				s.Enum = append(s.Enum, word)
			}
		}
		op.Parameters[i].Schema = &s
	}
}

// named answers not_found where the path has, in the place of an id, what no resource is named: something else than a
// number for a numeric id, which to the framework would be a wrong parameter, or what no database takes for text.
func named[In any](hc huma.Context, next func(huma.Context)) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[In]()) {
		name := f.Tag.Get("path")
		if name == "" {
			continue
		}
		value := hc.Param(name)
		possible := utf8.ValidString(value) && !strings.Contains(value, "\x00")
		if f.Type.Kind() == reflect.Int64 {
			_, err := strconv.ParseInt(value, 10, 64)
			possible = err == nil
		}
		if !possible {
			r, w := humago.Unwrap(hc)
			httpd.WriteError(w, r, hookglass.Errorf(hookglass.CodeNotFound, "There is nothing at this address."))
			return
		}
	}
	next(hc)
}

// readable refuses a query that is not percent-encoded as it says, where the operation has parameters: the framework
// takes what it cannot decode for a parameter that was left out, and a bound that is left out means everything. It
// spells what both readers of a query, the framework's and net/url's, shall take for the same.
func readable[In any](t *table) func(huma.Context, func(huma.Context)) {
	flags := map[string]bool{} // the parameters, and whether each is one that may stand without a value
	for _, f := range reflect.VisibleFields(reflect.TypeFor[In]()) {
		if name := f.Tag.Get("query"); name != "" {
			name, _, _ = strings.Cut(name, ",")
			flags[name] = f.Type.Kind() == reflect.Bool
		}
	}
	return func(hc huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(hc)
		if len(flags) == 0 || r.URL.RawQuery == "" {
			next(hc)
			return
		}
		// A semicolon is a character as any other (WHATWG URL, section 5.1); net/url leaves out what has one.
		pairs := strings.Split(strings.ReplaceAll(r.URL.RawQuery, ";", "%3B"), "&")
		for i, pair := range pairs {
			name, _, valued := strings.Cut(pair, "=")
			field, err := url.QueryUnescape(name)
			if err != nil || !utf8.ValidString(field) {
				field = "query"
			}
			if _, err := url.QueryUnescape(pair); err != nil {
				httpd.WriteError(w, r, t.told(hc.Context(), hookglass.Invalid(field, "has a percent sign that is not followed by two hexadecimal digits")))
				return
			}
			// The framework takes a name alone for true at the end of a query, and overlooks it elsewhere.
			switch {
			case valued || pair == "":
			case flags[field]:
				pairs[i] += "=true"
			default:
				pairs[i] += "="
			}
		}
		r.URL.RawQuery = strings.Join(pairs, "&")
		next(hc)
	}
}

func (t *table) find(method, path string) *huma.Operation {
	item := t.api.OpenAPI().Paths[path]
	switch method {
	case http.MethodGet:
		return item.Get
	case http.MethodPost:
		return item.Post
	case http.MethodPut:
		return item.Put
	case http.MethodPatch:
		return item.Patch
	}
	return item.Delete
}

// ofParameters makes what the framework says of a parameter go on from its name.
var ofParameters = strings.NewReplacer(
	"expected value to be one of", "must be one of", "expected length", "must have a length",
	"expected ", "must be a ", "invalid integer", "must be a whole number", "invalid float", "must be a number", "invalid boolean", "must be true or false",
	"unknown query parameter", "is not a known parameter", "required query parameter is missing", "is required", "required header parameter is missing", "is required",
)

// refuseParameters turns the framework's account of wrong parameters into ours. It keeps where and what, and
// leaves out the value: it may be a secret.
func (t *table) refuseParameters(hc huma.Context, _ string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	var faults []hookglass.FieldError
	for _, d := range model.Errors {
		_, field, found := strings.Cut(d.Location, ".")
		if !found {
			field = d.Location
		}
		faults = append(faults, hookglass.FieldError{Field: field, Message: ofParameters.Replace(d.Message)})
	}
	hc.SetHeader("Content-Type", "application/json")
	return httpd.Fail(hc.Context(), t.told(hc.Context(), hookglass.InvalidFields(faults))), nil
}
