// Package share renders the pages of share links and bundles of a request, and the request as a link shows it.
package share

import (
	"time"

	"hookglass"
	"hookglass/internal/bundle"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Model is the content of the page of a request's links.
type Model struct {
	layout.Frame
	Path   string // of the request
	Title  string
	Shares []hookglass.Share
	Link   string // just created
	Notice string
	Fault  string
	Now    time.Time
}

// BundleModel is the content of the page of a request's bundle.
type BundleModel struct {
	layout.Frame
	Path     string // of the request
	Title    string
	Pointers string // as typed, one per line
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
	return "Signed for " + show.Provider(m.Signed.Provider) + " with the published secret " + m.Signed.Secret + "."
}

// SharedModel is the content of the page behind a link.
type SharedModel struct {
	layout.Frame
	*inspector.Detail
	Share hookglass.Share
}
