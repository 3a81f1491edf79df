// Package share is the pages of links to one request: making and revoking them, and what a stranger with a link sees.
package share

import (
	"time"

	"hookglass"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/layout"
)

// Model is what the page of a request's links shows.
type Model struct {
	layout.Frame
	Path   string // of the request
	Title  string
	Shares []hookglass.Share
	Link   string // that was made just now
	Notice string
	Fault  string
	Now    time.Time
}

// SharedModel is what a stranger sees.
type SharedModel struct {
	layout.Frame
	*inspector.Detail
	Share hookglass.Share
}
