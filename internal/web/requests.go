package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/delivery"
	"hookglass/internal/paste"
	"hookglass/internal/replay"
	"hookglass/internal/store"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/layout"
)

func (a *app) registerRequests() {
	const base = "/endpoints/{endpoint}"
	const one = base + "/requests/{event}"
	a.part("GET "+one+"/row", a.row)
	a.part("GET "+one+"/marks", a.marked)
	a.part("GET "+one+"/deliveries", a.deliveries)
	a.part("GET "+one+"/authentication", a.authentication)
	a.part("GET "+one+"/find", a.find)
	a.page("GET "+one+"/html", a.mailHTML)
	a.page("GET "+one+"/attachments/{index}", a.attachment)
	a.page("GET "+one+"/parts/{index}", a.bodyPart)
	a.page("POST "+one+"/replay", a.replay)
	a.page("POST "+one+"/release", a.releaseMail)
	a.page("POST "+one+"/times", a.times)
	a.page("GET "+one+"/bundle", a.showBundle)
	a.page("POST "+one+"/bundle", a.makeBundle)
	a.page("POST "+one+"/tags", a.marks(func(r *http.Request, who hookglass.Principal, ref, id string) error {
		_, err := a.Captures.Tag(r.Context(), who, ref, id, strings.TrimSpace(r.PostFormValue("tag")))
		return err
	}))
	a.page("POST "+one+"/untag", a.marks(func(r *http.Request, who hookglass.Principal, ref, id string) error {
		_, err := a.Captures.Untag(r.Context(), who, ref, id, r.PostFormValue("tag"))
		return err
	}))
	a.page("POST "+one+"/note", a.marks(a.note))
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

// owner finds a signed-in user who may change the content of an endpoint. The holder of a temporary endpoint's key may
// not.
func (a *app) owner(r *http.Request) (visitor, hookglass.Endpoint, error) {
	v, e, err := a.open(r)
	if err == nil && !v.signedIn() {
		err = hookglass.Errorf(hookglass.CodeForbidden, "Sign in and keep this endpoint first.")
	}
	return v, e, err
}

// ownerForm is owner for a request with a form, which it reads.
func (a *app) ownerForm(w http.ResponseWriter, r *http.Request) (visitor, hookglass.Endpoint, error) {
	v, e, err := a.owner(r)
	if err == nil {
		err = readForm(w, r)
	}
	return v, e, err
}

// marks changes one mark of a request and redirects back to it.
func (a *app) marks(change func(r *http.Request, who hookglass.Principal, ref, id string) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, e, err := a.ownerForm(w, r)
		if err != nil {
			return err
		}
		if err := change(r, v.who, string(e.ID), r.PathValue("event")); err != nil {
			return err
		}
		redirect(w, r, "/endpoints/"+string(e.ID)+"/requests/"+r.PathValue("event"))
		return nil
	}
}

// note writes a note on a request, unless another wrote one since the page was shown.
func (a *app) note(r *http.Request, who hookglass.Principal, ref, id string) error {
	stored, err := store.Read(r.Context(), a.DB, who, func(view *store.View) (*hookglass.Event, error) {
		return view.ListedEvent(ref, id)
	})
	if err != nil {
		return err
	}
	if stale(r.PostFormValue("seen"), inspector.NoteMark(stored)) {
		return hookglass.Errorf(hookglass.CodeConflict, "Somebody else changed this note. Copy your text, reload the page and edit the new note.")
	}
	return a.Captures.SetNote(r.Context(), who, ref, id, r.PostFormValue("note"))
}

// row serves the list row of a request after it was changed.
func (a *app) row(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	var event *hookglass.Event
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if event, err = view.ListedEvent(string(e.ID), r.PathValue("event")); err != nil {
			return err
		}
		return view.LoadFailed([]*hookglass.Event{event})
	})
	if err != nil {
		return err
	}
	l := inspector.List{Endpoint: e.ID, Place: cursor, Now: time.Now(), Query: r.FormValue("q")}
	return render(w, r, http.StatusOK, inspector.Row(l, event))
}

