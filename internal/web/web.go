// Package web is the web app: the edge where people look. It hides routes, cookies and assets; each page has a
// folder of its own below, with its template, style and script.
//
// Pages are rendered on the server and work for reading without scripts; where scripts run, requests arrive live
// and open beside the list. Nothing is loaded from another host, and nothing that a sender wrote is ever markup.
package web

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/capture"
	"hookglass/internal/drift"
	"hookglass/internal/endpoint"
	"hookglass/internal/flow"
	"hookglass/internal/httpd"
	"hookglass/internal/release"
	"hookglass/internal/replay"
	"hookglass/internal/retries"
	"hookglass/internal/share"
	"hookglass/internal/store"
	"hookglass/internal/tunnel"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/problem"
	"hookglass/internal/web/show"
)

// Deps is what the web app stands on.
type Deps struct {
	DB        *store.DB
	Accounts  *account.Service
	Endpoints *endpoint.Service
	Captures  *capture.Service
	Replays   *replay.Service
	Actions   *action.Service
	Alerts    *alert.Service
	Tunnels   *tunnel.Service
	Retries   *retries.Service
	Drift     *drift.Service
	Flows     *flow.Service
	Addresses api.Addresses
	SMTP      SMTP
	Shares    *share.Service
	Releases  *release.Service
	Retention time.Duration   // how long requests of an account are kept that has no time of its own
	Temporary bool            // visitors may make temporary endpoints
	Signup    bool            // visitors may create an account
	Draining  <-chan struct{} // closed when the server stops: streams end
}

// SMTP is how mail is received by SMTP.
type SMTP struct {
	Address string // in use; empty: it is off
	SignIn  bool   // programs may sign in to an inbox
	TLS     bool   // STARTTLS is there, without which nobody signs in
}

type app struct {
	Deps
	mux    *http.ServeMux
	base   *base // nil: the root
	secure bool  // the service is reached by https
	assets *assets
}

// New returns the handler of everything that belongs to no other edge. It expects [httpd.Stack.Wrap] around it.
func New(d Deps) http.Handler {
	a := &app{
		Deps: d, mux: http.NewServeMux(), base: newBase(d.Addresses.PublicURL),
		secure: strings.HasPrefix(d.Addresses.PublicURL, "https://"), assets: newAssets(),
	}
	a.mux.HandleFunc("GET /assets/{name}", a.assets.serve)
	for _, register := range []func(){
		a.registerSessions,
		a.registerAccount,
		a.registerEndpoints,
		a.registerSettings,
		a.registerInspector,
		a.registerRequests,
		a.registerTags,
		a.registerChannels,
		a.registerAlerts,
		a.registerMetrics,
		a.registerProfiles,
		a.registerActivity,
		a.registerSetup,
		a.registerSecrets,
		a.registerCases,
		a.registerActions,
		a.registerTunnel,
		a.registerBatches,
		a.registerFlows,
		a.registerLedger,
	} {
		register()
	}
	a.page("/", a.unknown)

	guard := http.NewCrossOriginProtection()
	// Behind a proxy that changes Host, a browser too old for Sec-Fetch-Site is known by the public address.
	_ = guard.AddTrustedOrigin(strings.TrimSuffix(d.Addresses.PublicURL, a.base.address("")))
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, hookglass.Errorf(hookglass.CodeForbidden, "This form was sent from another site."))
	}))
	return a.base.within(policy(guard.Handler(a.mux)))
}

// page registers a page or a form's address. An error that it returns, having written nothing, becomes the page
// that says what went wrong.
func (a *app) page(pattern string, handle func(http.ResponseWriter, *http.Request) error) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		r, done := a.reads(a.zips(r))
		defer done()
		if err := handle(w, r); err != nil {
			a.fail(w, r, err)
		}
	})
}

// part registers the address of a piece of a page, which a script puts into the page. Who opens it in a browser is led
// to the page, with what the address asks for.
func (a *app) part(pattern string, handle func(http.ResponseWriter, *http.Request) error) {
	a.page(pattern, func(w http.ResponseWriter, r *http.Request) error {
		if !opens(r) {
			return handle(w, r)
		}
		page := a.above(r)
		if page == "/" {
			page = "/endpoints" // whose parts cannot stand below it
		}
		if r.URL.RawQuery != "" {
			page += "?" + r.URL.RawQuery
		}
		redirect(w, r, page)
		return nil
	})
}

// opens reports whether a browser asks for what it shows in its window, rather than a script of a page for a piece.
func opens(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// unknown tells a method that a page does not have from a page that does not exist.
func (a *app) unknown(w http.ResponseWriter, r *http.Request) error {
	allowed := httpd.Allowed(a.mux, r)
	if len(allowed) == 0 {
		return hookglass.NotFound("page")
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	if r.Method == http.MethodGet {
		return hookglass.Errorf(hookglass.CodeMethodNotAllowed, "This address takes what a form sends. There is nothing to look at.")
	}
	return hookglass.Errorf(hookglass.CodeMethodNotAllowed, "This page does not answer to this method.")
}

// above is the nearest page whose address a path begins with.
func (a *app) above(r *http.Request) string {
	for up := path.Dir(path.Clean("/" + r.URL.Path)); up != "/"; up = path.Dir(up) {
		at := &url.URL{Path: up}
		if slices.Contains(httpd.Allowed(a.mux, &http.Request{URL: at, Host: r.Host}), http.MethodGet) {
			return at.EscapedPath()
		}
	}
	return "/"
}

// contentPolicy lets a page use what comes from here in files of its own, and nothing else: no inline script
// or style, no frame but of a mail's HTML, no form to another site.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

func policy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store") // pages hold what was captured
		next.ServeHTTP(w, r)
	})
}

