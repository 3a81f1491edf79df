// Package web is the web app. It hides routes, cookies and assets; each page has a folder of its own, with its
// template, style and script.
//
// Pages are rendered on the server and can be read without scripts; with scripts, requests arrive live and open beside
// the list. Nothing is loaded from other hosts, and nothing that a sender wrote is ever markup.
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

// Deps are the dependencies of the web app.
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
	Retention time.Duration   // how long requests are kept if their account sets nothing
	Temporary bool            // visitors may make temporary endpoints
	Signup    bool            // visitors may create an account
	Draining  <-chan struct{} // closed when the server stops: streams end
}

// SMTP is how mail is received by SMTP.
type SMTP struct {
	Address string // in use; empty: it is off
	SignIn  bool   // clients may sign in to an inbox
	TLS     bool   // STARTTLS is offered, and then required for signing in
}

type app struct {
	Deps
	mux    *http.ServeMux
	base   *base // nil: the root
	secure bool  // the service is reached by https
	assets *assets
}

// New returns the handler of everything that belongs to no other edge, for use inside [httpd.Stack.Wrap].
func New(d Deps) http.Handler {
	a := &app{
		Deps: d, mux: http.NewServeMux(), base: newBase(d.Addresses.PublicURL),
		secure: strings.HasPrefix(d.Addresses.PublicURL, "https://"), assets: newAssets(),
	}
	a.mux.HandleFunc("GET /assets/{name}", a.assets.serve)
	a.mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) { // of pages that name none, such as /docs
		redirect(w, r, a.assets.url("icon.svg"))
	})
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
	// Behind a proxy that changes Host, the origin of a browser without Sec-Fetch-Site is compared with the public URL.
	_ = guard.AddTrustedOrigin(strings.TrimSuffix(d.Addresses.PublicURL, a.base.address("")))
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, hookglass.Errorf(hookglass.CodeForbidden, "This form was sent from another site."))
	}))
	return a.base.within(policy(guard.Handler(a.mux)))
}

// page registers a page or the target of a form. An error that handle returns before it has written anything is shown
// as an error page.
func (a *app) page(pattern string, handle func(http.ResponseWriter, *http.Request) error) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		r, done := a.reads(a.zips(r))
		defer done()
		handled := answering(r, a.again(r))
		if err := handle(w, handled); err != nil {
			r.PostForm = handled.PostForm
			a.fail(w, r, err) // an error page says itself what reloading it does
		}
	})
}

// answering has the page that answers a submitted form opened again at a path, instead of submitting the form again.
func answering(r *http.Request, path string) *http.Request {
	if r.Method != http.MethodPost {
		return r
	}
	return r.WithContext(layout.Answering(r.Context(), path))
}

// again returns the page that a form is on: the one at its target, or else the nearest above it.
func (a *app) again(r *http.Request) string {
	if slices.Contains(httpd.Allowed(a.mux, r), http.MethodGet) {
		return r.URL.RequestURI()
	}
	return a.above(r)
}

// part registers a part of a page, which a script inserts into the page. Opened in a browser window, it redirects to
// the page, with its query.
func (a *app) part(pattern string, handle func(http.ResponseWriter, *http.Request) error) {
	a.page(pattern, func(w http.ResponseWriter, r *http.Request) error {
		if !opens(r) {
			return handle(w, r)
		}
		page := a.above(r)
		if page == "/" {
			page = "/endpoints" // its parts have other paths
		}
		if r.URL.RawQuery != "" {
			page += "?" + r.URL.RawQuery
		}
		redirect(w, r, page)
		return nil
	})
}

// ofUser returns the handler of a part of a user's page: what read reads, as view renders it.
func ofUser[T any](a *app, read func(*http.Request, visitor) (T, error), view func(T) templ.Component) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, err := a.user(r)
		if err != nil {
			return err
		}
		model, err := read(r, v)
		if err != nil {
			return err
		}
		return render(w, r, http.StatusOK, view(model))
	}
}

// ofEndpoint is ofUser for a page of an endpoint of theirs.
func ofEndpoint[T any](a *app, read func(*http.Request, visitor, hookglass.Endpoint) (T, error), view func(T) templ.Component) func(http.ResponseWriter, *http.Request) error {
	return ofUser(a, func(r *http.Request, v visitor) (model T, err error) {
		e, err := a.endpointFor(r, v)
		if err != nil {
			return model, err
		}
		return read(r, v, e)
	}, view)
}

