// Package schemas renders the pages of the schemas of an endpoint: the list of event types, and one with its fields and
// drift.
package schemas

import (
	"embed"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files holds the style.
//
//go:embed schemas.css
var Files embed.FS

// Model is the content of the list page.
type Model struct {
	layout.Frame
	List
}

// List is the event types of an endpoint, a part that is kept fresh.
type List struct {
	Of hookglass.Endpoint
	api.SchemaList
}

// OneModel is the content of the page of an event type.
type OneModel struct {
	layout.Frame
	Type
	Notice string
	Fault  string
}

// Type is an event type, a part that is kept fresh.
type Type struct {
	Of     hookglass.Endpoint
	Schema api.Schema
	Drift  api.SchemaDrifts
	Code   string // in TypeScript
}

// every returns how often a part is refreshed: not without tracking, and seldom until there is a schema that is kept,
// because until then schemas are inferred for each answer, which takes long.
func every(e hookglass.Endpoint, inferred bool) string {
	switch {
	case !e.SchemaTracking:
		return ""
	case inferred:
		return "30000"
	}
	return "3000"
}

func path(e hookglass.Endpoint, below string) string {
	return "/endpoints/" + string(e.ID) + "/schemas" + below
}

// one returns the address of an event type's page.
func one(e hookglass.Endpoint, s api.SchemaSummary, below string) string {
	return path(e, "/"+url.PathEscape(s.Provider)+"/"+url.PathEscape(name(s))+below)
}

func name(s api.SchemaSummary) string {
	if s.EventType == nil {
		return "-"
	}
	return *s.EventType
}

// Title names an event type for people.
func Title(s api.SchemaSummary) string {
	if s.EventType == nil {
		return "no event type"
	}
	return show.Line(*s.EventType)
}

func kinds(f api.SchemaField) string {
	return strings.Join(slices.Sorted(maps.Keys(f.Types)), " or ")
}

func looks(f api.SchemaField) string {
	if f.Format != nil {
		return *f.Format
	}
	return strings.Join(f.Enum, ", ")
}

func there(f api.SchemaField) string {
	if f.Required {
		return "always"
	}
	return strconv.FormatInt(f.Present, 10) + " of " + strconv.FormatInt(f.Of, 10)
}
