package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/httpd"
	"hookglass/internal/store"
	"hookglass/internal/web/actions"
	"hookglass/internal/web/cases"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/layout"
)

func (a *app) registerActions() {
	const base, one = "/endpoints/{endpoint}/actions", "/endpoints/{endpoint}/actions/{action}"
	runs := ofEndpoint(a, func(r *http.Request, v visitor, e hookglass.Endpoint) (actions.Runs, error) {
		return a.runsOfActions(r, v, e, r.PathValue("action"))
	}, actions.History)
	a.page("GET "+base, a.listActions)
	a.part("GET "+base+"/runs", runs)
	a.page("GET "+base+"/new", a.newAction)
	a.page("POST "+base+"/new", a.saveAction)
	a.page("POST "+base+"/new/check", a.checkAction)
	a.page("GET "+one, a.showAction)
	a.page("POST "+one, a.saveAction)
	a.page("POST "+one+"/check", a.checkAction)
	a.part("GET "+one+"/runs", runs)
	a.page("POST "+one+"/enable", a.enableAction)
	a.page("POST "+one+"/move", a.moveAction)
	a.page("POST "+one+"/rerun", a.rerunAction)
	a.page("POST "+one+"/delete", a.deleteAction)
}

func (a *app) listActions(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	return a.renderActions(w, r, http.StatusOK, v, e, actions.ListModel{Notice: notice(r)})
}

func (a *app) renderActions(w http.ResponseWriter, r *http.Request, status int, v visitor, e hookglass.Endpoint, m actions.ListModel) (err error) {
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Actions, fresh.Script); err != nil {
		return err
	}
	if m.Runs, err = a.runsOfActions(r, v, e, ""); err != nil {
		return err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		account, err := view.Account(v.who.Account)
		if err != nil {
			return err
		}
		m.Plan = messageOf(account.Entitlements().MayUseActions())
		m.Actions, err = view.Actions(string(e.ID), 0, 0)
		return err
	})
	if err != nil {
		return err
	}
	return render(w, r, status, actions.ListPage(m))
}

const ofActionRuns httpd.List = 'v'

// runsOfActions reads the runs of one action, or of all, and the full run that the URL names or, for one action, the
// newest.
func (a *app) runsOfActions(r *http.Request, v visitor, e hookglass.Endpoint, id string) (h actions.Runs, err error) {
	q := r.URL.Query()
	h = actions.Runs{Endpoint: e.ID, Action: id, Names: make(map[string]string), Asked: askedRuns(q), Now: time.Now()}
	p, err := ofActionRuns.PageOfIDs(historySize, q.Get("cursor"))
	if err != nil {
		return h, err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		all, err := view.Actions(string(e.ID), 0, 0)
		if err != nil {
			return err
		}
		for _, one := range all {
			h.Names[one.ID] = one.Name
		}
		if id != "" {
			h.Runs, err = view.ActionRuns(string(e.ID), id, p.BehindID, p.Most())
		} else {
			h.Runs, err = view.EndpointActionRuns(string(e.ID), p.BehindID, p.Most())
		}
		if err != nil {
			return err
		}
		if named := q.Get("run"); named != "" {
			run, err := view.ActionRun(string(e.ID), named)
			if err == nil && (id == "" || run.ActionID == id) {
				h.Open = &run
			} else if err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
				return err
			}
		}
		return nil
	})
	if len(h.Runs) > historySize {
		h.Runs = h.Runs[:historySize]
		h.Older = *ofActionRuns.CursorBehind(h.Runs[historySize-1].ID)
	}
	if h.Open == nil && id != "" && len(h.Runs) > 0 {
		h.Open = &h.Runs[0]
	}
	return h, err
}

func (a *app) newAction(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	m := actions.Model{Form: actions.NewForm()}
	m.Form.Event = r.FormValue("event")
	return a.renderAction(w, r, http.StatusOK, v, e, m)
}

func (a *app) showAction(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	m, err := a.actionOf(r, v, e)
	if err != nil {
		return err
	}
	m.Form, m.Notice = actions.FormOf(*m.Action), notice(r)
	m.Form.Event = r.FormValue("event")
	return a.renderAction(w, r, http.StatusOK, v, e, m)
}

