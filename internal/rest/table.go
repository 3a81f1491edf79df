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
	text    string // details beyond the summary
	access  access
	limit   rate
	status  int // of success; 200 when 0
	errors  []int
	strict  bool     // refuse unknown query parameters: a misspelt bound must not select everything
	empty   bool     // refuse a body with content: a bound in it would be ignored
	loose   bool     // ignore unknown members of the body: existing clients send more than is described
	bare    bool     // a missing body counts as {}
	file    bool     // the answer is a file to be saved, which a header names
	aliases []string // other paths of the same operation, kept for older clients
}

// access says who may call an operation (spec, "Authentication").
type access struct {
	public bool            // without a token
	scope  hookglass.Scope // the token must have it; "" for any valid token
	key    bool            // open to the key of a temporary endpoint as well
}

// rate bounds how often a caller may call; the zero rate has no bound.
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
	// Answers may gain fields; the structs of requests are marked as closed by themselves.
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

// reading checks permission and parses the body, which the operation then gets from its context.
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

// handleRaw registers an operation that writes its answer itself, in one of the media types. An error returned before
// anything was written is answered like any other.
func handleRaw[In any](t *table, op operation, media []string, fn func(in *In, w http.ResponseWriter, r *http.Request) error) {
	register(t, op, t.admit(op), nil, writing(t, func(_ context.Context, in *In, w http.ResponseWriter, r *http.Request) error {
		return fn(in, w, r)
	}), media...)
}

// handleWritten registers an operation that writes its JSON answer itself, because it may be larger than memory or is
// compressed. It is described like any other.
func handleWritten[In, Out any](t *table, op operation, fn func(in *In, w http.ResponseWriter, r *http.Request) error) {
	const media = "application/json"
	handleRaw(t, op, []string{media}, fn)
	described := t.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Out](), true, op.id)
	t.find(op.method, op.path).Responses["200"].Content[media].Schema = described
}

// writeJSON writes an answer that is in memory, as the framework does.
func writeJSON(w http.ResponseWriter, out any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = text.WriteTo(w) // an error means that the client is gone
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
	_ = z.Close() // likewise
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

// answer and raw are answers in the framework's form.
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

// admit checks who may call: first the token, then the rate, then the right.
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
			OperationID: op.id, Method: op.method, Path: path, Summary: op.summary, Description: op.description(),
			Tags: []string{op.tag}, DefaultStatus: max(op.status, http.StatusOK), Responses: op.responses(media),
			Security: op.security(), Middlewares: huma.Middlewares{addressed, admit, named[In], readable[In](t)}, RejectUnknownQueryParameters: op.strict,
		}
		if i > 0 {
			hop.OperationID += "-" + strconv.Itoa(i+1)
			hop.Summary += " (older path)"
			hop.Deprecated = true
		}
		huma.Register(t.api, *hop, fn)
		// The framework has its own copy. Add the body only now, after it has decided that there is none to read.
		kept := t.find(op.method, path)
		kept.RequestBody = body
		narrow[In](kept)
		t.operations = append(t.operations, kept)
	}
}

// narrow describes the values of parameters that are validated after the framework, by their own packages: words are
// all allowed values, form is a pattern, shortest and longest bound the characters, most bounds the entries of a list.
func narrow[In any](op *huma.Operation) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[In]()) {
		words, form := f.Tag.Get("words"), f.Tag.Get("form")
		shortest, longest, most := numberIn(f, "shortest"), numberIn(f, "longest"), numberIn(f, "most")
		if words == "" && form == "" && shortest == nil && longest == nil && most == nil {
			continue
		}
		i := slices.IndexFunc(op.Parameters, func(p *huma.Param) bool {
			name, _, _ := strings.Cut(f.Tag.Get(p.In), ",")
			return name == p.Name
		})
		s := *op.Parameters[i].Schema // a copy: the framework validates with the original
		s.Pattern, s.MinLength, s.MaxLength, s.MaxItems = form, shortest, longest, most
		for word := range strings.SplitSeq(words, ",") {
			if word != "" {
				s.Enum = append(s.Enum, word)
			}
		}
		op.Parameters[i].Schema = &s
	}
}

// numberIn returns the number in a tag of a field, or nil without one.
func numberIn(f reflect.StructField, tag string) *int {
	n, err := strconv.Atoi(f.Tag.Get(tag))
	if err != nil {
		return nil
	}
	return &n
}

// named answers not_found if the path has an impossible id: not a number where the id is numeric, which the framework
// would report as a wrong parameter, or text that no database accepts.
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
			httpd.WriteError(w, r, httpd.ErrNowhere)
			return
		}
	}
	next(hc)
}

// readable refuses a query that is not properly percent-encoded, if the operation has parameters: the framework takes
// what it cannot decode for a missing parameter, and a missing bound means everything. It also rewrites what the
// framework and net/url would parse differently, and the other names of lists.
func readable[In any](t *table) func(huma.Context, func(huma.Context)) {
	flags := map[string]bool{} // the parameters, and whether each may have no value
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
		// A semicolon is an ordinary character (WHATWG URL, section 5.1); net/url drops pairs that contain one.
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
			// A list may be named without its brackets or with a number in them, as other programs write lists. No
			// other name may begin so: it would be unknown, and a list that is left out means everything.
			base, index, bracketed := strings.Cut(field, "[")
			if _, list := flags[base+"[]"]; list {
				if bracketed && strings.TrimLeft(index, "0123456789") != "]" {
					httpd.WriteError(w, r, t.told(hc.Context(), hookglass.Invalid(field, "is not how the list is named, which is %s[]", base)))
					return
				}
				field = base + "[]"
				pairs[i] = field + strings.TrimPrefix(pair, name)
			}
			// The framework treats a bare name at the end of a query as true, and ignores it elsewhere.
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

// ofParameters rewrites the framework's messages so that they follow the parameter's name.
var ofParameters = strings.NewReplacer(
	"expected value to be one of", "must be one of", "expected length", "must have a length",
	"expected ", "must be a ", "invalid integer", "must be a whole number", "invalid float", "must be a number", "invalid boolean", "must be true or false",
	"unknown query parameter", "is not a known parameter", "required query parameter is missing", "is required", "required header parameter is missing", "is required",
)

// refuseParameters converts the framework's errors about parameters to ours. It keeps the place and the problem, and
// drops the value, which may be a secret.
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