// opens reports whether a browser requests something for its window, as opposed to a script that requests a part.
func opens(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// unknown answers 405 for a method that the page does not have, and 404 for a page that does not exist.
func (a *app) unknown(w http.ResponseWriter, r *http.Request) error {
	allowed := httpd.Allowed(a.mux, r)
	if len(allowed) == 0 {
		return hookglass.NotFound("page")
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	if r.Method == http.MethodGet {
		return hookglass.Errorf(hookglass.CodeMethodNotAllowed, "This address only accepts submitted forms.")
	}
	return hookglass.Errorf(hookglass.CodeMethodNotAllowed, "This page does not support this method.")
}

// above returns the nearest page whose URL is a prefix of the path.
func (a *app) above(r *http.Request) string {
	for up := path.Dir(path.Clean("/" + r.URL.Path)); up != "/"; up = path.Dir(up) {
		at := &url.URL{Path: up}
		if slices.Contains(httpd.Allowed(a.mux, &http.Request{URL: at, Host: r.Host}), http.MethodGet) {
			return at.EscapedPath()
		}
	}
	return "/"
}

// section returns the page that the first part of the path names, such as /channels, and its name; empty if that is no
// page, or the path is not below it.
func (a *app) section(r *http.Request) (path, name string) {
	name, _, below := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	path = "/" + name
	if !below || !slices.Contains(httpd.Allowed(a.mux, &http.Request{URL: &url.URL{Path: path}, Host: r.Host}), http.MethodGet) {
		return "", ""
	}
	return path, name
}

// contentPolicy allows a page only files from this origin: no inline script or style, no frame except a mail's HTML, no
// form to another site.
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
		h.Set("Cache-Control", "no-store") // pages contain captured data
		next.ServeHTTP(w, r)
	})
}

// globalFrame returns the frame of a page that belongs to no endpoint, with the list of endpoints.
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

// endpointFrame returns the frame of a page of an endpoint, with links to its other pages.
func (a *app) endpointFrame(ctx context.Context, v visitor, e hookglass.Endpoint, s layout.Section, scripts ...string) (layout.Frame, error) {
	f, err := a.globalFrame(ctx, v, s, string(s)+" · "+e.Name, scripts...)
	f.Current, f.Endpoint = e.ID, e
	return f, err
}

// frame returns the frame of a visitor's page.
func (a *app) frame(v visitor, title string, scripts ...string) layout.Frame {
	return layout.Frame{
		Title: title, Asset: a.assets.url, Scripts: scripts, Clock: time.Now(),
		User: v.user.Email, Temporary: v.temporary(), Claims: v.claims,
	}
}

// address returns the webhook URL or the email address of an endpoint.
func (a *app) address(e hookglass.Endpoint) string {
	wire := api.FromEndpoint(e, a.Addresses)
	if wire.EmailAddress != nil {
		return *wire.EmailAddress
	}
	return *wire.WebhookURL
}

// render writes a page.
func render(w http.ResponseWriter, r *http.Request, status int, page templ.Component) error {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// Buffered, so that a rendering error results in an error page, not in half a page.
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

// fail shows an error page, or the sign-in page if that is needed first.
func (a *app) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := httpd.Fail(r.Context(), err)
	if f.Status == http.StatusUnauthorized && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Dest") != "empty" {
		redirect(w, r, "/sign-in?next="+escape(r.URL.RequestURI()))
		return
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
	if f.Status == http.StatusNotFound {
		if r.PathValue("endpoint") == "" {
			m.Back, m.List = a.section(r)
		} else if _, e, err := a.open(r); err == nil {
			m.Back, m.List = listOf(r, e)
		} else {
			m.Gone = hookglass.Is(err, hookglass.CodeNotFound)
		}
	}
	refused := m.Sent && (f.Status == http.StatusUnprocessableEntity || f.Status == http.StatusConflict)
	if refused || f.Status == http.StatusMethodNotAllowed && r.Method == http.MethodGet { // the URL of a form's target was opened again
		m.Back, m.List = a.above(r), "page above it"
	}
	if refused {
		m.Typed = problem.TypedIn(r.PostForm)
		if q := r.URL.Query().Get("q"); q != "" { // the search of the list
			m.Back += "?q=" + escape(q)
		}
	}
	if err := render(w, r, f.Status, problem.Page(m)); err != nil {
		http.Error(w, http.StatusText(f.Status), f.Status)
	}
}

// problemFrame returns the frame of an error page: for users with the list of endpoints, as on any other page, and with
// links to the other pages of the endpoint concerned.
func (a *app) problemFrame(r *http.Request, status int) layout.Frame {
	title := http.StatusText(status)
	if status == http.StatusServiceUnavailable { // do not wait for an unavailable storage again
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

// wrong lists the faults of fields that a form does not show itself.
func wrong(fields []api.FieldError) string {
	sentences := make([]string, 0, len(fields))
	for _, f := range fields {
		sentences = append(sentences, show.Fault(f.Field, f.Message))
	}
	return strings.Join(sentences, " ")
}

// listOf returns the list page that would contain what a path names, and the name of its content.
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
