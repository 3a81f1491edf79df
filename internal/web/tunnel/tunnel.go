// Package tunnel renders the page of an endpoint's tunnel: who is connected, how to connect, and the gaps with the
// state of the requests in them.
package tunnel

import (
	"cmp"
	"embed"
	"net/url"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files holds the style.
//
//go:embed tunnel.css
var Files embed.FS

// Model is the content of the page.
type Model struct {
	layout.Frame
	State  State
	Server string // the address that clients reach
	Notice string
}

// State is the part with the connected machines and the gaps. It refreshes.
type State struct {
	Endpoint    hookglass.EndpointID
	Connections []hookglass.TunnelConnection
	Gaps        []hookglass.Gap // newest first
	Chosen      string          // the gap whose requests are listed; empty: none
	Missing     []*hookglass.Event
	More        bool // there are more
	Title       func(*hookglass.Event) string
	Now         time.Time
}

func (s State) path(below string) string {
	return "/endpoints/" + string(s.Endpoint) + "/tunnel" + below
}

func (s State) self() string {
	if s.Chosen == "" {
		return s.path("/state")
	}
	return s.path("/state?gap=" + url.QueryEscape(s.Chosen))
}

func (s State) say() string {
	if len(s.Connections) == 0 {
		return "No machine is connected"
	}
	return show.Plural(int64(len(s.Connections)), "machine") + " connected"
}

// ref returns the name of the endpoint for the command line.
func (m Model) ref() string { return cmp.Or(m.Frame.Endpoint.CustomID, string(m.Frame.Current)) }

func (m Model) listen() string { return "hookglass listen 3000 -e " + m.ref() }

func (m Model) again() string {
	return "hookglass replays run -e " + m.ref() + " -q tunnel:failed --to tunnel"
}

func (m Model) login() string { return "hookglass login --server " + m.Server }

func who(c hookglass.TunnelConnection) string {
	name := cmp.Or(c.Hostname, c.Session.Client.Hostname, c.Session.Client.Name, "unnamed machine")
	return show.Line(name)
}

func machine(c hookglass.TunnelClient) string {
	parts := slices.DeleteFunc([]string{show.Line(c.Name), show.Line(strings.Trim(c.OS+"/"+c.Arch, "/"))}, func(s string) bool { return s == "" })
	return strings.Join(parts, ", ")
}

func can(c hookglass.TunnelConnection) string {
	var parts []string
	if c.Reports {
		parts = append(parts, "reports deliveries")
	}
	if c.Replays {
		parts = append(parts, "takes replays")
	}
	return cmp.Or(strings.Join(parts, ", "), "receives only")
}

func tone(s hookglass.GapState) string {
	switch s {
	case hookglass.GapOpen:
		return "bad"
	case hookglass.GapRecovered:
		return "good"
	}
	return "warn"
}

func meaning(g hookglass.Gap) string {
	switch {
	case g.State == hookglass.GapOpen:
		return "No machine is connected. Requests are kept until one reconnects."
	case g.State == hookglass.GapRecovered:
		return "All requests were delivered."
	case g.Outcome == "skipped":
		return "The machine left these requests out on purpose. They are kept: listen --recover all delivers them."
	case g.State == hookglass.GapReconnected:
		return "A machine is back and has not reported its recovery yet."
	}
	return "Some requests are still undelivered."
}

// said is what the machine reported of its recovery, which the state does not rest on.
func said(g hookglass.Gap) string {
	switch g.Outcome {
	case "completed":
		return "The machine says that it delivered all."
	case "partial":
		return "The machine says that some are left."
	case "skipped":
		return "Skipped by the machine."
	}
	return "The machine was interrupted."
}

// lasted formats the duration of a gap.
func lasted(g hookglass.Gap, now time.Time) string {
	end := g.ReconnectedAt
	if end.IsZero() {
		end = now
	}
	d := end.Sub(g.StartedAt).Round(time.Second)
	if d < time.Second {
		return "under 1s"
	}
	text := d.String()
	if d >= time.Hour {
		text = strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return text
}
