package web

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/httpd"
	"hookglass/internal/paste"
	"hookglass/internal/provider"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/layout"
)

// pageSize is how many requests a page lists; more come on demand.
const pageSize = 50

// firstLook is how long a search may delay a new page. If that is not enough, the page says so and continues by itself.
const firstLook = 50 * time.Millisecond

func (a *app) registerInspector() {
	a.page("GET /endpoints/{endpoint}", a.inspect)
	a.part("GET /endpoints/{endpoint}/rows", a.rows)
	a.part("GET /endpoints/{endpoint}/stream", a.stream)
	a.page("POST /endpoints/{endpoint}/test", a.sendTest)
	a.page("GET /endpoints/{endpoint}/requests/{event}", a.inspect)
	a.part("GET /endpoints/{endpoint}/requests/{event}/panel", a.panel)
	a.page("GET /endpoints/{endpoint}/requests/{event}/body", a.body)
	a.page("GET /endpoints/{endpoint}/requests/{event}/picture", a.picture)
	a.page("POST /endpoints/{endpoint}/requests/{event}/delete", a.deleteEvent)
}

// open finds who views the endpoint of a request: the signed-in user or, for an endpoint of others, the holder of a
// temporary endpoint's key. A user without access gets not_found. Everybody else is asked to sign in, even with the key
// of another endpoint: every visitor of the first page has one, and a user whose session ended may have access.
func (a *app) open(r *http.Request) (visitor, hookglass.Endpoint, error) {
	v, err := a.visit(r)
	if err != nil {
		return v, hookglass.Endpoint{}, err
	}
	e, err := a.endpointFor(r, v)
	if hookglass.Is(err, hookglass.CodeNotFound) && v.signedIn() {
		holder, wrong := a.keyHolder(r)
		if wrong == nil {
			if e, again := a.endpointFor(r, holder); again == nil {
				holder.claims = true
				return holder, e, nil
			}
		} else if !hookglass.Is(wrong, hookglass.CodeUnauthorized) {
			err = wrong
		}
	}
	if hookglass.Is(err, hookglass.CodeNotFound) && !v.signedIn() {
		err = errSignIn
	}
	return v, e, err
}

func (a *app) endpointFor(r *http.Request, v visitor) (hookglass.Endpoint, error) {
	return store.Read(r.Context(), a.DB, v.who, func(view *store.View) (hookglass.Endpoint, error) {
		return view.Endpoint(r.PathValue("endpoint"))
	})
}

// list reads a page of an endpoint's requests. An invalid query is a fault of the list and no error.
func (a *app) list(r *http.Request, v visitor, e hookglass.Endpoint, patience time.Duration) (inspector.List, error) {
	l := inspector.List{
		Endpoint: e.ID, Place: cursor, Now: time.Now(), Query: r.FormValue("q"), Cursor: r.FormValue("cursor"), Open: hookglass.EventID(r.PathValue("event")),
		Writes: v.signedIn(), Mail: e.Kind == hookglass.KindEmail,
	}
	before, err := place(l.Cursor)
	if err != nil {
		return l, err
	}
	filter, err := query.Filter{Q: l.Query}.Parse(a.DB.Now())
	if faults := faultsOf(err); faults != nil {
		l.Fault = "The query cannot be read " + faults[0].Message + "."
		return l, nil
	}
	if err != nil {
		return l, err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		newest, err := view.NewestSeq(string(e.ID))
		if err != nil {
			return err
		}
		l.Newest = cursor(newest)
		page, err := view.Events(string(e.ID), store.EventList{Query: filter, Limit: pageSize, Before: before, Patience: patience})
		if err != nil {
			return err
		}
		l.Events = page.Events
		if page.Next != 0 {
			l.Older = cursor(page.Next)
		}
		return view.LoadFailed(page.Events)
	})
	return l, err
}

// mailbox is how mail reaches an email endpoint.
func (a *app) mailbox(e hookglass.Endpoint) inspector.Mailbox {
	m := inspector.Mailbox{SMTP: a.SMTP.Address, Mailbox: paste.Mailbox{Address: a.address(e), SignIn: a.SMTP.SignIn, TLS: a.SMTP.TLS, Post: a.Addresses.PublicURL + "/mail/" + string(e.ID)}}
	m.Host, m.Port, _ = net.SplitHostPort(a.SMTP.Address)
	if ip, err := netip.ParseAddr(m.Host); err == nil && ip.IsUnspecified() {
		// The name of such a listener is not known here; usually it is the host of the web app.
		m.SMTP = "port " + m.Port
		if public, err := url.Parse(a.Addresses.PublicURL); err == nil {
			m.Host = public.Hostname()
		}
	}
	return m
}