// actionOf reads the action that the path names, or returns an empty one for a new action.
func (a *app) actionOf(r *http.Request, v visitor, e hookglass.Endpoint) (m actions.Model, err error) {
	id := r.PathValue("action")
	if id == "" {
		return m, nil
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		found, err := view.Action(string(e.ID), id)
		m.Action = &found
		return err
	})
	return m, err
}

// saveAction does what the pressed button of the builder means: edit the form, try it, or save.
func (a *app) saveAction(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownLongForm(w, r)
	if err != nil {
		return err
	}
	m, err := a.actionOf(r, v, e)
	if err != nil {
		return err
	}
	m.Form = actions.ReadForm(r.PostForm)
	if m.Action != nil {
		m.Form.Keep(*m.Action)
	}
	switch do := r.PostForm.Get("do"); {
	case m.Form.Edit(do, r.PostForm):
		return a.renderAction(w, r, http.StatusOK, v, e, m)
	case do == "check":
		if m.Tried, err = a.try(r.Context(), v, e, r.PathValue("action"), m.Form); err != nil {
			return err
		}
		m.Tried.Asked, m.Form.Faults = true, m.Tried.Faults
		return a.renderAction(w, r, http.StatusOK, v, e, m)
	case do == "backtest" && m.Action != nil:
		return a.backtestAction(w, r, v, e, m)
	}
	if m.Action != nil && stale(m.Form.Seen, actions.Mark(*m.Action)) {
		m.Form.Seen, m.Stale = actions.Mark(*m.Action), true
		return a.renderAction(w, r, http.StatusConflict, v, e, m)
	}
	var saved hookglass.Action
	done := "saved"
	if m.Action == nil {
		done = "created"
		saved, err = a.Actions.Create(r.Context(), v.who, string(e.ID), m.Form.Draft())
	} else {
		saved, err = a.Actions.Update(r.Context(), v.who, string(e.ID), m.Action.ID, m.Form.Draft())
	}
	if err == nil {
		redirect(w, r, "/endpoints/"+string(e.ID)+"/actions/"+saved.ID+"?done="+done)
		return nil
	}
	return a.refuseAction(w, r, v, e, m, err)
}

// refuseAction shows the builder again with its errors.
func (a *app) refuseAction(w http.ResponseWriter, r *http.Request, v visitor, e hookglass.Endpoint, m actions.Model, err error) error {
	if m.Form.Refuse(err) {
		m.Tried.Faults = m.Form.Faults
		m.Problem = "Something is missing or wrong, so nothing was done."
		return a.renderAction(w, r, http.StatusUnprocessableEntity, v, e, m)
	}
	message, status := refused(err)
	if message == "" {
		return err
	}
	m.Problem = message
	return a.renderAction(w, r, status, v, e, m)
}

// backtestAction tries the action on past requests, next to what is typed.
func (a *app) backtestAction(w http.ResponseWriter, r *http.Request, v visitor, e hookglass.Endpoint, m actions.Model) error {
	limit, err := strconv.ParseInt(cmp.Or(m.Form.Limit, "25"), 10, 64)
	if err != nil || limit < 1 || limit > action.MaxBacktest {
		limit = 25
	}
	b, err := a.Actions.Backtest(r.Context(), v.who, string(e.ID), m.Action.ID, action.BacktestOf{Query: m.Form.Query, Limit: limit, Draft: new(m.Form.Draft())})
	if err != nil {
		faults := faultsOf(err)
		if len(faults) == 1 && faults[0].Field == "query" {
			m.Form.Faults = []actions.Fault{{Field: "q", Label: "Query", Text: "The query cannot be read " + faults[0].Message + "."}}
			return a.renderAction(w, r, http.StatusUnprocessableEntity, v, e, m)
		}
		return a.refuseAction(w, r, v, e, m, err)
	}
	m.Backtest = &b
	return a.renderAction(w, r, http.StatusOK, v, e, m)
}

