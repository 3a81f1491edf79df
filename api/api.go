// Package api is the JSON contract of the REST API: the structs of requests and answers, and conversions from the
// domain's types. It has no logic and hides nothing; the server's edges and the Go client share it.
//
// The tags doc, example, enum, format and the bounds describe a field in the OpenAPI description, and null:"true"
// marks a field of a request that may be null.
package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hookglass"
)

// JSON writes v with <, > and & as they are. That is safe: what is declared as JSON must not be sniffed.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// One is the envelope of a single object.
type One[T any] struct {
	Data T `json:"data"`
}

// List is the envelope of a list. Data is never null.
type List[T any] struct {
	Data []T  `json:"data"`
	Meta Page `json:"meta"`
}

// Page says how a list continues.
type Page struct {
	NextCursor *string `json:"next_cursor" doc:"Give it as cursor to get what follows; null at the end." example:"b2Zmc2V0OjI1"`
}

// Deleted is the answer to a deletion.
type Deleted struct {
	ID      string `json:"id" doc:"What was deleted." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Deleted bool   `json:"deleted" example:"true"`
}

// DeletedChannel is the answer to the deletion of a notification channel.
type DeletedChannel struct {
	Deleted
	References []Reference `json:"references,omitempty" doc:"The steps of actions that name the channel: they fail until they name another, or a channel takes its name."`
}

// DeletedNumber is the answer to a deletion of something with a numeric id.
type DeletedNumber struct {
	ID      int64 `json:"id" doc:"What was deleted." example:"7"`
	Deleted bool  `json:"deleted" example:"true"`
}

// Error is the body of every answer that is not a success.
type Error struct {
	Error      string       `json:"error" doc:"A stable code." example:"validation_failed"`
	Message    string       `json:"message,omitempty" doc:"One sentence for a person." example:"endpoint.name is required."`
	Details    []FieldError `json:"details,omitempty" doc:"With validation_failed: what is wrong with which field."`
	RetryAfter int          `json:"retry_after,omitempty" doc:"With rate_limited: seconds to wait." example:"6"`

	ExistingProvider string      `json:"existing_provider,omitempty" doc:"With signature_config_exists: the provider that has one."`
	References       []Reference `json:"references,omitempty" doc:"With secret_in_use, and the conflict of a tag or a channel in use: the steps that refer to it."`
	Position         *int        `json:"position,omitempty" doc:"With validation_failed of a search: the character at which it is wrong, from 0."`
}

// Reference is a step of an action that refers to a secret, a tag or a channel.
type Reference struct {
	EndpointID string `json:"endpoint_id"`
	ActionID   string `json:"action_id"`
	ActionName string `json:"action_name"`
	Step       string `json:"step" doc:"The step's reference key."`
}

// FromStepReferences converts the steps that refer to something.
func FromStepReferences(by []hookglass.StepReference) []Reference {
	references := make([]Reference, len(by))
	for i, r := range by {
		references[i] = Reference{EndpointID: string(r.EndpointID), ActionID: r.ActionID, ActionName: r.ActionName, Step: r.Step}
	}
	return references
}

// FieldError says what is wrong with one field of a request.
type FieldError struct {
	Field   string `json:"field" doc:"The field's name with those it lies in, or that of the query parameter." example:"endpoint.name"`
	Message string `json:"message" doc:"What is wrong with it." example:"is required"`
}

// Time is formatted as RFC 3339 in UTC with microseconds.
type Time struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(make([]byte, 0, len(hookglass.TimeLayout)+2), `"`+hookglass.TimeLayout+`"`), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Time) UnmarshalJSON(b []byte) error { return t.Time.UnmarshalJSON(b) }

// String returns the time as it is formatted in JSON.
func (t Time) String() string { return t.UTC().Format(hookglass.TimeLayout) }

// at returns nil for the zero time.
func at(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{t}
}

// Optional is a field of a request that may be absent or null, which mean different things in a change.
type Optional[T any] struct {
	Value T
	Set   bool // it was sent
	Null  bool // as null
}

// Some returns an optional field with a value.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

// Maybe returns an optional field with the value that v points to, absent if v is nil.
func Maybe[T any](v *T) (o Optional[T]) {
	if v != nil {
		o = Some(*v)
	}
	return o
}

// Null returns an optional field that is null.
func Null[T any]() Optional[T] { return Optional[T]{Set: true, Null: true} }

// IsZero reports whether the field is left out.
func (o Optional[T]) IsZero() bool { return !o.Set }

// MarshalJSON implements json.Marshaler.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.Set || o.Null {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// UnmarshalJSONFrom parses the value with the decoder's strictness.
func (o *Optional[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	o.Set = true
	if dec.PeekKind() == 'n' {
		o.Null = true
		_, err := dec.ReadToken()
		return err
	}
	return jsonv2.UnmarshalDecode(dec, &o.Value)
}

// nonzero returns nil for a zero value, if the contract has null for it.
func nonzero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Text converts captured text for JSON, as hookglass.Readable does.
func Text(s string) string { return hookglass.Readable(s) }

// Addresses are what the URLs and mail addresses of answers are built from.
type Addresses struct {
	PublicURL  string // without a slash at its end
	MailDomain string
}

// Shared returns the URL of a share link.
func (a Addresses) Shared(secret string) string { return a.PublicURL + "/shared/" + secret }

func (a Addresses) hook(id string) string { return fmt.Sprintf("%s/hooks/%s", a.PublicURL, id) }
