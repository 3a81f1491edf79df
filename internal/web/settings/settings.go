// Package settings is the page on which an endpoint is changed and deleted.
package settings

import (
	"hookglass"
	"hookglass/internal/web/layout"
)

// Model is what the page shows.
type Model struct {
	layout.Frame
	Endpoint hookglass.Endpoint
	Address  string
	Name     string // as typed, or as it is
	Enabled  bool
	Saved    bool
	Fault    string // what is wrong with the name
}

func (m Model) path(below string) string { return "/endpoints/" + string(m.Endpoint.ID) + below }
