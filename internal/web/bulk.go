package web

import (
	"bufio"
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/httpd"
	"hookglass/internal/query"
	"hookglass/internal/replay"
	"hookglass/internal/web/inspector"
)

// maxPicked bounds how many requests a form can name.
const maxPicked = 1000

func (a *app) bulk(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	ref, ids, do := string(e.ID), r.PostForm["id"], r.PostFormValue("do")
	if len(ids) == 0 || len(ids) > maxPicked {
		return hookglass.Errorf(hookglass.CodeValidationFailed, "Select 1 to 1,000 requests first.")
	}
	if do == "tag" && r.PostFormValue("tag") == "" && r.PostFormValue("target_url") != "" {
		do = "replay" // Enter beside the target presses the first button of the form, where no script presses the right one
	}
	if do != "delete" && do != "export" && !v.signedIn() {
		return hookglass.Errorf(hookglass.CodeForbidden, "Sign in and keep this endpoint first.")
	}
	switch do {
	case "export":
		if r.PostFormValue("format") == "eml" {
			return a.exportMail(w, r, v, e, ids)
		}
		return a.exportPicked(w, r, v, e, ids)
	case "compare":
		if len(ids) != 2 {
			return hookglass.Errorf(hookglass.CodeValidationFailed, "Select two requests to compare them.")
		}
		redirect(w, r, "/endpoints/"+ref+"/compare?"+url.Values{"left": {ids[1]}, "right": {ids[0]}}.Encode())
		return nil
	case "replay":
		if len(ids) > 1 {
			slices.Sort(ids) // oldest first
			b, err := a.Replays.CreateBatch(r.Context(), v.who, ref, replay.BatchRequest{Events: ids, WhatIsLeft: true, TargetURL: strings.TrimSpace(r.PostFormValue("target_url"))})
			if err != nil {
				return err
			}
			redirect(w, r, "/endpoints/"+ref+"/replay_batches/"+b.ID)
			return nil
		}
	}
	last, err := a.doToEach(r, v, ref, ids, do)
	if err != nil {
		return err
	}
	switch {
	case last == "" && do != "delete":
		return hookglass.Errorf(hookglass.CodeNotFound, "None of the selected requests exists any more. Reload the page.")
	case do == "replay":
		redirect(w, r, inspector.List{Endpoint: e.ID, Query: r.URL.Query().Get("q")}.Path("/requests/"+last, "tab", "replays"))
		return nil
	}
	redirect(w, r, backTo(r, e, "done", do))
	return nil
}

// doToEach applies an action to each request that still exists, and returns the last one.
func (a *app) doToEach(r *http.Request, v visitor, ref string, ids []string, do string) (last string, err error) {
	for _, id := range ids {
		switch do {
		case "tag":
			_, err = a.Captures.Tag(r.Context(), v.who, ref, id, strings.TrimSpace(r.PostFormValue("tag")))
		case "ignore":
			err = a.Captures.Ignore(r.Context(), v.who, ref, id, "")
		case "delete":
			err = a.Captures.Delete(r.Context(), v.who, ref, id)
		case "replay":
			_, err = a.Replays.Replay(r.Context(), v.who, ref, id, replay.Request{TargetURL: strings.TrimSpace(r.PostFormValue("target_url"))})
		default:
			return "", hookglass.Invalid("do", "is nothing that can be done")
		}
		if hookglass.Is(err, hookglass.CodeNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return "", err
		}
		last = id
	}
	return last, nil
}

// export gives what a search finds as a file.
func (a *app) export(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	q, err := query.Filter{Q: r.FormValue("q")}.Parse(a.DB.Now())
	if err != nil {
		return err
	}
	return a.writeExport(w, r, v, e, func(add func(*hookglass.Event) error) error {
		return a.Captures.EachReported(r.Context(), v.who, string(e.ID), q, add)
	})
}

func (a *app) exportPicked(w http.ResponseWriter, r *http.Request, v visitor, e hookglass.Endpoint, ids []string) error {
	return a.writeExport(w, r, v, e, func(add func(*hookglass.Event) error) error {
		return a.Captures.Picked(r.Context(), v.who, string(e.ID), ids, add)
	})
}

// exportMail gives one mail as its sender sent it.
func (a *app) exportMail(w http.ResponseWriter, r *http.Request, v visitor, e hookglass.Endpoint, ids []string) error {
	if len(ids) != 1 {
		return hookglass.Errorf(hookglass.CodeValidationFailed, "An eml file holds one mail. Choose mbox for several.")
	}
	event, err := a.held(r.Context(), v, e, ids[0], 1)
	if err != nil {
		return err
	}
	if event.Type != hookglass.EventEmail {
		return hookglass.Errorf(hookglass.CodeValidationFailed, "Webhooks cannot be exported as eml. Choose another format.")
	}
	download(w, "message/rfc822", string(event.ID)+".eml")
	_, err = w.Write(event.Body)
	return err
}

// writeExport writes the file while it reads. An error after the beginning breaks the connection, so that the file does
// not look complete.
func (a *app) writeExport(w http.ResponseWriter, r *http.Request, v visitor, e hookglass.Endpoint, each func(func(*hookglass.Event) error) error) error {
	format := cmp.Or(r.FormValue("format"), "ndjson")
	out := bufio.NewWriterSize(w, 64<<10)
	file, err := capture.NewExport(format, out, func(e *hookglass.Event) any { return capture.Detail(e) })
	if err != nil {
		return err
	}
	if err := a.Captures.MayExport(r.Context(), v.who); err != nil {
		return err
	}
	download(w, file.MediaType(), string(e.ID)+"."+format)
	_ = http.NewResponseController(w).Flush() // a search may find nothing for long: let the browser show that the download has begun
	err = each(file.Add)
	if err == nil {
		err = file.Close()
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		httpd.BrokeOff(r.Context(), err)
		panic(http.ErrAbortHandler)
	}
	return nil
}
