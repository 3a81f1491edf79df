package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
	"hookglass/internal/web/endpoints"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/layout"
)

// maxRail bounds the endpoints that a page lists.
const maxRail = 200

func (a *app) registerEndpoints() {
	a.page("GET /endpoints", a.listEndpoints)
	a.part("GET /endpoint-list", ofUser(a, a.endpointList, endpoints.Rows)) // not below /endpoints/, where every word may be a custom id
	a.part("GET /endpoint-names", a.endpointNames)
	a.page("POST /endpoints", a.createEndpoint)
	a.page("POST /endpoints/{endpoint}/delete", a.deleteEndpoint)
}

// endpointsOf lists what a visitor sees, oldest first.
func (a *app) endpointsOf(ctx context.Context, v visitor) ([]hookglass.Endpoint, error) {
	return store.Read(ctx, a.DB, v.who, func(view *store.View) ([]hookglass.Endpoint, error) {
		return view.Endpoints(0, maxRail)
	})
}

// user answers unauthorized unless the visitor is signed in.
func (a *app) user(r *http.Request) (visitor, error) {
	v, err := a.visit(r)
	if err == nil && !v.signedIn() {
		err = errSignIn
	}
	return v, err
}

// userForm is user for a request with a form, which it reads.
func (a *app) userForm(w http.ResponseWriter, r *http.Request) (visitor, error) {
	v, err := a.user(r)
	if err == nil {
		err = readForm(w, r)
	}
	return v, err
}

func (a *app) listEndpoints(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	return a.renderEndpoints(w, r, http.StatusOK, v, endpoints.Model{})
}

func (a *app) renderEndpoints(w http.ResponseWriter, r *http.Request, status int, v visitor, m endpoints.Model) (err error) {
	if m.Frame, err = a.globalFrame(r.Context(), v, layout.Endpoints, "Endpoints", fresh.Script); err != nil {
		return err
	}
	if m.List, err = a.endpointList(r, v); err != nil {
		return err
	}
	if holder, err := a.keyHolder(r); err == nil {
		m.Temporary = holder.who.Endpoint
	}
	return render(w, r, status, endpoints.Page(m))
}

// Bounds of a search for endpoints: of its text, of its words, and of what it lists.
const (
	maxNameSearch = 200
	maxNameWords  = 10
	maxNamed      = 50
)

// endpointNames lists the endpoints that have the words of a search, for the palette.
func (a *app) endpointNames(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	text := r.FormValue("text")
	words := strings.Fields(text)
	if len(text) > maxNameSearch || len(words) == 0 || len(words) > maxNameWords {
		return hookglass.Invalid("text", "must have 1 to %d words in %d bytes", maxNameWords, maxNameSearch)
	}
	found, err := store.Read(r.Context(), a.DB, v.who, func(view *store.View) ([]hookglass.Endpoint, error) {
		return view.EndpointsNamed(words, maxNamed)
	})
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, endpoints.Names(found))
}

// endpointList reads a page of a user's endpoints, after the endpoint in the request's URL, or from the oldest.
func (a *app) endpointList(r *http.Request, v visitor) (endpoints.List, error) {
	l := endpoints.List{Self: "/endpoint-list", Address: a.address, Now: time.Now()}
	after := r.URL.Query().Get("after")
	if after != "" {
		l.Self += "?after=" + escape(after)
	}
	err := a.DB.View(r.Context(), v.who, func(view *store.View) error {
		var from int64
		if after != "" {
			e, err := view.Endpoint(after)
			if err != nil {
				return err
			}
			from = e.Num
		}
		var err error
		if l.Endpoints, err = view.Endpoints(from, maxRail+1); err != nil {
			return err
		}
		l.Workspaces, err = view.Workspaces(v.who.Account)
		return err
	})
	if err != nil {
		return l, err
	}
	if len(l.Endpoints) > maxRail {
		l.Endpoints = l.Endpoints[:maxRail]
		l.Next = l.Endpoints[maxRail-1].ID
	}
	l.Activity, err = a.activityOf(r.Context(), v, l.Endpoints)
	return l, err
}

