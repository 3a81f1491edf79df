package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
	"hookglass/internal/web/endpoints"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/settings"
)

// maxRail bounds the endpoints that a page lists.
const maxRail = 200

func (a *app) registerEndpoints() {
	a.page("GET /endpoints", a.listEndpoints)
	a.page("POST /endpoints", a.createEndpoint)
	a.page("GET /endpoints/{endpoint}/settings", a.showSettings)
	a.page("POST /endpoints/{endpoint}/settings", a.saveSettings)
	a.page("POST /endpoints/{endpoint}/delete", a.deleteEndpoint)
}

// endpointsOf lists what a visitor sees, oldest first.
func (a *app) endpointsOf(ctx context.Context, v visitor) (all []hookglass.Endpoint, err error) {
	err = a.DB.View(ctx, v.who, func(view *store.View) error {
		all, err = view.Endpoints(0, maxRail)
		return err
	})
	return all, err
}

// user answers forbidden unless the visitor is signed in.
func (a *app) user(r *http.Request) (visitor, error) {
	v, err := a.visit(r)
	if err == nil && !v.signedIn() {
		err = hookglass.Errorf(hookglass.CodeUnauthorized, "Sign in to go on.")
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

func (a *app) renderEndpoints(w http.ResponseWriter, r *http.Request, status int, v visitor, m endpoints.Model) error {
	m.Address, m.Now = a.address, time.Now()
	var err error
	if m.Frame, err = a.globalFrame(r.Context(), v, layout.Endpoints, "Endpoints"); err != nil {
		return err
	}
	return render(w, r, status, endpoints.Page(m))
}

func (a *app) createEndpoint(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	name, kind := r.PostFormValue("name"), hookglass.EndpointKind(r.PostFormValue("kind"))
	e, err := a.Endpoints.Create(r.Context(), v.who, endpoint.Draft{Name: &name, Kind: &kind})
	if faults := faultsOf(err); faults != nil {
		return a.renderEndpoints(w, r, http.StatusUnprocessableEntity, v, endpoints.Model{Name: name, Kind: kind, Faults: faults})
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID))
	return nil
}

// faultsOf are the fields at fault, nil when the error is of another kind.
func faultsOf(err error) []hookglass.FieldError {
	var e *hookglass.Error
	if errors.As(err, &e) && e.Code == hookglass.CodeValidationFailed {
		return e.Details
	}
	return nil
}

func (a *app) showSettings(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	var e hookglass.Endpoint
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		e, err = view.Endpoint(r.PathValue("endpoint"))
		return err
	})
	if err != nil {
		return err
	}
	return a.renderSettings(w, r, http.StatusOK, v, settings.Model{Endpoint: e, Name: e.Name, Enabled: e.Enabled, Saved: r.URL.Query().Has("saved")})
}

func (a *app) renderSettings(w http.ResponseWriter, r *http.Request, status int, v visitor, m settings.Model) error {
	m.Address = a.address(m.Endpoint)
	var err error
	if m.Frame, err = a.endpointFrame(r.Context(), v, m.Endpoint, layout.Settings); err != nil {
		return err
	}
	return render(w, r, status, settings.Page(m))
}

func (a *app) saveSettings(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	name, enabled := r.PostFormValue("name"), r.PostFormValue("enabled") == "true"
	e, err := a.Endpoints.Update(r.Context(), v.who, r.PathValue("endpoint"), endpoint.Draft{Name: &name, Enabled: &enabled})
	if faults := faultsOf(err); faults != nil {
		before := hookglass.Endpoint{}
		err := a.DB.View(r.Context(), v.who, func(view *store.View) (err error) {
			before, err = view.Endpoint(r.PathValue("endpoint"))
			return err
		})
		if err != nil {
			return err
		}
		fault := "The name " + faults[0].Message + "."
		return a.renderSettings(w, r, http.StatusUnprocessableEntity, v, settings.Model{Endpoint: before, Name: name, Enabled: enabled, Fault: fault})
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/settings?saved")
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
