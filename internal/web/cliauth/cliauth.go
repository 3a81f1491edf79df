// Package cliauth renders the page on which a user lets a command line sign in as them.
package cliauth

import "hookglass/internal/web/layout"

// Model is the content of the page.
type Model struct {
	layout.Frame
	Account string
	Port    string // on which the command line listens; "": it waits for a code
	State   string // by which the command line recognises its own request
	Code    string // shown after approval if the command line waits for one
}
