package web

import (
	"net/http"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/web/cases"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/layout"
	page "hookglass/internal/web/tunnel"
)

const (
	shownGaps    = 50
	shownMissing = 25
)

func (a *app) registerTunnel() {
	const base = "/endpoints/{endpoint}/tunnel"
	a.page("GET "+base, a.showTunnel)
	a.part("GET "+base+"/state", ofEndpoint(a, a.tunnelState, page.Live))
	a.page("POST "+base+"/gaps/{gap}/recovery", a.recountGap)
}

func (a *app) showTunnel(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	m := page.Model{Server: a.Addresses.PublicURL, Notice: notice(r)}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Tunnel, fresh.Script); err != nil {
		return err
	}
	if m.State, err = a.tunnelState(r, v, e); err != nil {
		return err
	}
	return render(w, r, http.StatusOK, page.Page(m))
}

func (a *app) tunnelState(r *http.Request, v visitor, e hookglass.Endpoint) (s page.State, err error) {
	s = page.State{Endpoint: e.ID, Title: cases.Title, Now: time.Now()}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if s.Connections, err = view.TunnelConnections(string(e.ID)); err != nil {
			return err
		}
		s.Gaps, err = view.GapHistory(string(e.ID), shownGaps)
		return err
	})
	if err != nil {
		return s, err
	}
	if gap := r.URL.Query().Get("gap"); gap != "" {
		missing, err := a.Tunnels.InGap(r.Context(), v.who, []string{string(e.ID)}, gap, 0, shownMissing)
		if hookglass.Is(err, hookglass.CodeNotFound) {
			return s, nil // all its events were purged, and the gap with them
		}
		if err != nil {
			return s, err
		}
		s.Chosen, s.Missing, s.More = gap, missing.Events, missing.Next > 0
	}
	return s, nil
}

// recountGap recomputes the state of an outage from the stored reports.
func (a *app) recountGap(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	if _, err := a.Tunnels.Recount(r.Context(), v.who, r.PathValue("gap")); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/tunnel?done=recounted")
	return nil
}
