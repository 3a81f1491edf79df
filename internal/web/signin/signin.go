// Package signin is the page of a visitor: sign in, or get a temporary endpoint at once.
package signin

import (
	"embed"
	"strings"

	"hookglass"
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
	Signup    bool   // accounts may be created
	Mine      string // the address of this browser's temporary endpoint, when it has one
	Next      string // where to go once signed in
	Email     string // as typed before
	Problem   string // why signing in failed
	Empty     bool   // there is no user at all, and none can be created here

	KeyProblem string // why the key of a temporary endpoint opens nothing
}

// keyed reports whether it is likely that somebody comes with the key of a temporary endpoint.
func (m Model) keyed() bool { return m.KeyProblem != "" || strings.HasPrefix(m.Next, "/endpoints/") }

// UpModel is what the page for a new account shows.
type UpModel struct {
	layout.Frame
	Next   string // where to go once signed in
	Email  string // as typed before
	Faults []hookglass.FieldError
}

func (m UpModel) fault(field string) string {
	for _, f := range m.Faults {
		if f.Field == field {
			return strings.ToUpper(field[:1]) + field[1:] + " " + f.Message + "."
		}
	}
	return ""
}
