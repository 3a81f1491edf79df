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
	both, err := a.Captures.HoldAll(holding(r.Context(), v.who), v.who, eventTimes, func(view *store.View) ([]*hookglass.Event, error) {
		first, err := view.Event(string(e.ID), left)
		if err != nil {
			return nil, err
		}
		other := right
		if other == "" {
			page, err := view.Events(string(e.ID), store.EventList{Limit: 100, Before: first.Seq})
			if err != nil {
				return nil, err
			}
			if len(page.Events) == 0 {
				return nil, hookglass.Errorf(hookglass.CodeNotFound, "There is no earlier request to compare this one with.")
			}
			other = string(previous(first, page.Events).ID)
		}
		second, err := view.Event(string(e.ID), other)
		return []*hookglass.Event{first, second}, err
	})
	if err != nil {
		return err
	}
	m.Left, m.Right = both[0], both[1]
	m.Comparison = inspect.Compare(m.Left, m.Right)
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Requests); err != nil {
		return err
	}
	m.Frame.Title = "Compare · " + e.Name
	return render(w, r, http.StatusOK, compare.Page(m))
}

// previous returns the newest of earlier requests that is of the same kind, or the newest of all.
func previous(of *hookglass.Event, earlier []*hookglass.Event) *hookglass.Event {
	for _, e := range earlier {
		if e.Provider == of.Provider && e.EventType == of.EventType && e.Method == of.Method && e.Path == of.Path {
			return e
		}
	}
	return earlier[0]
}