// inspect is the page of an endpoint, with one request in detail where the path names one.
func (a *app) inspect(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	m := inspector.Model{Endpoint: e, Address: a.address(e), Mailbox: a.mailbox(e), Claims: v.claims, Notice: notice(r)}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Requests, "inspector.js", "tree.js", "search.js", "jwt.js", "times.js", "notify.js", fresh.Script); err != nil {
		return err
	}
	m.Title = e.Name
	var patience time.Duration
	if r.FormValue("cursor") == "" { // a request for more results may wait
		patience = firstLook
	}
	if m.List, err = a.list(r, v, e, patience); err != nil {
		return err
	}
	if v.signedIn() {
		err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
			if m.Searches, err = view.SavedSearches(string(e.ID)); err != nil {
				return err
			}
			m.Tags, err = view.Tags(e.WorkspaceID, 0, 100)
			return err
		})
		if err != nil {
			return err
		}
	}
	status := http.StatusOK
	if id := r.PathValue("event"); id != "" {
		event, err := a.reported(r.Context(), v, e, id)
		switch {
		case err == nil:
			m.Detail = inspector.NewDetail(m.List, event)
			m.Detail.First = inspector.Tab(r.URL.Query().Get("tab"))
			if err := a.fill(r.Context(), v, e, m.Detail); err != nil {
				return err
			}
			m.Title = event.Method + " " + inspector.Title(event) + " · " + e.Name
		case hookglass.Is(err, hookglass.CodeNotFound):
			m.Gone, status = "This request does not exist or was deleted.", http.StatusNotFound
		default:
			return err
		}
	}
	return render(w, r, status, inspector.Page(m))
}

// rows is a part of the list alone.
func (a *app) rows(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	l, err := a.list(r, v, e, 0)
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, inspector.Rows(l))
}

// panel is one request alone, to be shown beside the list.
func (a *app) panel(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	if fromHere(r) && r.URL.RawQuery == "" { // nothing on the page besides the request is chosen by others
		mayZip(r)
	}
	l := inspector.List{Endpoint: e.ID, Place: cursor, Now: time.Now(), Query: r.FormValue("q"), Writes: v.signedIn()}
	event, err := a.reported(r.Context(), v, e, r.PathValue("event"))
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return render(w, r, http.StatusNotFound, inspector.Missing("This request does not exist or was deleted.", l.Path("")))
	}
	if err != nil {
		return err
	}
	d := inspector.NewDetail(l, event)
	if err := a.fill(r.Context(), v, e, d); err != nil {
		return err
	}
	return render(w, r, http.StatusOK, inspector.Panel(d))
}

// body serves the exact body as a download that no browser renders.
func (a *app) body(w http.ResponseWriter, r *http.Request) error {
	return a.bytes(w, r, func(event *hookglass.Event) error {
		name := string(event.ID) + ".bin"
		if event.Type == hookglass.EventEmail {
			name = string(event.ID) + ".eml"
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		return nil
	})
}

// picture serves a body that is a picture, for the page of its request. Anything else is refused: only pixels are
// served with a media type that browsers render.
func (a *app) picture(w http.ResponseWriter, r *http.Request) error {
	return a.bytes(w, r, func(event *hookglass.Event) error {
		media := inspector.PictureType(event.Body)
		if media == "" {
			return hookglass.NotFound("picture")
		}
		w.Header().Set("Content-Type", media)
		return nil
	})
}

// bytes serves the body of a request with the headers that describe sets.
func (a *app) bytes(w http.ResponseWriter, r *http.Request, describe func(*hookglass.Event) error) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	event, err := a.held(r.Context(), v, e, r.PathValue("event"), 1)
	if err != nil {
		return err
	}
	if err := describe(event); err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	w.Header().Set("Content-Length", strconv.Itoa(len(event.Body)))
	_, _ = w.Write(event.Body) // nobody is left to tell
	return nil
}

func (a *app) deleteEvent(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	if err := a.Captures.Delete(r.Context(), v.who, string(e.ID), r.PathValue("event")); err != nil {
		return err
	}
	redirect(w, r, backTo(r, e))
	return nil
}

// backTo returns the URL of the list of requests that a form was sent from, with its search.
func backTo(r *http.Request, e hookglass.Endpoint, more ...string) string {
	return inspector.List{Endpoint: e.ID, Query: r.URL.Query().Get("q")}.Path("", more...)
}

// sendTest captures a request as if it had come from outside, with the rights of any sender: the sample that the form
// names, or a request of hookglass's own.
func (a *app) sendTest(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	if name, event, ok := strings.Cut(r.PostFormValue("sample"), "."); ok {
		lines := strings.FieldsFunc(r.PostFormValue("set"), func(c rune) bool { return c == '\n' || c == '\r' })
		t := capture.TestRequest{Provider: name, EventType: event}
		if t.Set, err = provider.Values(name, event, lines); err != nil {
			return err
		}
		if _, err := a.Captures.SendTest(r.Context(), v.who, string(e.ID), a.Addresses.PublicURL, t); err != nil {
			return err
		}
		redirect(w, r, "/endpoints/"+string(e.ID))
		return nil
	}
	target, err := a.Captures.Admit(r.Context(), string(e.ID))
	if err != nil {
		return err
	}
	known := httpd.From(r.Context())
	body := []byte(`{"type":"test","message":"Hello from hookglass","sent_at":` + strconv.Quote(time.Now().UTC().Format(time.RFC3339)) + `,"numbers":[1,2,3],"nested":{"works":true}}`)
	arrival := &capture.Arrival{
		Method: http.MethodPost, Path: "/", Target: "/hooks/" + string(e.ID), Proto: "HTTP/1.1",
		Host: known.Host, Scheme: known.Scheme, Client: known.Client, Body: body, At: time.Now(),
		Headers: hookglass.Headers{
			{Name: "Host", Value: known.Host}, {Name: "User-Agent", Value: "hookglass-test"},
			{Name: "Content-Type", Value: "application/json"}, {Name: "Content-Length", Value: strconv.Itoa(len(body))},
		},
	}
	if _, err := a.Captures.Capture(r.Context(), target, arrival); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID))
	return nil
}
