package web

import (
	"net/http"
	"net/url"
)

func (a *app) saveSearch(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownerForm(w, r)
	if err != nil {
		return err
	}
	saved, err := a.Endpoints.SaveSearch(r.Context(), v.who, string(e.ID), r.PostFormValue("name"), r.PostFormValue("q"))
	if err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"?"+url.Values{"q": {saved.Query}, "done": {"saved"}}.Encode())
	return nil
}

func (a *app) deleteSearch(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.owner(r)
	if err != nil {
		return err
	}
	id, err := numberIn(r, "search", "search")
	if err != nil {
		return err
	}
	if err := a.Endpoints.DeleteSearch(r.Context(), v.who, string(e.ID), id); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"?done=deleted")
	return nil
}
