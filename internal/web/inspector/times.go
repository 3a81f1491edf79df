package inspector

import (
	"hookglass"
	"hookglass/internal/web/layout"
)

// TimesModel is the content of the preview of moved timestamps.
type TimesModel struct {
	layout.Frame
	Path      string // of the request
	Of        string // its title
	Changes   []hookglass.TimeChange
	Signature hookglass.SignatureMode
	Warnings  []string
}

// say says what happens to the timestamps and the signature.
func (m TimesModel) say() string {
	if m.Signature == hookglass.SignatureResign {
		return "These timestamps would change, and the request would be signed again."
	}
	return "These timestamps would change."
}
