// Package problem renders the error page.
package problem

import "hookglass/internal/web/layout"

// Model is the content of the page.
type Model struct {
	layout.Frame
	Status  int
	Message string
	SignIn  string // the address of the sign-in page, which leads back; empty: signing in does not help
	Back    string // the address of a list to return to; empty: none
	List    string // what the list holds
	Sent    bool   // the request was a form, which the browser can send again
}
