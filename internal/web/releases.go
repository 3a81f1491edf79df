package web

import (
	"net/http"
	"strings"
	"unicode"
)

// releaseMail sends a mail on and goes on to what came of it.
func (a *app) releaseMail(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.owner(r)
	if err != nil {
		return err
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	to := strings.FieldsFunc(r.PostFormValue("to"), func(c rune) bool { return c == ',' || c == ';' || unicode.IsSpace(c) })
	if _, err := a.Releases.Release(r.Context(), v.who, string(e.ID), r.PathValue("event"), to); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/requests/"+r.PathValue("event")+"?tab=releases")
	return nil
}
