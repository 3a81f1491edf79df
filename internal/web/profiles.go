package web

import (
	"net/http"
	"net/url"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/drift"
	"hookglass/internal/endpoint"
	"hookglass/internal/query"
	measured "hookglass/internal/retries"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/retries"
	"hookglass/internal/web/schemas"
)

func (a *app) registerProfiles() {
	a.page("GET /endpoints/{endpoint}/retries", func(w http.ResponseWriter, r *http.Request) error {
		return a.renderRetries(w, r, http.StatusOK, func(*retries.Model) {})
	})
	a.page("POST /endpoints/{endpoint}/retries", a.saveScript)
	a.page("GET /endpoints/{endpoint}/schemas", a.showSchemas)
	a.part("GET /endpoints/{endpoint}/schemas/rows", ofEndpoint(a, a.schemasOf, schemas.Rows))
	a.page("POST /endpoints/{endpoint}/schemas", a.trackSchemas)
	a.page("GET /endpoints/{endpoint}/schemas/{provider}/{type}", func(w http.ResponseWriter, r *http.Request) error { return a.renderSchema(w, r, http.StatusOK, "") })
	a.part("GET /endpoints/{endpoint}/schemas/{provider}/{type}/state", ofEndpoint(a, a.schemaOf, schemas.Found))
	a.page("POST /endpoints/{endpoint}/schemas/{provider}/{type}/accept", a.acceptSchema)
}

// renderRetries renders the page; change modifies the model built from what is stored.
func (a *app) renderRetries(w http.ResponseWriter, r *http.Request, status int, change func(*retries.Model)) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	m := retries.Model{Of: e, Script: e.ResponseScript, Seen: layout.Mark(e.ResponseScript), Notice: notice(r)}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Metrics); err != nil {
		return err
	}
	m.Frame.Title = "Retries · " + e.Name
	p, err := a.Retries.Profile(r.Context(), v.who, string(e.ID), measured.Options{Query: query.Query{}, Events: measured.DefaultEvents, Groups: measured.DefaultGroups})
	if err != nil {
		return err
	}
	m.Profile = api.FromRetryProfile(p)
	change(&m)
	return render(w, r, status, retries.Page(m))
}

func (a *app) saveScript(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	script := strings.TrimSpace(r.PostFormValue("response_script"))
	if stale(r.PostFormValue("seen"), layout.Mark(e.ResponseScript)) {
		return a.renderRetries(w, r, http.StatusConflict, func(m *retries.Model) { m.Script, m.Stale = script, true })
	}
	_, err = a.Endpoints.Update(r.Context(), v.who, string(e.ID), endpoint.Draft{ResponseScript: &script})
	if faults := faultsOf(err); faults != nil {
		return a.renderRetries(w, r, http.StatusUnprocessableEntity, func(m *retries.Model) { m.Script, m.Fault = script, "The script: "+faults[0].Message+"." })
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/retries?done=saved")
	return nil
}

func (a *app) showSchemas(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	var m schemas.Model
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Metrics, fresh.Script); err != nil {
		return err
	}
	m.Frame.Title = "Schemas · " + e.Name
	if m.List, err = a.schemasOf(r, v, e); err != nil {
		return err
	}
	return render(w, r, http.StatusOK, schemas.Page(m))
}

func (a *app) schemasOf(r *http.Request, v visitor, e hookglass.Endpoint) (schemas.List, error) {
	l := schemas.List{Of: e}
	all, err := a.Drift.All(r.Context(), v.who, string(e.ID), drift.DefaultSample)
	for _, t := range all.Types {
		l.Data = append(l.Data, t.Summary())
	}
	l.Meta = api.SchemaMeta{Tracking: e.SchemaTracking, Source: all.Source(), Events: all.Events, More: all.More}
	return l, err
}

func (a *app) trackSchemas(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	if _, err := a.Endpoints.Update(r.Context(), v.who, string(e.ID), endpoint.Draft{SchemaTracking: new(r.PostFormValue("tracking") == "true")}); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/schemas")
	return nil
}

func (a *app) renderSchema(w http.ResponseWriter, r *http.Request, status int, fault string) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	m := schemas.OneModel{Notice: notice(r), Fault: fault}
	if m.Type, err = a.schemaOf(r, v, e); err != nil {
		return err
	}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Metrics, fresh.Script); err != nil {
		return err
	}
	m.Frame.Title = schemas.Title(m.Schema.SchemaSummary) + " · " + e.Name
	return render(w, r, status, schemas.One(m))
}

func (a *app) schemaOf(r *http.Request, v visitor, e hookglass.Endpoint) (schemas.Type, error) {
	all, t, err := a.Drift.One(r.Context(), v.who, string(e.ID), r.PathValue("type"), r.PathValue("provider"), drift.DefaultSample)
	if err != nil {
		return schemas.Type{}, err
	}
	return schemas.Type{Of: e, Schema: t.Whole(all.Source()), Drift: t.Drift(), Code: t.Code("ts")}, nil
}

func (a *app) acceptSchema(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	_, err = a.Drift.Accept(r.Context(), v.who, string(e.ID), r.PathValue("type"), r.PathValue("provider"))
	if hookglass.Is(err, hookglass.CodeConflict) {
		return a.renderSchema(w, r, http.StatusConflict, "Turn on schema tracking first. Only tracked requests are compared with a baseline.")
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/schemas/"+url.PathEscape(r.PathValue("provider"))+"/"+url.PathEscape(r.PathValue("type"))+"?done=accepted")
	return nil
}
