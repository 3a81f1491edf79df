package web

import (
	"errors"
	"net/http"
	"strings"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/tags"
)

func (a *app) registerTags() {
	a.page("GET /tags", a.showTags)
	a.page("POST /tags", a.createTag)
	a.page("POST /tags/{tag}", a.changeTag)
	a.page("POST /tags/{tag}/delete", a.deleteTag)
}

func (a *app) showTags(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	return a.renderTags(w, r, http.StatusOK, v, tags.Model{Notice: notice(r)})
}

func (a *app) renderTags(w http.ResponseWriter, r *http.Request, status int, v visitor, m tags.Model) (err error) {
	if m.Frame, err = a.globalFrame(r.Context(), v, layout.Tags, "Tags"); err != nil {
		return err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		return eachWorkspace(view, v, func(ws hookglass.Workspace) error {
			found, err := view.Tags(ws.ID, 0, 0)
			m.Workspaces = append(m.Workspaces, tags.Workspace{Workspace: ws, Tags: found})
			return err
		})
	})
	if err != nil {
		return err
	}
	return render(w, r, status, tags.Page(m))
}

func (a *app) createTag(w http.ResponseWriter, r *http.Request) error {
	v, m, err := a.tagForm(w, r)
	if err != nil {
		return err
	}
	d := endpoint.TagDraft{Name: &m.Form.Name, Color: &m.Form.Color}
	if m.Form.Workspace, err = workspaceIn(r); err != nil {
		return err
	} else if m.Form.Workspace != 0 {
		d.WorkspaceID = &m.Form.Workspace
	}
	_, err = a.Endpoints.CreateTag(r.Context(), v.who, d)
	return a.tagSet(w, r, v, m, err, "created")
}

func (a *app) changeTag(w http.ResponseWriter, r *http.Request) error {
	v, m, err := a.tagForm(w, r)
	if err != nil {
		return err
	}
	stored, err := store.Read(r.Context(), a.DB, v.who, func(view *store.View) (hookglass.Tag, error) {
		return view.Tag(m.Form.Tag)
	})
	if err != nil {
		return err
	}
	if stale(r.PostFormValue("seen"), tags.Mark(stored)) {
		m.Form.Stale = true
		return a.renderTags(w, r, http.StatusConflict, v, m)
	}
	_, err = a.Endpoints.UpdateTag(r.Context(), v.who, m.Form.Tag, endpoint.TagDraft{Name: &m.Form.Name, Color: &m.Form.Color})
	return a.tagSet(w, r, v, m, err, "saved")
}

func (a *app) deleteTag(w http.ResponseWriter, r *http.Request) error {
	v, m, err := a.tagForm(w, r)
	if err != nil {
		return err
	}
	return a.tagSet(w, r, v, tags.Model{}, a.Endpoints.DeleteTag(r.Context(), v.who, m.Form.Tag), "deleted")
}

func (a *app) tagForm(w http.ResponseWriter, r *http.Request) (v visitor, m tags.Model, err error) {
	if v, err = a.user(r); err != nil {
		return v, m, err
	}
	if r.PathValue("tag") != "" {
		if m.Form.Tag, err = numberIn(r, "tag", "tag"); err != nil {
			return v, m, err
		}
	}
	err = readForm(w, r)
	m.Form.Name, m.Form.Color = strings.TrimSpace(r.PostFormValue("name")), r.PostFormValue("color")
	return v, m, err
}

// tagSet finishes a form: it redirects to the list, or shows the page with the error. If steps use the tag, they are
// named.
func (a *app) tagSet(w http.ResponseWriter, r *http.Request, v visitor, m tags.Model, err error, done string) error {
	if m.Form.Faults = faultsOf(err); m.Form.Faults != nil {
		return a.renderTags(w, r, http.StatusUnprocessableEntity, v, m)
	}
	if message, status := refused(err); message != "" {
		m.Problem, m.References, m.Form = message, referencesOf(err), tags.Form{}
		return a.renderTags(w, r, status, v, m)
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/tags?done="+done)
	return nil
}

// referencesOf are the steps that a conflict names.
func referencesOf(err error) (all []hookglass.StepReference) {
	var e *hookglass.Error
	if !errors.As(err, &e) {
		return nil
	}
	found, _ := e.Extra["references"].([]map[string]any) // other conflicts have none
	for _, f := range found {
		text := func(name string) string { s, _ := f[name].(string); return s }
		all = append(all, hookglass.StepReference{EndpointID: hookglass.EndpointID(text("endpoint_id")), ActionID: text("action_id"), ActionName: text("action_name"), Step: text("step")})
	}
	return all
}
