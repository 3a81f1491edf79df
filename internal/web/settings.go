package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/settings"
)

func (a *app) registerSettings() {
	const base = "/endpoints/{endpoint}"
	a.page("GET "+base+"/settings", a.showSettings)
	a.page("POST "+base+"/settings", a.saveSettings)
	a.page("POST "+base+"/response", a.saveResponse)
	a.page("POST "+base+"/response_rules", a.saveRules)
	a.page("POST "+base+"/signatures", a.createConfig)
	a.page("POST "+base+"/signatures/{config}/{do}", a.changeConfig)
	a.page("POST "+base+"/targets", a.createTarget)
	a.page("POST "+base+"/targets/{target}", a.saveTarget)
	a.page("POST "+base+"/targets/{target}/delete", a.deleteTarget)
	a.page("POST "+base+"/targets/{target}/resend", a.resendFailed)
	a.page("POST "+base+"/targets/{target}/deliveries/{event}/resend", a.resendDelivery)
	a.page("POST "+base+"/clear", a.clearEndpoint)
}

// shownDeliveries bounds the deliveries that a target shows.
const shownDeliveries = 10

func (a *app) showSettings(w http.ResponseWriter, r *http.Request) error {
	return a.renderSettings(w, r, http.StatusOK, func(m *settings.Model) {
		m.Notice, m.NoticeAt = notice(r), settings.Parts[0]
		if at := r.URL.Query().Get("at"); slices.Contains(settings.Parts, at) {
			m.NoticeAt = at
		}
	})
}

// renderSettings renders the page; change modifies the model built from what is stored.
func (a *app) renderSettings(w http.ResponseWriter, r *http.Request, status int, change func(*settings.Model)) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	r = answering(r, "/endpoints/"+string(e.ID)+"/settings")
	m := settings.Model{
		Endpoint: e, General: settings.GeneralOf(e), Answer: settings.AnswerOf(e.Response), Script: settings.ScriptOf(e), Rules: settings.RulesOf(e.ResponseRules), Now: time.Now(),
	}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Settings); err != nil {
		return err
	}
	if e.Kind == hookglass.KindWebhook {
		if m.Configs, err = a.Endpoints.SignatureConfigs(r.Context(), v.who, string(e.ID)); err != nil {
			return err
		}
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		account, err := view.Account(v.who.Account)
		if err != nil {
			return err
		}
		may := account.Entitlements()
		m.OnlyOwn, m.Unpaid = messageOf(may.MayConfigureSignature("", e.Provider)), messageOf(may.MayForward())
		if e.Kind == hookglass.KindWebhook {
			newest, err := view.Events(string(e.ID), store.EventList{Limit: pageSize})
			if err != nil {
				return err
			}
			m.Config.Provider = settings.Signer(e, m.Configs, newest.Events)
		}
		targets, err := view.ForwardingTargets(string(e.ID), 0, 0)
		if err != nil {
			return err
		}
		backlogs, err := view.ForwardBacklogs(string(e.ID), targets...)
		if err != nil {
			return err
		}
		for i, t := range targets {
			deliveries, err := view.Forwards(string(e.ID), t.ID, 0, shownDeliveries)
			if err != nil {
				return err
			}
			failed, err := view.FailedForwardsOf(string(e.ID), t.ID, 0, shownDeliveries)
			if err != nil {
				return err
			}
			count, err := view.CountFailedForwards(t, settings.MostFailed)
			if err != nil {
				return err
			}
			m.Targets = append(m.Targets, settings.Target{ForwardingTarget: t, Deliveries: deliveries, Failed: failed, AllFailed: count, Backlog: backlogs[i]})
		}
		return nil
	})
	if err != nil {
		return err
	}
	change(&m)
	return render(w, r, status, settings.Page(m))
}

// settle finishes a form of the page: it redirects to its part with a notice, or renders the page again with the
// errors.
func (a *app) settle(w http.ResponseWriter, r *http.Request, err error, done, part string, typed func(*settings.Model)) error {
	faults, status := faultsOf(err), http.StatusUnprocessableEntity
	if message, refusal := refused(err); faults == nil && message != "" && typed != nil { // such as by the plan
		faults, status = []hookglass.FieldError{{Message: message}}, refusal
	}
	if faults != nil {
		return a.renderSettings(w, r, status, func(m *settings.Model) {
			m.Faults, m.FaultAt = faults, part
			if typed != nil {
				typed(m)
			}
		})
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+r.PathValue("endpoint")+"/settings?done="+done+"&at="+part+"#"+part)
	return nil
}

func (a *app) saveSettings(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	g := settings.General{
		Name: r.PostFormValue("name"), CustomID: strings.TrimSpace(r.PostFormValue("custom_id")), Provider: r.PostFormValue("provider"),
		Enabled: r.PostFormValue("enabled") == "true", Handshake: r.PostFormValue("handshake") == "true", Tunnel: r.PostFormValue("tunnel") == "true",
		Seen: r.PostFormValue("seen"),
	}
	if stored := settings.GeneralOf(e).Seen; stale(g.Seen, stored) {
		g.Seen = stored
		return a.renderSettings(w, r, http.StatusConflict, func(m *settings.Model) { m.General, m.Stale = g, "general" })
	}
	d := endpoint.Draft{Name: &g.Name, Enabled: &g.Enabled}
	if r.PostForm.Has("complete") {
		d.CustomID = &g.CustomID
		if e.Kind == hookglass.KindWebhook {
			mode := hookglass.ResponseStatic
			if g.Tunnel {
				mode = hookglass.ResponseTunnel
			}
			d.Provider, d.ProviderConfig = &g.Provider, &hookglass.ProviderConfig{Handshake: &g.Handshake, ResponseMode: mode}
		}
	}
	_, err = a.Endpoints.Update(r.Context(), v.who, string(e.ID), d)
	return a.settle(w, r, err, "saved", "general", func(m *settings.Model) { m.General = g })
}

