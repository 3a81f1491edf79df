// Package compare renders the page that shows two requests side by side.
package compare

import (
	"embed"
	"strings"

	"hookglass"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files holds the style.
//
//go:embed compare.css
var Files embed.FS

// Model is the content of the page.
type Model struct {
	layout.Frame
	Path        string // of the endpoint
	Left, Right *hookglass.Event
	hookglass.Comparison
}

// named replaces field names by the labels that the page of a request has for them.
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

// sides names the two sides of a text diff like the tables of the page.
func sides(text string) string {
	return strings.Replace(text, "--- left\n+++ right\n", "--- first\n+++ second\n", 1)
}

// form names the format in which two bodies were compared.
func form(b hookglass.BodyChanges) string {
	switch b.Form {
	case "json":
		return "JSON"
	case "form":
		return "forms"
	}
	return b.Form
}

// place returns the path of a difference.
func place(c hookglass.Change) string {
	if c.Path == "" {
		return "whole body"
	}
	return show.Line(c.Path)
}