// marked serves the marks of an open request, which others may have changed.
func (a *app) marked(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	event, err := a.listed(r.Context(), v, e, r.PathValue("event"))
	if hookglass.Is(err, hookglass.CodeNotFound) { // what is read stays, and says so
		return render(w, r, http.StatusOK, inspector.Gone(true))
	}
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, inspector.Marks(inspector.NewMarks(e.ID, event, v.signedIn())))
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
	found, more := inspector.Find(event.Body, event.ContentType, coding.Of(event.Headers), text)
	return render(w, r, http.StatusOK, inspector.FoundIn(found, more))
}

// fill reads what a detail shows besides the event itself.
func (a *app) fill(ctx context.Context, v visitor, e hookglass.Endpoint, d *inspector.Detail) error {
	ref, id := string(e.ID), string(d.Event.ID)
	d.Writes, d.Tunnel, d.Reports = v.signedIn(), e.TunnelActive, d.Event.Reports
	if a.Releases.On() {
		d.ReleaseTo = a.Releases.Recipients.Entries()
	}
	if d.Mail == nil && (d.Event.SignatureStatus != hookglass.SignatureUnchecked || d.Event.Provider != hookglass.UnknownProvider) {
		s, err := a.Captures.SignatureOf(ctx, v.who, ref, d.Event)
		if err != nil {
			return err
		}
		d.Signature = &inspector.Signature{Status: s.Now.Status, Message: s.Now.Message, Code: s.Finding.Code, Finding: s.Finding.Message}
	}
	return a.DB.View(ctx, v.who, func(view *store.View) (err error) {
		targets, err := outcomes(view, v, ref, d)
		if err != nil || !v.signedIn() {
			return err
		}
		if d.Replays, err = view.Replays(ref, id, 0, shownOutcomes); err != nil {
			return err
		}
		if d.Mail != nil {
			if d.Releases, err = view.Releases(ref, id, 0, shownOutcomes); err != nil {
				return err
			}
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

// outcomes reads, for signed-in users, what the service did with a request, and the forwarding targets.
func outcomes(view *store.View, v visitor, ref string, d *inspector.Detail) (targets []hookglass.ForwardingTarget, err error) {
	if !v.signedIn() {
		return nil, nil
	}
	if targets, err = view.ForwardingTargets(ref, 0, 0); err != nil {
		return nil, err
	}
	for _, t := range targets {
		f, evidence, err := view.Forward(ref, t.ID, d.Event.ID)
		if hookglass.Is(err, hookglass.CodeNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d.Forwards = append(d.Forwards, inspector.Forward{Target: t, Forward: f, Evidence: evidence})
	}
	if d.Runs, err = view.EventActionRuns(d.Event.Seq, shownOutcomes); err != nil || len(d.Runs) == 0 {
		return targets, err
	}
	actions, err := view.Actions(ref, 0, 0)
	if err != nil {
		return nil, err
	}
	d.Actions = make(map[string]string, len(actions))
	for _, action := range actions {
		d.Actions[action.ID] = action.Name
	}
	return targets, nil
}

// deliveries are what became of a request by now.
func (a *app) deliveries(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	event, err := a.listed(r.Context(), v, e, r.PathValue("event"))
	if hookglass.Is(err, hookglass.CodeNotFound) { // what is read stays, and says so
		return render(w, r, http.StatusOK, inspector.NoDeliveries())
	}
	if err != nil {
		return err
	}
	d := inspector.NewOutcomes(e.ID, event, time.Now())
	d.Writes = v.signedIn()
	size, err := store.Read(r.Context(), a.DB, v.who, func(view *store.View) (int64, error) {
		return view.ReportsSize(event.Seq)
	})
	if err == nil {
		err = a.Captures.RoomFor(holding(r.Context(), v.who), v.who, eventTimes*size)
	}
	if err != nil {
		return err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if d.Reports, err = view.Reports(event.Seq, shownOutcomes); err != nil {
			return err
		}
		_, err := outcomes(view, v, string(e.ID), d)
		return err
	})
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, inspector.Deliveries(d))
}

// authentication is what the checks of a mail have found by now.
func (a *app) authentication(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	event, err := a.listed(r.Context(), v, e, r.PathValue("event"))
	if err == nil && event.Type != hookglass.EventEmail {
		err = hookglass.NotFound("request") // not a mail
	}
	if err == nil && event.Authentication.DMARC != hookglass.AuthPending {
		event, err = a.event(r.Context(), v, e, r.PathValue("event"))
	}
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, inspector.Authentication(inspector.NewAuthentication(e.ID, event)))
}

// shownOutcomes bounds each list of what became of a request.
const shownOutcomes = 50

// replay replays a request and redirects to the result.
func (a *app) replay(w http.ResponseWriter, r *http.Request) error {
	v, e, event, ask, err := a.readReplay(w, r)
	if err != nil {
		return err
	}
	if _, err := a.Replays.Replay(r.Context(), v.who, string(e.ID), string(event.ID), ask); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"/requests/"+string(event.ID)+"?tab=replays")
	return nil
}

// times shows what moving the times of a request would change. Nothing is sent.
func (a *app) times(w http.ResponseWriter, r *http.Request) error {
	v, e, event, ask, err := a.readReplay(w, r)
	if err != nil {
		return err
	}
	ask.TimeShift, ask.DryRun = "now", true
	ask.TargetURL = cmp.Or(ask.TargetURL, hookglass.TunnelTarget) // the form may still be empty
	would, err := a.Replays.Replay(r.Context(), v.who, string(e.ID), string(event.ID), ask)
	if err != nil {
		return err
	}
	m := inspector.TimesModel{
		Path: "/endpoints/" + string(e.ID) + "/requests/" + string(event.ID), Of: event.Method + " " + inspector.Title(event),
		Changes: would.TimeChanges, Signature: would.Options.Signature, Warnings: would.Warnings,
	}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Requests); err != nil {
		return err
	}
	m.Frame.Title = "Move timestamps · " + e.Name
	return render(w, r, http.StatusOK, inspector.TimeChanges(m))
}

