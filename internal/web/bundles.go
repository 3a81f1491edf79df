package web

import (
	"errors"
	"net/http"
	"strings"

	"hookglass"
	"hookglass/internal/share"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/layout"
	page "hookglass/internal/web/share"
)

// bundleFile is the name under which a bundle is stored.
const bundleFile = "hookglass-bundle.json"

// showBundle shows what a bundle of a request would replace.
func (a *app) showBundle(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.owner(r)
	if err != nil {
		return err
	}
	event, err := a.listed(r.Context(), v, e, r.PathValue("event"))
	if err != nil {
		return err
	}
	m := page.BundleModel{
		Path: "/endpoints/" + string(e.ID) + "/requests/" + string(event.ID), Title: event.Method + " " + inspector.Title(event),
		Pointers: r.FormValue("pointers"), Keep: r.FormValue("keep"),
	}
	b, err := a.Shares.Bundle(r.Context(), v.who, string(e.ID), wantedBundle(r, event.ID))
	var refused *hookglass.Error
	status := http.StatusOK
	switch {
	case err == nil:
		m.Replaced, m.Signed, m.Unsigned = b.Replaced, b.Events[0].Signature, b.Events[0].Unsigned
	case errors.As(err, &refused) && refused.Code != hookglass.CodeInternal && refused.Code != hookglass.CodeNotFound:
		if m.Fault = refused.Message; len(refused.Details) > 0 {
			m.Fault = "A path " + refused.Details[0].Message + "."
		}
		status = http.StatusUnprocessableEntity
	default:
		return err
	}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Requests); err != nil {
		return err
	}
	m.Frame.Title = "Share bundle · " + e.Name
	return render(w, r, status, page.BundlePage(m))
}

// makeBundle gives the file.
func (a *app) makeBundle(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownerForm(w, r)
	if err != nil {
		return err
	}
	event, err := a.listed(r.Context(), v, e, r.PathValue("event"))
	if err != nil {
		return err
	}
	b, err := a.Shares.Bundle(r.Context(), v.who, string(e.ID), wantedBundle(r, event.ID))
	if _, ok := errors.AsType[*hookglass.Error](err); ok {
		return a.showBundle(w, r) // which says what is wrong
	}
	if err != nil {
		return err
	}
	download(w, "application/json", bundleFile)
	if err := b.File(b.At).Write(w); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func wantedBundle(r *http.Request, event hookglass.EventID) share.Wanted {
	return share.Wanted{Events: []string{string(event)}, Pointers: textLines(r.FormValue("pointers")), Keep: textLines(r.FormValue("keep"))}
}

// textLines are the lines of a text that hold something.
func textLines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}
