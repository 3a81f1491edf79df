package web

import (
	"net/http"
	"strings"

	"hookglass"
	"hookglass/internal/inspect"
	"hookglass/internal/store"
	"hookglass/internal/web/compare"
	"hookglass/internal/web/layout"
)

func (a *app) compare(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	m := compare.Model{Path: "/endpoints/" + string(e.ID)}
	left, right := strings.TrimSpace(r.FormValue("left")), strings.TrimSpace(r.FormValue("right"))
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if m.Left, err = view.Event(string(e.ID), left); err != nil {
			return err
		}
		if right == "" {
			page, err := view.Events(string(e.ID), store.EventList{Limit: 1, Before: m.Left.Seq})
			if err != nil {
				return err
			}
			if len(page.Events) == 0 {
				return hookglass.Errorf(hookglass.CodeNotFound, "There is no request before this one to compare it with.")
			}
			right = string(page.Events[0].ID)
		}
		m.Right, err = view.Event(string(e.ID), right)
		return err
	})
	if err != nil {
		return err
	}
	m.Comparison = inspect.Compare(m.Left, m.Right)
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Requests); err != nil {
		return err
	}
	m.Frame.Title = "Compare · " + e.Name
	return render(w, r, http.StatusOK, compare.Page(m))
}
