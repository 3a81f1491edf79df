package inspector

import (
	"hookglass"
	"hookglass/internal/web/layout"
)

// TimesModel is what the page of a request's times shows.
type TimesModel struct {
	layout.Frame
	Path      string // of the request
	Of        string // its title
	Changes   []hookglass.TimeChange
	Signature hookglass.SignatureMode
	Warnings  []string
}

// say is what becomes of the times and the signature.
func (m TimesModel) say() string {
	if m.Signature == hookglass.SignatureResign {
		return "These timestamps would change, and the request would be signed again."
	}
	return "These timestamps would change."
}