// readReplay reads the form of a replay.
func (a *app) readReplay(w http.ResponseWriter, r *http.Request) (v visitor, e hookglass.Endpoint, event *hookglass.Event, ask replay.Request, err error) {
	if v, e, err = a.owner(r); err != nil {
		return v, e, nil, ask, err
	}
	if err := readFormUpTo(w, r, maxReplayForm); err != nil {
		return v, e, nil, ask, err
	}
	if event, err = a.event(r.Context(), v, e, r.PathValue("event")); err != nil {
		return v, e, nil, ask, err
	}
	ask = replay.Request{
		TargetURL: strings.TrimSpace(r.PostFormValue("target_url")), Identity: r.PostFormValue("identity_mode"), Signature: r.PostFormValue("signature_mode"), TimeShift: r.PostFormValue("time_shift"),
	}
	if event.Type == hookglass.EventWebhook {
		ask.Overrides, err = overrides(event, r.PostForm)
	}
	return v, e, event, ask, err
}

// maxReplayForm bounds the form of a replay, whose body may be edited.
const maxReplayForm = 512 << 10

// overrides returns what the form changed of a request. Unchanged parts are sent byte for byte.
func overrides(e *hookglass.Event, form url.Values) (o delivery.Overrides, err error) {
	if method := form.Get("method"); method != "" && method != e.Method {
		o.Method = &method
	}
	if q := form.Get("query"); q != "" {
		o.Query = &q
	}
	if form.Has("headers") {
		typed, err := headerList(form.Get("headers"))
		if err != nil {
			return o, err
		}
		o.Headers = changedHeaders(paste.EditableHeaders(e.Headers), typed)
	}
	if form.Has("body") {
		body := string(e.Body)
		if typed := plainLines.Replace(form.Get("body")); typed != plainLines.Replace(body) {
			typed = strings.ReplaceAll(typed, "\n", lineEnd(body))
			o.Body = &typed
		}
	}
	return o, nil
}

// plainLines ends lines with LF. A browser ends those of a form with CRLF, whatever ended them in the page.
var plainLines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// lineEnd returns the line end of a text, if all are the same.
func lineEnd(text string) string {
	both := strings.Count(text, "\r\n")
	switch cr, lf := strings.Count(text, "\r"), strings.Count(text, "\n"); {
	case both > 0 && both == cr && both == lf:
		return "\r\n"
	case cr > 0 && lf == 0:
		return "\r"
	}
	return "\n"
}

func changedHeaders(before, after hookglass.Headers) map[string]*string {
	changed := map[string]*string{}
	for _, h := range after {
		if !slices.Equal(before.Values(h.Name), after.Values(h.Name)) {
			changed[h.Name] = new(strings.Join(after.Values(h.Name), ", "))
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
