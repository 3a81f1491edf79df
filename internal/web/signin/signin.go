// Package signin is the page of a visitor: sign in, or get a temporary endpoint at once.
package signin

import (
	"embed"

	"hookglass/internal/web/layout"
)

// Files is the style.
//
//go:embed signin.css
var Files embed.FS

// Model is what the page shows.
type Model struct {
	layout.Frame
	Temporary bool   // temporary endpoints may be made
	Mine      string // the address of this browser's temporary endpoint, when it has one
	Next      string // where to go once signed in
	Email     string // as typed before
	Problem   string // why signing in failed
}
