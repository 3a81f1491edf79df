// Package layout is what all pages share: the head, the bar at the top, the rail of endpoints, the styles and
// the script for copying, ages and the keyboard.
package layout

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"time"

	"hookglass"
)

// Files are the style, the script and the icon.
//
//go:embed layout.css layout.js icon.svg
var Files embed.FS

// Frame is what stands around a page.
type Frame struct {
	Title   string
	Asset   func(name string) string // the address of an asset
	Scripts []string                 // names of the page's own modules; a page with one has shortcuts
	Clock   time.Time                // what that of this node says, by which the page counts ages on whatever the browser's clock says

	User      string // the email address; empty for visitors
	Temporary bool   // a visitor with a temporary endpoint
	Claims    bool   // who is signed in as well, and could keep it
	Endpoints []hookglass.Endpoint
	More      bool                 // there may be more endpoints than those
	Current   hookglass.EndpointID // the endpoint that the page is about
	Endpoint  hookglass.Endpoint   // the same; zero where the page belongs to none
	Section   Section              // which entry of the navigation the page is
}

// Section is an entry of the navigation, by the word that it bears.
type Section string

// The pages of an endpoint, and those of everything.
const (
	Requests    Section = "Requests"
	ReplayCases Section = "Replay cases"
	Actions     Section = "Actions"
	Alerts      Section = "Alerts"
	Tunnel      Section = "Tunnel"
	Metrics     Section = "Metrics"
	Settings    Section = "Settings"

	Endpoints Section = "Endpoints"
	Activity  Section = "Activity"
	Flows     Section = "Flows"
	Secrets   Section = "Secrets"
	Channels  Section = "Channels"
	Tags      Section = "Tags"
	Setup     Section = "Setup"
	Account   Section = "Account"
)

// entry is a link of the navigation.
type entry struct {
	section Section
	path    string
	key     string // pressed after g
}

var global = []entry{
	{Endpoints, "/endpoints", "e"}, {Activity, "/activity", "v"}, {Flows, "/flows", "f"}, {Secrets, "/secrets", "x"}, {Channels, "/channels", "h"},
	{Tags, "/tags", "j"}, {Setup, "/setup", "u"}, {Account, "/account", "p"},
}

// local are the pages below an endpoint's address.
var local = []entry{
	{Requests, "", "r"}, {ReplayCases, "/cases", "c"}, {Actions, "/actions", "a"}, {Alerts, "/alerts", "l"},
	{Tunnel, "/tunnel", "t"}, {Metrics, "/metrics", "m"}, {Settings, "/settings", "s"},
}

// Mark tells what is stored, as a form shows it, from what is stored after a change of it: see [Stale].
func Mark(form any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", form))
	return hex.EncodeToString(sum[:12])
}
