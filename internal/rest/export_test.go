package rest

import (
	"context"
	"net/http"
	"time"

	"hookglass"
	"hookglass/internal/httpd"
)

// Decode reads JSON as bodies are read.
func Decode(text []byte, v any) error { return decode(text, v, false) }

// Place reads a cursor of the list of events.
func Place(cursor string) (int64, error) { return ofEvents.Place(cursor) }

// Cursor writes one.
func Cursor(at int64) string { return *ofEvents.Cursor(at) }

// NewWithBeat is New with another time between the signs of life of a stream.
func NewWithBeat(deps Deps, beat time.Duration) http.Handler { return build(deps, beat) }

// NewWithAlias is an API of one operation that has an older path as well.
func NewWithAlias(deps Deps) http.Handler {
	mux := httpd.NewMux()
	t := newTable(mux, deps)
	handle(t, operation{
		id: "say", method: http.MethodGet, path: "/new/{id}", tag: "Test", summary: "Say", access: access{scope: hookglass.ScopeRead}, aliases: []string{"/old/{id}"},
	}, func(_ context.Context, in *endpointID) (string, error) { return in.ID, nil })
	t.publish(mux)
	return mux
}
