// Package problem renders the error page.
package problem

import (
	"net/http"

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
}

// passing reports whether the same request may succeed later.
func (m Model) passing() bool {
	return m.Status == http.StatusTooManyRequests || m.Status == http.StatusServiceUnavailable
}
