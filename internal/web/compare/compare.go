// Package compare is the page that shows two requests side by side.
package compare

import (
	"embed"
	"strings"

	"hookglass"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files is the style.
//
//go:embed compare.css
var Files embed.FS

// Model is what the page shows.
type Model struct {
	layout.Frame
	Path        string // of the endpoint
	Left, Right *hookglass.Event
	hookglass.Comparison
}

// named has the fields of requests under the names that the page of a request gives them.
func named(fields []hookglass.Change) []hookglass.Change {
	all := make([]hookglass.Change, len(fields))
	for i, c := range fields {
		all[i] = c
		switch c.Path {
		case "ip_address":
			all[i].Path = "Sender"
		case "detected_provider":
			all[i].Path = "Provider"
		case "event_type":
			all[i].Path = "Event"
		case "signature_status":
			all[i].Path = "Signature"
		case "status":
			all[i].Path = "Response status"
		default:
			words := show.Field(c.Path)
			all[i].Path = strings.ToUpper(words[:1]) + words[1:]
		}
	}
	return all
}

// sides calls the two sides of a text's differences as the tables of the page do.
func sides(text string) string {
	return strings.Replace(text, "--- left\n+++ right\n", "--- first\n+++ second\n", 1)
}

// form says as what two bodies were compared.
func form(b hookglass.BodyChanges) string {
	switch b.Form {
	case "json":
		return "JSON"
	case "form":
		return "forms"
	}
	return b.Form
}

// place is where a body differs.
func place(c hookglass.Change) string {
	if c.Path == "" {
		return "whole body"
	}
	return show.Line(c.Path)
}
