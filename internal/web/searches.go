package web

import (
	"net/http"
	"net/url"
	"strconv"

	"hookglass"
)

func (a *app) saveSearch(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.owner(r)
	if err != nil {
		return err
	}
	if err := readForm(w, r); err != nil {
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
	id, err := strconv.ParseInt(r.PathValue("search"), 10, 64)
	if err != nil {
		return hookglass.NotFound("search")
	}
	if err := a.Endpoints.DeleteSearch(r.Context(), v.who, string(e.ID), id); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"?done=deleted")
	return nil
}