// globalFrame is what stands around a page that belongs to no endpoint, with the endpoints beside it.
func (a *app) globalFrame(ctx context.Context, v visitor, s layout.Section, title string, scripts ...string) (layout.Frame, error) {
	f := a.frame(v, title, scripts...)
	f.Section = s
	var err error
	if v.signedIn() {
		f.Endpoints, err = a.endpointsOf(ctx, v)
		f.More = len(f.Endpoints) == maxRail
	}
	return f, err
}

// endpointFrame is what stands around a page of an endpoint, with the way to its other pages.
func (a *app) endpointFrame(ctx context.Context, v visitor, e hookglass.Endpoint, s layout.Section, scripts ...string) (layout.Frame, error) {
	f, err := a.globalFrame(ctx, v, s, string(s)+" · "+e.Name, scripts...)
	f.Current, f.Endpoint = e.ID, e
	return f, err
}

// frame is what stands around a visitor's page.
func (a *app) frame(v visitor, title string, scripts ...string) layout.Frame {
	return layout.Frame{
		Title: title, Asset: a.assets.url, Scripts: scripts, Clock: time.Now(),
		User: v.user.Email, Temporary: v.temporary(), Claims: v.claims,
	}
}

// address is where an endpoint catches: its webhook URL or its email address.
func (a *app) address(e hookglass.Endpoint) string {
	wire := api.FromEndpoint(e, a.Addresses)
	if wire.EmailAddress != nil {
		return *wire.EmailAddress
	}
	return *wire.WebhookURL
}

// render writes a whole page.
func render(w http.ResponseWriter, r *http.Request, status int, page templ.Component) error {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// Buffered, so that a page that cannot be rendered becomes an error page and not a half one.
	buffer := templ.GetBuffer()
	defer templ.ReleaseBuffer(buffer)
	if err := page.Render(r.Context(), buffer); err != nil {
		return err
	}
	if err := rendered(r, buffer.Len()); err != nil {
		return err
	}
	answer(w, r, status, baseOf(r.Context()).page(buffer.Bytes()))
	return nil
}

// fail answers with what went wrong: the page for it, or the sign-in page for who must sign in first.
func (a *app) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := httpd.Fail(r.Context(), err)
	if f.Status == http.StatusUnauthorized {
		if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Dest") != "empty" {
			redirect(w, r, "/sign-in?next="+escape(r.URL.RequestURI()))
			return
		}
	}
	if retry := f.Header.Get("Retry-After"); retry != "" {
		w.Header().Set("Retry-After", retry)
	}
	message := f.Body.Message
	if len(f.Body.Details) > 0 {
		message = wrong(f.Body.Details)
	}
	m := problem.Model{Frame: a.problemFrame(r, f.Status), Status: f.Status, Message: message, Sent: r.Method == http.MethodPost}
	if f.Status == http.StatusUnauthorized {
		m.SignIn = "/sign-in"
		if slices.Contains(httpd.Allowed(a.mux, r), http.MethodGet) {
			m.SignIn += "?next=" + escape(r.URL.RequestURI())
		}
	}
	if f.Status == http.StatusNotFound && r.PathValue("endpoint") != "" {
		if _, e, err := a.open(r); err == nil {
			m.Back, m.List = listOf(r, e)
		}
	}
	if f.Status == http.StatusMethodNotAllowed && r.Method == http.MethodGet { // the form's address was opened again
		m.Back, m.List = a.above(r), "page above it"
	}
	if err := render(w, r, f.Status, problem.Page(m)); err != nil {
		http.Error(w, http.StatusText(f.Status), f.Status)
	}
}

// problemFrame is what stands around the page that says what went wrong: for a user the endpoints beside it, as around
// any other page, and the way to the pages of the endpoint that it went wrong at.
func (a *app) problemFrame(r *http.Request, status int) layout.Frame {
	title := http.StatusText(status)
	if status == http.StatusServiceUnavailable { // a storage that lets everyone wait would do so once more
		return a.frame(visitor{}, title)
	}
	v, err := a.visit(r)
	plain := a.frame(v, title)
	if err != nil || !v.signedIn() {
		return plain
	}
	f, err := a.globalFrame(r.Context(), v, "", title)
	if err != nil {
		return plain
	}
	if r.PathValue("endpoint") != "" {
		if e, err := a.endpointFor(r, v); err == nil {
			f.Current, f.Endpoint = e.ID, e
		}
	}
	return f
}

// wrong says what is wrong with the fields of a form that does not say it itself.
func wrong(fields []api.FieldError) string {
	sentences := make([]string, 0, len(fields))
	for _, f := range fields {
		sentences = append(sentences, show.Fault(f.Field, f.Message))
	}
	return strings.Join(sentences, " ")
}

// listOf is the list of an endpoint that would have what a path names, and what is in it.
func listOf(r *http.Request, e hookglass.Endpoint) (path, name string) {
	path = "/endpoints/" + string(e.ID)
	switch {
	case r.PathValue("case") != "":
		return path + "/cases", "replay cases"
	case r.PathValue("action") != "":
		return path + "/actions", "actions"
	case r.PathValue("alert") != "":
		return path + "/alerts", "alerts"
	}
	return path, "requests"
}

func redirect(w http.ResponseWriter, r *http.Request, to string) {
	http.Redirect(w, r, baseOf(r.Context()).address(to), http.StatusSeeOther)
}
