// Package layout renders what all pages share: the head, the bar at the top and the list of endpoints. It also has the
// shared styles and the script for copying, ages and the keyboard.
package layout

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/a-h/templ"

	"hookglass"
)

// Files holds the style, the script and the icon.
//
//go:embed layout.css layout.js unsaved.js icon.svg
var Files embed.FS

// Frame describes what surrounds the content of a page.
type Frame struct {
	Title   string
	Asset   func(name string) string // the address of an asset
	Scripts []string                 // names of the page's own modules; a page with modules has shortcuts
	Clock   time.Time                // the time of this node; ages are counted by it, not by the browser's clock

	User      string // the email address; empty for visitors
	Temporary bool   // a visitor with a temporary endpoint
	Claims    bool   // the visitor is signed in as well, and may keep it
	Endpoints []hookglass.Endpoint
	More      bool                 // there may be more endpoints
	Current   hookglass.EndpointID // the endpoint that the page is about
	Endpoint  hookglass.Endpoint   // the same; zero if the page belongs to no endpoint
	Section   Section              // the entry of the page in the navigation
}

// Window is a window of time that a page offers: up to now, as the address asks for it, and its name.
type Window struct{ Value, Name string }

// Section is an entry of the navigation. Its value is the label.
type Section string

// The pages of an endpoint, then the global ones.
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

// local lists the pages of an endpoint.
var local = []entry{
	{Requests, "", "r"}, {ReplayCases, "/cases", "c"}, {Actions, "/actions", "a"}, {Alerts, "/alerts", "l"},
	{Tunnel, "/tunnel", "t"}, {Metrics, "/metrics", "m"}, {Settings, "/settings", "s"},
}

// joints are the places of a URL at which it may be cut into lines: after a slash, and before the query and each of its
// parameters.
var joints = regexp.MustCompile(`[^/:]/|\?|&amp;`)

// URL is a URL that breaks at its parts, so that an id in it stays whole where there is room for the id.
func URL(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, joints.ReplaceAllStringFunc(templ.EscapeString(s), func(joint string) string {
			if joint[len(joint)-1] == '/' {
				return joint + "<wbr>"
			}
			return "<wbr>" + joint
		}))
		return err
	})
}

type answeringKey struct{}

// Answering returns the context of a page that answers a submitted form, with where the page is opened again.
func Answering(ctx context.Context, path string) context.Context {
	return context.WithValue(ctx, answeringKey{}, path)
}

// again returns where a page that answers a form is opened again; empty for other pages.
func again(ctx context.Context) string {
	path, _ := ctx.Value(answeringKey{}).(string)
	return path
}

// Mark returns a digest of a stored form, which shows whether it changed meanwhile; see [Stale].
func Mark(form any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", form))
	return hex.EncodeToString(sum[:12])
}
