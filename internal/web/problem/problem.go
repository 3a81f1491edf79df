// Package problem is the page that says what went wrong.
package problem

import "hookglass/internal/web/layout"

// Model is what the page shows.
type Model struct {
	layout.Frame
	Status  int
	Message string
	SignIn  string // where to sign in and come back; empty: that would not help
	Back    string // the list of what was looked for; empty: there is none
	List    string // what is in it
	Sent    bool   // a form was sent, which goes on where it was sent
}
