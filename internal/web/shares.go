package web

import (
	"net/http"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/share"
)

func (a *app) showShares(w http.ResponseWriter, r *http.Request) error {
	return a.renderShares(w, r, http.StatusOK, "", "")
}

func (a *app) renderShares(w http.ResponseWriter, r *http.Request, status int, link, fault string) error {
	v, e, err := a.owner(r)
	if err != nil {
		return err
	}
	event, err := a.listed(r.Context(), v, e, r.PathValue("event"))
	if err != nil {
		return err
	}
	path := "/endpoints/" + string(e.ID) + "/requests/" + string(event.ID)
	m := share.Model{Path: path, Title: event.Method + " " + inspector.Title(event), Link: link, Fault: fault, Notice: notice(r), Now: time.Now()}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Requests); err != nil {
		return err
	}
	m.Frame.Title = "Share · " + e.Name
	if m.Shares, err = a.Shares.List(r.Context(), v.who, string(e.ID), store.ShareList{Event: string(event.ID)}); err != nil {
		return err
	}
	return render(w, r, status, share.Page(m))
}

func (a *app) createShare(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownerForm(w, r)
	if err != nil {
		return err
	}
	life, err := time.ParseDuration(r.PostFormValue("expires"))
	if err != nil {
		return a.renderShares(w, r, http.StatusUnprocessableEntity, "", "Choose when the link expires.")
	}
	secret, _, err := a.Shares.Create(r.Context(), v.who, string(e.ID), r.PathValue("event"), life)
	if faults := faultsOf(err); faults != nil {
		return a.renderShares(w, r, http.StatusUnprocessableEntity, "", "The lifetime of the link "+faults[0].Message+".")
	}
	if err != nil {
		return err
	}
	return a.renderShares(w, r, http.StatusCreated, a.Addresses.Shared(secret), "")
}

func (a *app) revokeShare(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.owner(r)
	if err != nil {
		return err
	}
	id, err := numberIn(r, "share", "share link")
	if err != nil {
		return err
	}
	if err := a.Shares.Revoke(r.Context(), v.who, string(e.ID), id); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/requests/"+escape(r.PathValue("event"))+"/share?done=unshared")
	return nil
}

// shared is what anybody with a link sees.
func (a *app) shared(w http.ResponseWriter, r *http.Request) error {
	mayZip(r) // the link's holder may see everything on the page
	event, link, err := a.Shares.Open(holding(r.Context(), hookglass.System), r.PathValue("secret"))
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return hookglass.Errorf(hookglass.CodeNotFound, "This link no longer works: it expired, was revoked, or the request was deleted.")
	}
	if err != nil {
		return err
	}
	w.Header().Set("X-Robots-Tag", "noindex")
	d := inspector.NewDetail(inspector.List{Place: cursor, Now: time.Now()}, event)
	return render(w, r, http.StatusOK, share.Shared(share.SharedModel{Frame: a.frame(visitor{}, event.Method+" "+inspector.Title(event)), Detail: d, Share: link}))
}
