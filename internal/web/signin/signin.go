// Package signin renders the page for visitors: sign in, or create a temporary endpoint.
package signin

import (
	"embed"
	"strings"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Files holds the style.
//
//go:embed signin.css
var Files embed.FS

// Model is the content of the page.
type Model struct {
	layout.Frame
	Temporary bool   // temporary endpoints are allowed
	Signup    bool   // accounts may be created
	Mine      string // the address of this browser's temporary endpoint; empty: none
	Next      string // where to go once signed in
	Email     string // as typed before
	Problem   string // why signing in failed
	Empty     bool   // there are no users, and none can be created here

	KeyProblem string // why the key of a temporary endpoint opens nothing
}

// keyed reports whether the visitor is likely to have the key of a temporary endpoint.
func (m Model) keyed() bool { return m.KeyProblem != "" || strings.HasPrefix(m.Next, "/endpoints/") }

// UpModel is the content of the page for a new account.
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
