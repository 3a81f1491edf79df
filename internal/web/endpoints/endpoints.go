// Package endpoints renders the page that lists a user's endpoints and creates new ones.
package endpoints

import (
	"embed"
	"time"

	"hookglass"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files holds the style.
//
//go:embed endpoints.css
var Files embed.FS

// List is one page of a user's endpoints, oldest first.
type List struct {
	Self      string // the address of the list without its page
	Endpoints []hookglass.Endpoint
	Next      hookglass.EndpointID             // the last endpoint, after which the list continues; empty: it ends
	Address   func(hookglass.Endpoint) string  // the webhook URL or the email address
	Activity  map[hookglass.EndpointID][]int64 // requests by hour of the last day, oldest first
	Now       time.Time

	Workspaces []hookglass.Workspace // of the account
}

// long reports whether the form for a new endpoint is below the screen, so that a link leads to it.
func (m Model) long() bool { return len(m.List.Endpoints) > 5 }

// workspace returns the name of an endpoint's workspace. It is empty if the account has only one.
func (l List) workspace(e hookglass.Endpoint) string {
	if len(l.Workspaces) > 1 {
		for _, w := range l.Workspaces {
			if w.ID == e.WorkspaceID {
				return w.Name
			}
		}
	}
	return ""
}

// Model is the content of the page.
type Model struct {
	layout.Frame
	List      List
	Temporary hookglass.EndpointID // of this browser, which the user can keep; empty: none

	// What was typed, and its faults.
	Name      string
	Kind      hookglass.EndpointKind
	Provider  string
	LocalPart string
	CustomID  string
	Workspace int64
	Faults    []hookglass.FieldError
}

func (m Model) fault(field string) string {
	for _, f := range m.Faults {
		if f.Field == field {
			return show.Fault(f.Field, f.Message)
		}
	}
	return ""
}
