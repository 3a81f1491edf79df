package web

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/web/flows"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/layout"
)

func (a *app) registerFlows() {
	a.page("GET /flows", a.listFlows)
	a.part("GET /flows/rows", ofUser(a, a.flowsOf, flows.Rows))
	a.page("GET /flows/new", a.newFlow)
	a.page("POST /flows/new", a.createFlow)
	a.page("GET /flows/{flow}", a.showFlow)
	a.part("GET /flows/{flow}/state", ofUser(a, a.flowOf, flows.Live))
	a.page("POST /flows/{flow}/delete", a.deleteFlow)
}

func (a *app) listFlows(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	m := flows.ListModel{Notice: notice(r)}
	if m.Frame, err = a.globalFrame(r.Context(), v, layout.Flows, "Flows", fresh.Script); err != nil {
		return err
	}
	if m.List, err = a.flowsOf(r, v); err != nil {
		return err
	}
	return render(w, r, http.StatusOK, flows.ListPage(m))
}

func (a *app) flowsOf(r *http.Request, v visitor) (l flows.List, err error) {
	l = flows.List{State: hookglass.FlowState(r.FormValue("state")), At: r.FormValue("cursor"), Now: time.Now()}
	if l.State != "" && !slices.Contains(flows.States, l.State) {
		return l, hookglass.Invalid("state", "must be pending, passed, failed or expired")
	}
	before, err := place(l.At)
	if err != nil {
		return l, err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		found, err := view.Flows(l.State, before, pageSize+1)
		l.Flows, l.Older = firstPage(found, pageSize, func(f hookglass.Flow) int64 { return f.Num })
		return err
	})
	return l, err
}

func (a *app) showFlow(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	m := flows.Model{}
	if m.One, err = a.flowOf(r, v); err != nil {
		return err
	}
	if m.Frame, err = a.globalFrame(r.Context(), v, layout.Flows, "Flow · "+m.Flow.Plan.Name, fresh.Script); err != nil {
		return err
	}
	return render(w, r, http.StatusOK, flows.Page(m))
}

func (a *app) flowOf(r *http.Request, v visitor) (one flows.One, err error) {
	one = flows.One{Now: time.Now(), Names: make(map[hookglass.EndpointID]string)}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if one.Flow, err = view.Flow(r.PathValue("flow")); err != nil {
			return err
		}
		for _, s := range one.Flow.Plan.Steps {
			e, err := view.Endpoint(string(s.EndpointID))
			if err != nil && !hookglass.Is(err, hookglass.CodeNotFound) { // deleted meanwhile
				return err
			}
			one.Names[s.EndpointID] = e.Name
		}
		return nil
	})
	return one, err
}

// newFlow is the form, with the steps of another flow where one is named.
func (a *app) newFlow(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	form := flows.NewForm()
	if id := r.FormValue("from"); id != "" {
		err := a.DB.View(r.Context(), v.who, func(view *store.View) error {
			f, err := view.Flow(id)
			form = flows.FormOf(f.Plan)
			return err
		})
		if err != nil {
			return err
		}
	}
	return a.renderFlowForm(w, r, http.StatusOK, v, form)
}

func (a *app) renderFlowForm(w http.ResponseWriter, r *http.Request, status int, v visitor, form flows.Form) (err error) {
	m := flows.NewModel{Form: form}
	if m.Frame, err = a.globalFrame(r.Context(), v, layout.Flows, "New flow"); err != nil {
		return err
	}
	m.Form.Endpoints = slices.DeleteFunc(slices.Clone(m.Frame.Endpoints), func(e hookglass.Endpoint) bool { return e.WorkspaceID == 0 })
	return render(w, r, status, flows.NewPage(m))
}

func (a *app) createFlow(w http.ResponseWriter, r *http.Request) error {
	v, err := a.userForm(w, r)
	if err != nil {
		return err
	}
	form := flows.ReadForm(r.PostForm)
	switch change := r.PostFormValue("change"); change {
	case "":
	case "more":
		return a.renderFlowForm(w, r, http.StatusOK, v, form.More())
	default:
		step, err := strconv.Atoi(change)
		if err != nil {
			return hookglass.Invalid("change", "must be more or the place of a step")
		}
		return a.renderFlowForm(w, r, http.StatusOK, v, form.Less(step))
	}
	d, faults := form.Draft(a.DB.Now())
	if len(faults) == 0 {
		f, err := a.Flows.Create(r.Context(), v.who, d, "")
		if err == nil {
			redirect(w, r, "/flows/"+f.ID)
			return nil
		}
		if faults = faultsOf(err); faults == nil {
			return err
		}
	}
	form.Faults = faults
	return a.renderFlowForm(w, r, http.StatusUnprocessableEntity, v, form)
}

func (a *app) deleteFlow(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	if err := a.Flows.Delete(r.Context(), v.who, r.PathValue("flow")); err != nil {
		return err
	}
	redirect(w, r, "/flows?done=deleted")
	return nil
}
