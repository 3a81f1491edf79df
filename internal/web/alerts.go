package web

import (
	"net/http"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/alert"
	"hookglass/internal/store"
	"hookglass/internal/web/alerts"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/layout"
)

func (a *app) registerAlerts() {
	a.page("GET /endpoints/{endpoint}/alerts", a.showAlerts)
	a.part("GET /endpoints/{endpoint}/alerts/rows", ofEndpoint(a, a.alertsOf, alerts.Rows))
	a.page("POST /endpoints/{endpoint}/alerts", a.createAlert)
	a.page("GET /endpoints/{endpoint}/alerts/{alert}", a.showAlert)
	a.part("GET /endpoints/{endpoint}/alerts/{alert}/incidents", a.alertIncidents)
	a.page("POST /endpoints/{endpoint}/alerts/{alert}", a.saveAlert)
	a.page("POST /endpoints/{endpoint}/alerts/{alert}/enabled", a.enableAlert)
	a.page("POST /endpoints/{endpoint}/alerts/{alert}/delete", a.deleteAlert)
}

func (a *app) showAlerts(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	return a.renderAlerts(w, r, http.StatusOK, v, e, alerts.Model{Notice: notice(r), Form: alerts.Blank()})
}

func (a *app) renderAlerts(w http.ResponseWriter, r *http.Request, status int, v visitor, e hookglass.Endpoint, m alerts.Model) (err error) {
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Alerts, fresh.Script); err != nil {
		return err
	}
	if m.List, err = a.alertsOf(r, v, e); err != nil {
		return err
	}
	return render(w, r, status, alerts.Page(m))
}

func (a *app) alertsOf(r *http.Request, v visitor, e hookglass.Endpoint) (l alerts.List, err error) {
	l.Endpoint, l.Now = e.ID, time.Now()
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if l.Alerts, err = view.Alerts(string(e.ID), 0, 0); err != nil {
			return err
		}
		l.Channels, err = view.Channels(e.WorkspaceID, 0, 0)
		return err
	})
	slices.SortStableFunc(l.Alerts, func(a, b hookglass.Alert) int { return alerts.Rank(a) - alerts.Rank(b) })
	return l, err
}

func (a *app) createAlert(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	m := alerts.Model{Form: alerts.ReadForm(r.PostForm, hookglass.AlertKind(r.PostFormValue("kind")))}
	_, err = a.Alerts.Create(r.Context(), v.who, string(e.ID), m.Form.Draft())
	if refuseAlert(&m.Form, err) {
		return a.renderAlerts(w, r, statusOf(err), v, e, m)
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/alerts?done=created")
	return nil
}

// refuseAlert writes into the form why it was refused and reports whether it was.
func refuseAlert(f *alerts.Form, err error) bool {
	f.Faults = faultsOf(err)
	f.Refused, _ = refused(err)
	return f.Faults != nil || f.Refused != ""
}

// statusOf is the status of a form's own page that was refused.
func statusOf(err error) int {
	if _, status := refused(err); status != 0 {
		return status
	}
	return http.StatusUnprocessableEntity
}

// ownAlert finds the signed-in user, the endpoint and the alert that the path names.
func (a *app) ownAlert(r *http.Request) (v visitor, e hookglass.Endpoint, found hookglass.Alert, err error) {
	if v, e, err = a.own(r); err != nil {
		return v, e, found, err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		found, err = view.Alert(string(e.ID), r.PathValue("alert"))
		return err
	})
	return v, e, found, err
}

func (a *app) showAlert(w http.ResponseWriter, r *http.Request) error {
	v, e, found, err := a.ownAlert(r)
	if err != nil {
		return err
	}
	return a.renderAlert(w, r, http.StatusOK, v, e, alerts.EditModel{Alert: found, Notice: notice(r), Form: alerts.NewForm(found)})
}

func (a *app) renderAlert(w http.ResponseWriter, r *http.Request, status int, v visitor, e hookglass.Endpoint, m alerts.EditModel) (err error) {
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Alerts, fresh.Script); err != nil {
		return err
	}
	m.Frame.Title = "Alert · " + m.Alert.Name
	if m.History, err = a.historyOf(r, v, e, m.Alert); err != nil {
		return err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		m.Channels, err = view.Channels(e.WorkspaceID, 0, 0)
		return err
	})
	if err != nil {
		return err
	}
	return render(w, r, status, alerts.EditPage(m))
}

func (a *app) historyOf(r *http.Request, v visitor, e hookglass.Endpoint, found hookglass.Alert) (h alerts.History, err error) {
	base := "/endpoints/" + string(e.ID) + "/alerts/" + found.ID
	h.Alert, h.Self, h.Now = found, base+"/incidents", time.Now()
	at := r.URL.Query().Get("cursor")
	before, err := place(at)
	if err != nil {
		return h, err
	}
	if before != 0 {
		h.Self += "?cursor=" + escape(at)
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		h.Incidents, err = view.Incidents(string(e.ID), found.ID, before, historySize+1)
		return err
	})
	var older string
	if h.Incidents, older = firstPage(h.Incidents, historySize, func(i hookglass.Incident) int64 { return i.Num }); older != "" {
		h.Older = base + "?cursor=" + escape(older)
	}
	return h, err
}

// alertIncidents is the history alone.
func (a *app) alertIncidents(w http.ResponseWriter, r *http.Request) error {
	v, e, found, err := a.ownAlert(r)
	if err != nil {
		return err
	}
	h, err := a.historyOf(r, v, e, found)
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, alerts.Incidents(h))
}

func (a *app) saveAlert(w http.ResponseWriter, r *http.Request) error {
	v, e, found, err := a.ownAlert(r)
	if err != nil {
		return err
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	m := alerts.EditModel{Alert: found, Form: alerts.ReadForm(r.PostForm, found.Kind)}
	if now := alerts.NewForm(found).Seen; stale(m.Form.Seen, now) {
		m.Form.Seen, m.Stale = now, true
		return a.renderAlert(w, r, http.StatusConflict, v, e, m)
	}
	_, err = a.Alerts.Update(r.Context(), v.who, string(e.ID), found.ID, m.Form.Draft())
	if refuseAlert(&m.Form, err) {
		return a.renderAlert(w, r, statusOf(err), v, e, m)
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/alerts/"+found.ID+"?done=saved")
	return nil
}

func (a *app) enableAlert(w http.ResponseWriter, r *http.Request) error {
	v, err := a.userForm(w, r)
	if err != nil {
		return err
	}
	if _, err := a.Alerts.Update(r.Context(), v.who, r.PathValue("endpoint"), r.PathValue("alert"), alert.Draft{Enabled: new(r.PostFormValue("enabled") == "true")}); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+escape(r.PathValue("endpoint"))+"/alerts?done=saved")
	return nil
}

func (a *app) deleteAlert(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	if err := a.Alerts.Delete(r.Context(), v.who, r.PathValue("endpoint"), r.PathValue("alert")); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+escape(r.PathValue("endpoint"))+"/alerts?done=deleted")
	return nil
}
