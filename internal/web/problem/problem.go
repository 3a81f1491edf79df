// Package problem renders the error page.
package problem

import (
	"net/http"
	"net/url"

	"hookglass/internal/web/layout"
)

// Model is the content of the page.
type Model struct {
	layout.Frame
	Status  int
	Message string
	SignIn  string // the address of the sign-in page, which leads back; empty: signing in does not help
	Back    string // the address of a list to return to; empty: none
	List    string // what the list holds
	Gone    bool   // the endpoint of the page is not there
	Sent    bool   // the request was a form, which the browser can send again
	Typed   []Text // what a refused form held, for browsers without scripts, where this page takes the form's place
}

// Text is a field of a form as typed.
type Text struct{ Label, Value string }

// TypedIn returns the texts of the forms that have no page of their own to show them again. Fields for secrets are not
// among them.
func TypedIn(form url.Values) (typed []Text) {
	for _, t := range []Text{
		{"Target URL", "target_url"}, {"Method", "method"}, {"Query", "query"}, {"Headers", "headers"}, {"Body", "body"},
		{"Recipients", "to"}, {"Note", "note"}, {"Tag", "tag"}, {"Search name", "name"}, {"Sample", "sample"}, {"Values of your own", "set"},
	} {
		if value := form.Get(t.Value); value != "" {
			typed = append(typed, Text{t.Label, value})
		}
	}
	return typed
}

// passing reports whether the same request may succeed later.
func (m Model) passing() bool {
	return m.Status == http.StatusTooManyRequests || m.Status == http.StatusServiceUnavailable
}
