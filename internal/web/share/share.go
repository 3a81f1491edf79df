// Package share is the pages of links to one request: making and revoking them, and what a stranger with a link sees.
package share

import (
	"time"

	"hookglass"
	"hookglass/internal/bundle"
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

// BundleModel is what the page of a request's bundle shows.
type BundleModel struct {
	layout.Frame
	Path     string // of the request
	Title    string
	Pointers string // as typed, one a line
	Keep     string
	Replaced []bundle.Replacement
	Signed   *bundle.Signature // nil: it cannot be signed
	Unsigned string            // why not
	Fault    string
}

func (m BundleModel) signed() string {
	if m.Signed == nil {
		return "Not signed: " + m.Unsigned + "."
	}
	return "Signed for " + m.Signed.Provider + " with the published secret " + m.Signed.Secret + "."
}

// SharedModel is what a stranger sees.
type SharedModel struct {
	layout.Frame
	*inspector.Detail
	Share hookglass.Share
}
