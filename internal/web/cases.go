package web

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/web/cases"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/layout"
)

const (
	historySize = 20 // runs that a page lists
	recentSize  = 50 // requests that a form offers
)

func (a *app) registerCases() {
	a.page("GET /endpoints/{endpoint}/cases", a.listCases)
	a.part("GET /endpoints/{endpoint}/cases/rows", ofEndpoint(a, a.casesOf, cases.Cases))
	a.page("GET /endpoints/{endpoint}/cases/new", a.newCase)
	a.page("POST /endpoints/{endpoint}/cases", a.createCase)
	a.page("POST /endpoints/{endpoint}/cases/check", a.checkCase)
	a.page("GET /endpoints/{endpoint}/cases/{case}", a.showCase)
	a.page("POST /endpoints/{endpoint}/cases/{case}", a.saveCase)
	a.page("POST /endpoints/{endpoint}/cases/{case}/check", a.checkCase)
	a.part("GET /endpoints/{endpoint}/cases/{case}/runs", a.caseRuns)
	a.page("POST /endpoints/{endpoint}/cases/{case}/run", a.runCase)
	a.page("POST /endpoints/{endpoint}/cases/{case}/delete", a.deleteCase)
}

// own finds the signed-in user and the endpoint that the path names. An endpoint of others is not_found.
func (a *app) own(r *http.Request) (visitor, hookglass.Endpoint, error) {
	v, err := a.user(r)
	if err != nil {
		return v, hookglass.Endpoint{}, err
	}
	e, err := a.endpointFor(r, v)
	return v, e, err
}

// ownForm is own for a request with a form, which it reads.
func (a *app) ownForm(w http.ResponseWriter, r *http.Request) (visitor, hookglass.Endpoint, error) {
	v, e, err := a.own(r)
	if err == nil {
		err = readForm(w, r)
	}
	return v, e, err
}

// maxLongForm bounds forms with templates, JSON and answers, which form encoding may triple.
const maxLongForm = 4 << 20

// ownLongForm is ownForm for such a form.
func (a *app) ownLongForm(w http.ResponseWriter, r *http.Request) (visitor, hookglass.Endpoint, error) {
	v, e, err := a.own(r)
	if err == nil {
		err = readFormUpTo(w, r, maxLongForm)
	}
	return v, e, err
}

func (a *app) listCases(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	m := cases.ListModel{Notice: notice(r)}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.ReplayCases, fresh.Script); err != nil {
		return err
	}
	if m.List, err = a.casesOf(r, v, e); err != nil {
		return err
	}
	if m.Recent, err = a.recent(r.Context(), v, e); err != nil {
		return err
	}
	return render(w, r, http.StatusOK, cases.ListPage(m))
}

// recent are the newest requests of an endpoint.
func (a *app) recent(ctx context.Context, v visitor, e hookglass.Endpoint) (events []*hookglass.Event, err error) {
	err = a.DB.View(ctx, v.who, func(view *store.View) error {
		page, err := view.Events(string(e.ID), store.EventList{Limit: recentSize})
		events = page.Events
		return err
	})
	return events, err
}

func (a *app) casesOf(r *http.Request, v visitor, e hookglass.Endpoint) (l cases.List, err error) {
	l = cases.List{Endpoint: e.ID, At: r.FormValue("cursor"), Now: time.Now()}
	before, err := place(l.At)
	if err != nil {
		return l, err
	}
	found, err := a.Replays.Cases(r.Context(), v.who, string(e.ID), before, pageSize+1)
	l.Cases, l.Older = firstPage(found, pageSize, func(c hookglass.ReplayCase) int64 { return c.Num })
	return l, err
}

