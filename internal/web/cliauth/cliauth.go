// Package cliauth is the page on which a person lets a command line sign in as them.
package cliauth

import "hookglass/internal/web/layout"

// Model is what the page shows.
type Model struct {
	layout.Frame
	Account string
	Port    string // on which the command line waits; "": it waits for a code
	State   string // that the command line knows its own request by
	Code    string // once approved, where it waits for one
}
