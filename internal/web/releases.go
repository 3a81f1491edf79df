package web

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"hookglass"
	"hookglass/internal/web/show"
)

// releaseMail releases a mail and redirects to the result.
func (a *app) releaseMail(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownerForm(w, r)
	if err != nil {
		return err
	}
	to := strings.FieldsFunc(r.PostFormValue("to"), func(c rune) bool { return c == ',' || c == ';' || unicode.IsSpace(c) })
	if _, err := a.Releases.Release(r.Context(), v.who, string(e.ID), r.PathValue("event"), to); err != nil {
		return ofOneField(err, to)
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/requests/"+r.PathValue("event")+"?tab=releases")
	return nil
}

// ofOneField rewrites the errors of addresses that were typed into one field, where their indexes mean nothing.
func ofOneField(err error, to []string) error {
	var refused *hookglass.Error
	if !errors.As(err, &refused) || len(refused.Details) == 0 {
		return err
	}
	sentences := make([]string, len(refused.Details))
	for i, d := range refused.Details {
		_, number, _ := strings.Cut(d.Field, ".")
		switch n, err := strconv.Atoi(number); {
		case refused.Code == hookglass.CodeRecipientNotAllowed: // its message names the address
			sentences[i] = d.Message + "."
		case err == nil && n < len(to):
			sentences[i] = fmt.Sprintf("%s %s.", show.Line(to[n]), d.Message)
		default:
			sentences[i] = "The form " + d.Message + "."
		}
	}
	return &hookglass.Error{Code: refused.Code, Message: strings.Join(sentences, " ")}
}
