package web

import (
	"bufio"
	"context"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/delivery"
	"hookglass/internal/email"
	"hookglass/internal/inspect"
	"hookglass/internal/query"
	"hookglass/internal/replay"
	"hookglass/internal/store"
	"hookglass/internal/web/compare"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/share"
)

func (a *app) registerRequests() {
	const base = "/endpoints/{endpoint}"
	const one = base + "/requests/{event}"
	a.page("GET "+one+"/row", a.row)
	a.page("GET "+one+"/find", a.find)
	a.page("GET "+one+"/html", a.mailHTML)
	a.page("GET "+one+"/attachments/{index}", a.attachment)
	a.page("GET "+one+"/parts/{index}", a.bodyPart)
	a.page("POST "+one+"/replay", a.replay)
	a.page("POST "+one+"/tags", a.marks(func(r *http.Request, who hookglass.Principal, ref, id string) error {
		_, err := a.Captures.Tag(r.Context(), who, ref, id, strings.TrimSpace(r.PostFormValue("tag")))
		return err
	}))
	a.page("POST "+one+"/untag", a.marks(func(r *http.Request, who hookglass.Principal, ref, id string) error {
		_, err := a.Captures.Untag(r.Context(), who, ref, id, r.PostFormValue("tag"))
		return err
	}))
	a.page("POST "+one+"/ignore", a.marks(func(r *http.Request, who hookglass.Principal, ref, id string) error {
		return a.Captures.Ignore(r.Context(), who, ref, id, r.PostFormValue("reason"))
	}))
	a.page("POST "+one+"/unignore", a.marks(func(r *http.Request, who hookglass.Principal, ref, id string) error {
		return a.Captures.Unignore(r.Context(), who, ref, id)
	}))
	a.page("GET "+one+"/share", a.showShares)
	a.page("POST "+one+"/share", a.createShare)
	a.page("POST "+one+"/share/{share}/revoke", a.revokeShare)
	a.page("GET /shared/{secret}", a.shared)
	a.page("GET "+base+"/compare", a.compare)
	a.page("GET "+base+"/export", a.export)
	a.page("POST "+base+"/bulk", a.bulk)
	a.page("POST "+base+"/searches", a.saveSearch)
	a.page("POST "+base+"/searches/{search}/delete", a.deleteSearch)
	a.page("POST "+base+"/claim", a.claim)
}

// owner is who looks at an endpoint as a signed-in user who may change what it holds. The holder of a temporary endpoint's
// key may not.
func (a *app) owner(r *http.Request) (visitor, hookglass.Endpoint, error) {
	v, e, err := a.open(r)
	if err == nil && !v.signedIn() {
		err = hookglass.Errorf(hookglass.CodeForbidden, "Sign in and keep this endpoint to do that.")
	}
	return v, e, err
}

// marks changes one mark of a request and goes back to it.
func (a *app) marks(change func(r *http.Request, who hookglass.Principal, ref, id string) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, e, err := a.owner(r)
		if err != nil {
			return err
		}
		if err := readForm(w, r); err != nil {
			return err
		}
		if err := change(r, v.who, string(e.ID), r.PathValue("event")); err != nil {
			return err
		}
		redirect(w, r, "/endpoints/"+string(e.ID)+"/requests/"+r.PathValue("event"))
		return nil
	}
}

// row is a request as the list has it, after something about it changed.
func (a *app) row(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	event, err := a.event(r.Context(), v, e, r.PathValue("event"))
	if err != nil {
		return err
	}
	l := inspector.List{Endpoint: e.ID, Place: cursor, Now: time.Now(), Query: r.FormValue("q"), Writes: v.signedIn()}
	return render(w, r, http.StatusOK, inspector.Row(l, event))
}

// find lists the places of a JSON body that have a text.
func (a *app) find(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	text := r.FormValue("text")
	if text == "" || len(text) > 200 {
		return hookglass.Invalid("text", "must have 1 to 200 bytes")
	}
	event, err := a.event(r.Context(), v, e, r.PathValue("event"))
	if err != nil {
		return err
	}
	found, more := inspector.Find(event.Body, event.Headers.Get("Content-Encoding"), text)
	return render(w, r, http.StatusOK, inspector.FoundIn(found, more))
}