func (a *app) newCase(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	id := r.FormValue("event")
	if id == "" {
		redirect(w, r, "/endpoints/"+string(e.ID)+"/cases#create")
		return nil
	}
	event, err := a.listed(r.Context(), v, e, id)
	if err != nil {
		return err
	}
	m := cases.Model{Source: event, Form: cases.NewForm(event)}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		replays, err := view.Replays(string(e.ID), id, 0, 1)
		for _, last := range replays {
			m.Form.Aim(last.TargetURL)
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.renderCase(w, r, http.StatusOK, v, e, m)
}

func (a *app) createCase(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownLongForm(w, r)
	if err != nil {
		return err
	}
	m := cases.Model{Form: cases.ReadForm(r.PostForm)}
	r = answering(r, "/endpoints/"+string(e.ID)+"/cases/new?event="+escape(m.Form.Event))
	if m.Source, err = a.listed(r.Context(), v, e, m.Form.Event); err != nil {
		return err
	}
	d, faults := m.Form.Draft()
	switch do := r.PostForm.Get("do"); {
	case do == "check" || do == "take":
		return a.tryCase(w, r, v, e, m)
	case len(faults) > 0:
		err = hookglass.InvalidFields(faults)
	default:
		d.SourceID = &m.Form.Event
		var c hookglass.ReplayCase
		if c, err = a.Replays.CreateCase(r.Context(), v.who, string(e.ID), d); err == nil {
			redirect(w, r, "/endpoints/"+string(e.ID)+"/cases/"+c.ID+"?done=created")
			return nil
		}
	}
	return a.refuseCase(w, r, v, e, m, err)
}

func (a *app) showCase(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	c, err := a.Replays.Case(r.Context(), v.who, string(e.ID), r.PathValue("case"))
	if err != nil {
		return err
	}
	return a.renderCase(w, r, http.StatusOK, v, e, cases.Model{Case: &c, Form: cases.FormOf(c), Notice: notice(r)})
}

func (a *app) saveCase(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownLongForm(w, r)
	if err != nil {
		return err
	}
	c, err := a.Replays.Case(r.Context(), v.who, string(e.ID), r.PathValue("case"))
	if err != nil {
		return err
	}
	m := cases.Model{Case: &c, Form: cases.ReadForm(r.PostForm)}
	d, faults := m.Form.Draft()
	d.LockVersion = &m.Form.LockVersion
	switch do := r.PostForm.Get("do"); {
	case do == "check" || do == "take":
		return a.tryCase(w, r, v, e, m)
	case len(faults) > 0:
		err = hookglass.InvalidFields(faults)
	default:
		if _, err = a.Replays.UpdateCase(r.Context(), v.who, string(e.ID), c.ID, d); err == nil {
			redirect(w, r, "/endpoints/"+string(e.ID)+"/cases/"+c.ID+"?done=saved")
			return nil
		}
	}
	return a.refuseCase(w, r, v, e, m, err)
}

// refuseCase shows the form again with its errors.
func (a *app) refuseCase(w http.ResponseWriter, r *http.Request, v visitor, e hookglass.Endpoint, m cases.Model, err error) error {
	if m.Form.Faults = faultsOf(err); m.Form.Faults != nil {
		return a.renderCase(w, r, http.StatusUnprocessableEntity, v, e, m)
	}
	message, status := refused(err)
	if message == "" {
		return err
	}
	if hookglass.Is(err, hookglass.CodeStaleLockVersion) && m.Case != nil {
		m.Stale = m.Case.LockVersion
		m.Form.LockVersion = m.Stale // having seen the warning, the user may overwrite it
		return a.renderCase(w, r, status, v, e, m)
	}
	m.Problem = message
	return a.renderCase(w, r, status, v, e, m)
}

// tryCase shows the form again with its assertions checked against the last answer, for browsers without scripts.
func (a *app) tryCase(w http.ResponseWriter, r *http.Request, v visitor, e hookglass.Endpoint, m cases.Model) error {
	if r.PostForm.Get("do") == "take" {
		check, err := a.lastAnswer(r.Context(), v, e, r.PathValue("case"), m.Form.Event)
		if err != nil {
			return err
		}
		if check.Response != nil {
			m.Form.Take(check.Response)
		}
	}
	_, m.Form.Faults = m.Form.Draft()
	return a.renderCase(w, r, http.StatusOK, v, e, m)
}

// checkCase serves the result of a form's assertions on the last answer.
func (a *app) checkCase(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownLongForm(w, r)
	if err != nil {
		return err
	}
	f := cases.ReadForm(r.PostForm)
	check, err := a.lastAnswer(r.Context(), v, e, r.PathValue("case"), f.Event)
	if err != nil {
		return err
	}
	check.Judge(f)
	return render(w, r, http.StatusOK, cases.Checked(check))
}

// lastAnswer finds the newest answer of a case's runs or, if there is none, of an event's replays.
func (a *app) lastAnswer(ctx context.Context, v visitor, e hookglass.Endpoint, caseID, eventID string) (c cases.Check, err error) {
	c.Now = time.Now()
	if caseID != "" {
		runs, err := a.Replays.CaseRuns(ctx, v.who, string(e.ID), caseID, 0, historySize)
		if err != nil {
			return c, err
		}
		for _, run := range runs {
			if run.Response != nil {
				c.Response, c.At = run.Response, run.FinishedAt
				return c, nil
			}
		}
	}
	err = a.DB.View(ctx, v.who, func(view *store.View) error {
		replays, err := view.Replays(string(e.ID), eventID, 0, historySize)
		if hookglass.Is(err, hookglass.CodeNotFound) {
			return nil // the event was deleted
		}
		for _, p := range replays {
			if p.Response != nil {
				c.Response, c.At = p.Response, p.At
				return nil
			}
		}
		return err
	})
	return c, err
}

func (a *app) renderCase(w http.ResponseWriter, r *http.Request, status int, v visitor, e hookglass.Endpoint, m cases.Model) (err error) {
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.ReplayCases, fresh.Script, cases.Script); err != nil {
		return err
	}
	m.Frame.Title = "New replay case · " + e.Name
	id, source := "", m.Form.Event
	if m.Case != nil {
		id, source = m.Case.ID, string(m.Case.SourceID)
		m.Frame.Title = m.Case.Name + " · " + e.Name
		m.Key = "web-" + hookglass.NewSortableID("key", time.Now())
		if m.Runs, err = a.runsOf(r, v, e, id); err != nil {
			return err
		}
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		account, err := view.Account(v.who.Account)
		if err != nil {
			return err
		}
		m.Plan = messageOf(account.Entitlements().MayRegenerateOrResign())
		if m.Source == nil {
			if m.Source, err = view.ListedEvent(string(e.ID), source); hookglass.Is(err, hookglass.CodeNotFound) {
				m.Source, err = nil, nil
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if m.Check, err = a.lastAnswer(r.Context(), v, e, id, source); err != nil {
		return err
	}
	m.Check.Judge(m.Form)
	do := r.PostForm.Get("do")
	m.Check.Asked = do == "check" || do == "take"
	return render(w, r, status, cases.Page(m))
}

// askedRuns is the part of a query that says which runs are shown: the page, and the run that is open.
func askedRuns(q url.Values) string {
	asked := url.Values{}
	for _, name := range []string{"run", "cursor"} {
		if value := q.Get(name); value != "" {
			asked.Set(name, value)
		}
	}
	return asked.Encode()
}

// runsOf reads the history of a case, and the full run that the URL names or else the newest.
func (a *app) runsOf(r *http.Request, v visitor, e hookglass.Endpoint, id string) (h cases.Runs, err error) {
	q := r.URL.Query()
	h = cases.Runs{Endpoint: e.ID, Case: id, Asked: askedRuns(q), Now: time.Now()}
	before, err := place(q.Get("cursor"))
	if err != nil {
		return h, err
	}
	found, err := a.Replays.CaseRuns(r.Context(), v.who, string(e.ID), id, before, historySize+1)
	if err != nil {
		return h, err
	}
	h.Runs, h.Older = firstPage(found, historySize, func(run hookglass.ReplayCaseRun) int64 { return run.Num })
	if named := q.Get("run"); named != "" {
		run, err := a.Replays.CaseRun(r.Context(), v.who, string(e.ID), named)
		if err == nil && run.CaseID == id {
			h.Open = &run
		} else if err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
			return h, err
		}
	}
	if h.Open == nil && len(h.Runs) > 0 {
		h.Open = &h.Runs[0]
	}
	return h, err
}

// caseRuns is the history alone.
func (a *app) caseRuns(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	c, err := a.Replays.Case(r.Context(), v.who, string(e.ID), r.PathValue("case"))
	if err != nil {
		return err
	}
	h, err := a.runsOf(r, v, e, c.ID)
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, cases.History(h))
}

func (a *app) runCase(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	id := r.PathValue("case")
	run, err := a.Replays.RunCase(r.Context(), v.who, string(e.ID), id, r.PostForm.Get("key"))
	if hookglass.Is(err, hookglass.CodeIdempotencyConflict) {
		c, again := a.Replays.Case(r.Context(), v.who, string(e.ID), id)
		if again != nil {
			return again
		}
		return a.renderCase(w, r, http.StatusConflict, v, e, cases.Model{
			Case: &c, Form: cases.FormOf(c), Problem: "This case changed after the page was loaded, so it was not run. Check the current version, then click Run again.",
		})
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/cases/"+id+"?run="+run.ID)
	return nil
}

func (a *app) deleteCase(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	if err := a.Replays.DeleteCase(r.Context(), v.who, string(e.ID), r.PathValue("case")); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/cases?done=deleted")
	return nil
}