// checkAction serves the errors and the preview of the builder's form.
func (a *app) checkAction(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownLongForm(w, r)
	if err != nil {
		return err
	}
	tried, err := a.try(r.Context(), v, e, r.PathValue("action"), actions.ReadForm(r.PostForm))
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, actions.Result(tried))
}

func (a *app) try(ctx context.Context, v visitor, e hookglass.Endpoint, id string, f actions.Form) (t actions.Tried, err error) {
	p, err := a.Actions.Try(ctx, v.who, string(e.ID), id, f.Event, f.Draft())
	switch message, _ := refused(err); {
	case err == nil && f.Event != "":
		t.Result = &p
	case err == nil:
	case f.Refuse(err):
		t.Faults = f.Faults
	case message != "":
		t.Problem = message
	default:
		return t, err
	}
	return t, nil
}

func (a *app) renderAction(w http.ResponseWriter, r *http.Request, status int, v visitor, e hookglass.Endpoint, m actions.Model) (err error) {
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Actions, fresh.Script, actions.Script); err != nil {
		return err
	}
	m.Frame.Title = "New action · " + e.Name
	m.Title, m.Now = cases.Title, time.Now()
	if m.Recent, err = a.recent(r.Context(), v, e); err != nil {
		return err
	}
	if chosen := func(ev *hookglass.Event) bool { return string(ev.ID) == m.Form.Event }; m.Form.Event != "" && !slices.ContainsFunc(m.Recent, chosen) {
		ev, err := a.listed(r.Context(), v, e, m.Form.Event)
		if err == nil {
			m.Recent = append(m.Recent, ev)
		} else if !hookglass.Is(err, hookglass.CodeNotFound) {
			return err
		}
	}
	if m.Action != nil {
		m.Frame.Title = m.Action.Name + " · " + e.Name
		if m.Runs, err = a.runsOfActions(r, v, e, m.Action.ID); err != nil {
			return err
		}
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if m.Channels, err = view.Channels(e.WorkspaceID, 0, 0); err != nil {
			return err
		}
		if m.Tags, err = view.Tags(e.WorkspaceID, 0, 0); err != nil {
			return err
		}
		found, err := view.ActionSecrets(e.WorkspaceID, 0, 0)
		for _, s := range found {
			m.Secrets = append(m.Secrets, s.Name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return render(w, r, status, actions.Page(m))
}

func (a *app) enableAction(w http.ResponseWriter, r *http.Request) error {
	return a.setAction(w, r, func(d *action.Draft) error {
		d.Enabled = new(r.PostForm.Get("enabled") == "true")
		return nil
	})
}

func (a *app) moveAction(w http.ResponseWriter, r *http.Request) error {
	return a.setAction(w, r, func(d *action.Draft) error {
		to, err := strconv.ParseInt(r.PostForm.Get("to"), 10, 64)
		if err != nil {
			return hookglass.Invalid("position", "must be a number")
		}
		d.Position = &to
		return nil
	})
}

// setAction changes one thing of an action in the list.
func (a *app) setAction(w http.ResponseWriter, r *http.Request, set func(*action.Draft) error) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	var d action.Draft
	if err := set(&d); err != nil {
		return err
	}
	if _, err = a.Actions.Update(r.Context(), v.who, string(e.ID), r.PathValue("action"), d); err != nil {
		message, status := refused(err)
		if message == "" {
			return err
		}
		return a.renderActions(w, r, status, v, e, actions.ListModel{Problem: message})
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/actions")
	return nil
}

func (a *app) rerunAction(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	id := r.PathValue("action")
	run, err := a.Actions.Rerun(r.Context(), v.who, string(e.ID), id, r.PostForm.Get("event"), r.PostForm.Get("run"))
	if err != nil {
		message, status := refused(err)
		if message == "" {
			return err
		}
		return a.renderActions(w, r, status, v, e, actions.ListModel{Problem: message})
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/actions/"+id+"?run="+run.ID+actions.RunsPart)
	return nil
}

func (a *app) deleteAction(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	if err := a.Actions.Delete(r.Context(), v.who, string(e.ID), r.PathValue("action")); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/actions?done=deleted")
	return nil
}