// stale reports whether the stored version differs from the one that a form was made of. A form without a version is
// accepted.
func stale(seen, stored string) bool { return seen != "" && seen != stored }

func (a *app) saveResponse(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownLongForm(w, r)
	if err != nil {
		return err
	}
	if e.Kind == hookglass.KindEmail {
		return a.saveMailScript(w, r, v, e)
	}
	typed := settings.Answer{
		Custom: e.Response != nil, Status: r.PostFormValue("status"), Headers: lines(r.PostForm, "headers"), Body: lines(r.PostForm, "body"), Delay: r.PostFormValue("delay_ms"),
		Seen: r.PostFormValue("seen"),
	}
	var response *hookglass.Response
	if r.PostFormValue("do") != "default" {
		if response, err = readResponse(typed); err != nil {
			return a.settle(w, r, err, "", "response", func(m *settings.Model) { m.Answer = typed })
		}
	}
	if r.PostFormValue("do") == "preview" {
		return a.previewResponse(w, r, v, e, response, typed)
	}
	if stored := settings.AnswerOf(e.Response).Seen; stale(typed.Seen, stored) {
		typed.Seen = stored
		return a.renderSettings(w, r, http.StatusConflict, func(m *settings.Model) { m.Answer, m.Stale = typed, "response" })
	}
	_, err = a.Endpoints.Update(r.Context(), v.who, string(e.ID), endpoint.Draft{Response: &response})
	return a.settle(w, r, err, "saved", "response", func(m *settings.Model) { m.Answer = typed })
}

// saveMailScript saves the script of an email endpoint.
func (a *app) saveMailScript(w http.ResponseWriter, r *http.Request, v visitor, e hookglass.Endpoint) error {
	typed := settings.Script{Text: strings.TrimSpace(r.PostFormValue("response_script")), Seen: r.PostFormValue("seen")}
	if stored := settings.ScriptOf(e).Seen; stale(typed.Seen, stored) {
		typed.Seen = stored
		return a.renderSettings(w, r, http.StatusConflict, func(m *settings.Model) { m.Script, m.Stale = typed, "response" })
	}
	_, err := a.Endpoints.Update(r.Context(), v.who, string(e.ID), endpoint.Draft{ResponseScript: &typed.Text})
	return a.settle(w, r, err, "saved", "response", func(m *settings.Model) { m.Script = typed })
}

// readResponse parses the form of an answer. The endpoint capability validates its values.
func readResponse(t settings.Answer) (*hookglass.Response, error) {
	status, err := strconv.Atoi(strings.TrimSpace(t.Status))
	if err != nil {
		return nil, hookglass.Invalid("status", "must be a number")
	}
	delay := 0
	if d := strings.TrimSpace(t.Delay); d != "" {
		if delay, err = strconv.Atoi(d); err != nil {
			return nil, hookglass.Invalid("delay_ms", "must be a number of milliseconds")
		}
	}
	response := &hookglass.Response{Status: status, Body: t.Body, Delay: time.Duration(delay) * time.Millisecond}
	if response.Headers, err = headerLines(t.Headers); err != nil {
		return nil, err
	}
	return response, nil
}

// headerList parses headers that a person typed, one per line.
func headerList(text string) (headers hookglass.Headers, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, hookglass.Invalid("headers", "must be lines as Name: value")
		}
		headers = append(headers, hookglass.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	return headers, nil
}

// headerLines parses headers that a person typed and that have one value each.
func headerLines(text string) (map[string]string, error) {
	list, err := headerList(text)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{}
	for _, h := range list {
		if _, typed := headers[h.Name]; typed {
			return nil, hookglass.Invalid("headers", "names %s twice", h.Name)
		}
		headers[h.Name] = h.Value
	}
	return headers, nil
}

// previewResponse shows how the newest request, or a made-up one, would be answered.
func (a *app) previewResponse(w http.ResponseWriter, r *http.Request, v visitor, e hookglass.Endpoint, response *hookglass.Response, typed settings.Answer) error {
	event, to, err := a.newest(r.Context(), v, e)
	if err != nil {
		return err
	}
	reply := capture.PreviewResponse(response, event)
	return a.renderSettings(w, r, http.StatusOK, func(m *settings.Model) {
		if !typed.Same(m.Answer) {
			m.Unsaved = "response"
		}
		m.Answer, m.Preview = typed, &settings.Preview{Reply: reply, To: to}
	})
}

func (a *app) newest(ctx context.Context, v visitor, e hookglass.Endpoint) (event *hookglass.Event, name string, err error) {
	event, err = a.Captures.Hold(holding(ctx, v.who), v.who, eventTimes, func(view *store.View) (*hookglass.Event, error) {
		page, err := view.Events(string(e.ID), store.EventList{Limit: 1})
		if err != nil || len(page.Events) == 0 {
			return nil, err
		}
		return view.Event(string(e.ID), string(page.Events[0].ID))
	})
	if err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
		return nil, "", err
	}
	if event != nil {
		return event, "the newest request", nil
	}
	now := time.Now()
	return &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, now), Type: hookglass.EventWebhook, Method: http.MethodPost, Path: "/", ReceivedAt: now,
		Payload: &hookglass.Payload{Body: []byte("{}")},
	}, "an empty POST request", nil
}

// clearEndpoint deletes all requests of an endpoint.
func (a *app) clearEndpoint(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	if _, err := a.Captures.DeleteRange(r.Context(), v.who, string(e.ID), time.Time{}, time.Time{}); err != nil {
		return err
	}
	redirect(w, r, "/endpoints/"+string(e.ID)+"?done=delete")
	return nil
}
