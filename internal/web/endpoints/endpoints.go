// Package endpoints is the page that lists a user's endpoints and creates new ones.
package endpoints

import (
	"embed"
	"time"

	"hookglass"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files is the style.
//
//go:embed endpoints.css
var Files embed.FS

// List is a part of a user's endpoints, oldest first.
type List struct {
	Self      string // the address of the list alone
	Endpoints []hookglass.Endpoint
	Next      hookglass.EndpointID             // behind which the list goes on; empty: it ends
	Address   func(hookglass.Endpoint) string  // the webhook URL or the email address
	Activity  map[hookglass.EndpointID][]int64 // requests by hour of the last day, oldest first
	Now       time.Time

	Workspaces []hookglass.Workspace // of the account
}

// workspace is the name of the one that an endpoint is in; empty where there is but one.
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

// Model is what the page shows.
type Model struct {
	layout.Frame
	List      List
	Temporary hookglass.EndpointID // of this browser, that can be kept; empty: none

	// What was typed before, and what is wrong with it.
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