// maxSparklines bounds how many endpoints of a list show their last day.
const maxSparklines = 50

// activityOf counts what each endpoint caught in each hour of the last day, the oldest first.
func (a *app) activityOf(ctx context.Context, v visitor, all []hookglass.Endpoint) (counts map[hookglass.EndpointID][]int64, err error) {
	to := a.DB.Now().Truncate(time.Hour).Add(time.Hour)
	from := to.Add(-24 * time.Hour)
	counts = make(map[hookglass.EndpointID][]int64, len(all))
	err = a.DB.View(ctx, v.who, func(view *store.View) error {
		for _, e := range all[:min(len(all), maxSparklines)] {
			if e.LastEventAt.Before(from) {
				continue
			}
			figures, err := view.FiguresByStep(e.Num, from, to, time.Hour)
			if err != nil {
				return err
			}
			hours := make([]int64, 24)
			for at, f := range figures {
				if n := int(at.Sub(from) / time.Hour); n >= 0 && n < len(hours) {
					hours[n] = f.Events
				}
			}
			counts[e.ID] = hours
		}
		return nil
	})
	return counts, err
}

func (a *app) createEndpoint(w http.ResponseWriter, r *http.Request) error {
	v, err := a.userForm(w, r)
	if err != nil {
		return err
	}
	m := endpoints.Model{
		Name: r.PostFormValue("name"), Kind: hookglass.EndpointKind(r.PostFormValue("kind")), Provider: r.PostFormValue("provider"),
		LocalPart: strings.TrimSpace(r.PostFormValue("email_local_part")), CustomID: strings.TrimSpace(r.PostFormValue("custom_id")),
	}
	d := endpoint.Draft{Name: &m.Name, Kind: &m.Kind}
	if m.Kind == hookglass.KindEmail {
		d.EmailLocalPart = given(m.LocalPart)
	} else {
		d.Provider = given(m.Provider)
	}
	d.CustomID = given(m.CustomID)
	if m.Workspace, err = workspaceIn(r); err != nil {
		return err
	} else if m.Workspace != 0 {
		d.WorkspaceID = &m.Workspace
	}
	e, err := a.Endpoints.Create(r.Context(), v.who, d)
	if m.Faults = faultsOf(err); m.Faults != nil {
		return a.renderEndpoints(w, r, http.StatusUnprocessableEntity, v, m)
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID))
	return nil
}

// given is a field of a form that was filled in; nil when it was left empty.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// faultsOf are the fields at fault, nil when the error is of another kind.
func faultsOf(err error) []hookglass.FieldError {
	if e, ok := errors.AsType[*hookglass.Error](err); ok && (e.Code == hookglass.CodeValidationFailed || e.Code == hookglass.CodeTargetNotAllowed) {
		return e.Details
	}
	return nil
}

func (a *app) deleteEndpoint(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	if _, err := a.Endpoints.Delete(r.Context(), v.who, r.PathValue("endpoint")); err != nil {
		return err
	}
	redirect(w, r, "/endpoints")
	return nil
}

// claim transfers the browser's temporary endpoint to the signed-in user.
func (a *app) claim(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	holder, err := a.keyHolder(r)
	if hookglass.Is(err, hookglass.CodeUnauthorized) || err == nil && string(holder.who.Endpoint) != r.PathValue("endpoint") {
		return hookglass.NotFound("endpoint")
	}
	if err != nil {
		return err
	}
	e, err := a.Endpoints.Claim(r.Context(), v.who, holder.who, nil, nil)
	if err != nil {
		return err
	}
	a.setCookie(w, r, temporaryCookie, "", time.Unix(0, 0))
	redirect(w, r, "/endpoints/"+string(e.ID)+"?done=claimed")
	return nil
}
