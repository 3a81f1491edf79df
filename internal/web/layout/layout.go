// Package layout is what all pages share: the head, the bar at the top, the rail of endpoints, the styles and
// the script for copying, ages and the keyboard.
package layout

import (
	"embed"

	"hookglass"
)

// Files are the style, the script and the icon.
//
//go:embed layout.css layout.js icon.svg
var Files embed.FS

// Frame is what stands around a page.
type Frame struct {
	Title   string
	Asset   func(name string) string // the address of an asset
	Scripts []string                 // names of the page's own modules; a page with one has shortcuts

	User      string // the email address; empty for visitors
	Temporary bool   // a visitor with a temporary endpoint
	Endpoints []hookglass.Endpoint
	Current   hookglass.EndpointID // the endpoint that the page is about
}
