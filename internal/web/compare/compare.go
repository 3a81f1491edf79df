// Package compare is the page that shows two requests side by side.
package compare

import (
	"embed"

	"hookglass"
	"hookglass/internal/web/layout"
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