// fill reads what a detail shows besides the event itself.
func (a *app) fill(ctx context.Context, v visitor, e hookglass.Endpoint, d *inspector.Detail) error {
	ref, id := string(e.ID), string(d.Event.ID)
	d.Writes, d.Tunnel = v.signedIn(), e.TunnelActive
	if d.Mail == nil && (d.Event.SignatureStatus != hookglass.SignatureUnchecked || d.Event.Provider != hookglass.UnknownProvider) {
		s, err := a.Captures.Signature(ctx, v.who, ref, id)
		if err != nil {
			return err
		}
		d.Signature = &inspector.Signature{Status: s.Now.Status, Reason: s.Now.Reason, Message: s.Now.Message, Code: s.Finding.Code, Finding: s.Finding.Message}
	}
	return a.DB.View(ctx, v.who, func(view *store.View) (err error) {
		if d.Reports, err = view.Reports(d.Event.Seq, shownOutcomes); err != nil {
			return err
		}
		if !v.signedIn() {
			return nil
		}
		targets, err := view.ForwardingTargets(ref, 0, 0)
		if err != nil {
			return err
		}
		for _, t := range targets {
			f, evidence, err := view.Forward(ref, t.ID, d.Event.ID)
			if hookglass.Is(err, hookglass.CodeNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			d.Forwards = append(d.Forwards, inspector.Forward{Target: t, Forward: f, Evidence: evidence})
		}
		if d.Runs, err = view.EventActionRuns(d.Event.Seq, shownOutcomes); err != nil {
			return err
		}
		if len(d.Runs) > 0 {
			actions, err := view.Actions(ref, 0, 0)
			if err != nil {
				return err
			}
			d.Actions = make(map[string]string, len(actions))
			for _, action := range actions {
				d.Actions[action.ID] = action.Name
			}
		}
		if d.Replays, err = view.Replays(ref, id, 0, shownOutcomes); err != nil {
			return err
		}
		for _, p := range d.Replays {
			d.Targets = append(d.Targets, p.TargetURL)
		}
		for _, t := range targets {
			d.Targets = append(d.Targets, t.URL)
		}
		slices.Sort(d.Targets[min(1, len(d.Targets)):]) // the last one stays the first to be offered
		d.Targets = slices.Compact(d.Targets)
		if e.WorkspaceID != 0 {
			d.Tags, err = view.Tags(e.WorkspaceID, 0, 100)
		}
		return err
	})
}

// shownOutcomes bounds each list of what became of a request.
const shownOutcomes = 50

// replay sends a request again and goes on to what came of it.
func (a *app) replay(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.owner(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxReplayForm)
	if err := r.ParseForm(); err != nil {
		return hookglass.Errorf(hookglass.CodeValidationFailed, "The form could not be read.")
	}
	id := r.PathValue("event")
	event, err := a.event(r.Context(), v, e, id)
	if err != nil {
		return err
	}
	ask := replay.Request{TargetURL: strings.TrimSpace(r.PostFormValue("target_url")), Identity: r.PostFormValue("identity_mode"), Signature: r.PostFormValue("signature_mode")}
	if event.Type == hookglass.EventWebhook {
		ask.Overrides = overrides(event, r.PostForm)
	}
	if _, err := a.Replays.Replay(r.Context(), v.who, string(e.ID), id, ask); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/requests/"+string(event.ID)+"?tab=replays")
	return nil
}

// maxReplayForm bounds the form of a replay, whose body may be edited.
const maxReplayForm = 512 << 10

// overrides are what a form changed of a request: what it left as it was is sent as it was, byte for byte.
func overrides(e *hookglass.Event, form url.Values) (o delivery.Overrides) {
	if method := form.Get("method"); method != "" && method != e.Method {
		o.Method = &method
	}
	if q := form.Get("query"); q != "" {
		o.Query = &q
	}
	if form.Has("headers") {
		o.Headers = changedHeaders(inspector.EditableHeaders(e.Headers), form.Get("headers"))
	}
	if form.Has("body") {
		// A form's text has CRLF line ends, whatever the body had.
		body := strings.ReplaceAll(form.Get("body"), "\r\n", "\n")
		if body != strings.ReplaceAll(string(e.Body), "\r\n", "\n") {
			o.Body = &body
		}
	}
	return o
}

func changedHeaders(before hookglass.Headers, text string) map[string]*string {
	var after hookglass.Headers
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && strings.TrimSpace(name) != "" {
			after = append(after, hookglass.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
		}
	}
	changed := map[string]*string{}
	for _, h := range after {
		if !slices.Equal(before.Values(h.Name), after.Values(h.Name)) {
			value := strings.Join(after.Values(h.Name), ", ")
			changed[h.Name] = &value
		}
	}
	for _, h := range before {
		if !after.Has(h.Name) {
			changed[h.Name] = nil
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return changed
}

// mailHTML is the HTML of a mail as its sender wrote it, in a response of its own that runs nothing and, unless it is asked
// for, loads nothing.
func (a *app) mailHTML(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	event, err := a.event(r.Context(), v, e, r.PathValue("event"))
	if err != nil {
		return err
	}
	if event.Type != hookglass.EventEmail {
		return hookglass.NotFound("message")
	}
	remote := ""
	loads := r.FormValue("remote") == "1"
	if loads {
		remote = " https: http:"
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; script-src 'none'; style-src 'unsafe-inline'"+remote+"; img-src data:"+remote+
		"; font-src data:"+remote+"; form-action 'none'; base-uri 'none'; frame-ancestors 'self'")
	_, _ = w.Write([]byte(inspector.MailHTML(event.Body, loads))) // nobody is left to tell
	return nil
}

func (a *app) attachment(w http.ResponseWriter, r *http.Request) error {
	return a.file(w, r, func(event *hookglass.Event, n int) ([]byte, string, error) {
		if event.Type != hookglass.EventEmail {
			return nil, "", hookglass.NotFound("attachment")
		}
		content, file, err := email.Attachment(event.Body, n)
		return content, file.Filename, err
	})
}

func (a *app) bodyPart(w http.ResponseWriter, r *http.Request) error {
	return a.file(w, r, func(event *hookglass.Event, n int) ([]byte, string, error) {
		content, name, ok := inspector.PartOf(event.Body, event.ContentType, n)
		if !ok {
			return nil, "", hookglass.NotFound("part")
		}
		return content, name, nil
	})
}

// file gives a part of a request as a download that no browser takes for a page.
func (a *app) file(w http.ResponseWriter, r *http.Request, part func(*hookglass.Event, int) ([]byte, string, error)) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(r.PathValue("index"))
	if err != nil {
		return hookglass.NotFound("part")
	}
	event, err := a.event(r.Context(), v, e, r.PathValue("event"))
	if err != nil {
		return err
	}
	content, name, err := part(event, n)
	if err != nil {
		return err
	}
	download(w, "application/octet-stream", name)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // nobody is left to tell
	return nil
}

// download sets the headers of a file to be kept, not shown.
func download(w http.ResponseWriter, media, name string) {
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": name})
	if disposition == "" {
		disposition = "attachment" // a name that can not be said is better left out than all of it
	}
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Disposition", disposition)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
}

// ---- Links to one request

func (a *app) showShares(w http.ResponseWriter, r *http.Request) error {
	return a.renderShares(w, r, http.StatusOK, "", "")
}

func (a *app) renderShares(w http.ResponseWriter, r *http.Request, status int, link, fault string) error {
	v, e, err := a.owner(r)
	if err != nil {
		return err
	}
	event, err := a.event(r.Context(), v, e, r.PathValue("event"))
	if err != nil {
		return err
	}
	path := "/endpoints/" + string(e.ID) + "/requests/" + string(event.ID)
	m := share.Model{Path: path, Title: event.Method + " " + inspector.Title(event), Link: link, Fault: fault, Notice: notices[r.URL.Query().Get("done")], Now: time.Now()}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Requests); err != nil {
		return err
	}
	m.Frame.Title = "Share · " + e.Name
	if m.Shares, err = a.Shares.List(r.Context(), v.who, string(e.ID), string(event.ID)); err != nil {
		return err
	}
	return render(w, r, status, share.Page(m))
}

func (a *app) createShare(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.owner(r)
	if err != nil {
		return err
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	life, err := time.ParseDuration(r.PostFormValue("expires"))
	if err != nil {
		return a.renderShares(w, r, http.StatusUnprocessableEntity, "", "Choose when the link expires.")
	}
	secret, _, err := a.Shares.Create(r.Context(), v.who, string(e.ID), r.PathValue("event"), life)
	if faults := faultsOf(err); faults != nil {
		return a.renderShares(w, r, http.StatusUnprocessableEntity, "", "The life of a link "+faults[0].Message+".")
	}
	if err != nil {
		return err
	}
	return a.renderShares(w, r, http.StatusCreated, strings.TrimRight(a.Addresses.PublicURL, "/")+"/shared/"+secret, "")
}

func (a *app) revokeShare(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.owner(r)
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(r.PathValue("share"), 10, 64)
	if err != nil {
		return hookglass.NotFound("share")
	}
	if err := a.Shares.Revoke(r.Context(), v.who, string(e.ID), id); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/requests/"+r.PathValue("event")+"/share?done=deleted")
	return nil
}

// shared is what anybody with a link sees.
func (a *app) shared(w http.ResponseWriter, r *http.Request) error {
	event, link, err := a.Shares.Open(r.Context(), r.PathValue("secret"))
	if err != nil {
		return err
	}
	w.Header().Set("X-Robots-Tag", "noindex")
	d := inspector.NewDetail(inspector.List{Place: cursor, Now: time.Now()}, event)
	return render(w, r, http.StatusOK, share.Shared(share.SharedModel{Frame: a.frame(visitor{}, event.Method+" "+d.Title()), Detail: d, Share: link}))
}

// ---- Two requests

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

// ---- Several requests

// maxPicked bounds how many requests a form can name.
const maxPicked = 1000

// maxReplays bounds how many requests one form replays, and replaysWithin how long that may take.
const (
	maxReplays    = 20
	replaysWithin = time.Minute
)

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
	if do != "delete" && do != "export" && !v.signedIn() {
		return hookglass.Errorf(hookglass.CodeForbidden, "Sign in and keep this endpoint to do that.")
	}
	switch do {
	case "export":
		return a.exportPicked(w, r, v, e, ids)
	case "compare":
		if len(ids) != 2 {
			return hookglass.Errorf(hookglass.CodeValidationFailed, "Select two requests to compare them.")
		}
		redirect(w, r, "/endpoints/"+ref+"/compare?"+url.Values{"left": {ids[1]}, "right": {ids[0]}}.Encode())
		return nil
	case "replay":
		if len(ids) > maxReplays {
			return hookglass.Errorf(hookglass.CodeValidationFailed, "Select at most 20 requests to replay them.")
		}
		slices.Sort(ids) // oldest first
	}
	ctx, cancel := context.WithTimeout(r.Context(), replaysWithin)
	defer cancel()
	for _, id := range ids {
		switch do {
		case "tag":
			_, err = a.Captures.Tag(ctx, v.who, ref, id, strings.TrimSpace(r.PostFormValue("tag")))
		case "ignore":
			err = a.Captures.Ignore(ctx, v.who, ref, id, "")
		case "delete":
			err = a.Captures.Delete(ctx, v.who, ref, id)
		case "replay":
			_, err = a.Replays.Replay(ctx, v.who, ref, id, replay.Request{TargetURL: strings.TrimSpace(r.PostFormValue("target_url"))})
		default:
			return hookglass.Invalid("do", "is nothing that can be done")
		}
		if hookglass.Is(err, hookglass.CodeNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
	}
	if do == "replay" {
		redirect(w, r, "/endpoints/"+ref+"/requests/"+ids[len(ids)-1]+"?tab=replays")
		return nil
	}
	redirect(w, r, "/endpoints/"+ref+"?done="+do)
	return nil
}

// export gives what a search finds as a file.
func (a *app) export(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	q, err := query.Filter{Q: r.FormValue("q")}.Parse(time.Now())
	if err != nil {
		return err
	}
	return a.writeExport(w, r, e, func(add func(*hookglass.Event) error) error {
		return a.DB.EachEvent(r.Context(), v.who, string(e.ID), q, add)
	})
}

func (a *app) exportPicked(w http.ResponseWriter, r *http.Request, v visitor, e hookglass.Endpoint, ids []string) error {
	return a.writeExport(w, r, e, func(add func(*hookglass.Event) error) error {
		for _, id := range ids {
			event, err := a.event(r.Context(), v, e, id)
			if hookglass.Is(err, hookglass.CodeNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if err := add(event); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeExport writes the file while it reads. What fails when a part is out breaks the connection, so that the file does
// not look whole.
func (a *app) writeExport(w http.ResponseWriter, r *http.Request, e hookglass.Endpoint, each func(func(*hookglass.Event) error) error) error {
	format := r.FormValue("format")
	if format == "" {
		format = "ndjson"
	}
	out := bufio.NewWriterSize(w, 64<<10)
	file, err := capture.NewExport(format, out, func(e *hookglass.Event) any { return capture.Detail(e) })
	if err != nil {
		return err
	}
	download(w, file.MediaType(), string(e.ID)+"."+format)
	control := http.NewResponseController(w)
	err = each(func(event *hookglass.Event) error {
		_ = control.SetWriteDeadline(time.Now().Add(writeLimit)) // not every writer has deadlines, as in tests
		return file.Add(event)
	})
	if err == nil {
		err = file.Close()
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// ---- Saved searches, and a temporary endpoint that is kept

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

// claim makes the temporary endpoint of this browser the signed-in user's.
func (a *app) claim(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	holder, ok := a.keyHolder(r)
	if !ok || string(holder.who.Endpoint) != r.PathValue("endpoint") {
		return hookglass.NotFound("endpoint")
	}
	e, err := a.Endpoints.Claim(r.Context(), v.who, holder.who, nil, nil)
	if err != nil {
		return err
	}
	a.setCookie(w, r, temporaryCookie, "", time.Unix(0, 0))
	redirect(w, r, "/endpoints/"+string(e.ID)+"?done=claimed")
	return nil
}
