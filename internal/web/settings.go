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
	"hookglass/internal/web/inspector"
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
		m.Notice, m.NoticeAt = notices[r.URL.Query().Get("done")], settings.Parts[0]
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
	m := settings.Model{
		Endpoint: e, Address: a.address(e), General: settings.GeneralOf(e), Answer: settings.AnswerOf(e.Response), Script: settings.ScriptOf(e), Rules: settings.RulesOf(e.ResponseRules), Now: time.Now(),
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
	if faults := faultsOf(err); faults != nil {
		return a.renderSettings(w, r, http.StatusUnprocessableEntity, func(m *settings.Model) {
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
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	if err := readLongForm(w, r); err != nil {
		return err
	}
	if e.Kind == hookglass.KindEmail {
		return a.saveMailScript(w, r, v, e)
	}
	typed := settings.Answer{
		Custom: e.Response != nil, Status: r.PostFormValue("status"), Headers: r.PostFormValue("headers"), Body: strings.ReplaceAll(r.PostFormValue("body"), "\r\n", "\n"), Delay: r.PostFormValue("delay_ms"),
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

// headerLines parses headers that a person typed, one per line.
func headerLines(text string) (map[string]string, error) {
	headers := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, hookglass.Invalid("headers", "must be lines as Name: value")
		}
		headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
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

func (a *app) createConfig(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	id, secret := r.PostFormValue("provider"), r.PostFormValue("secret")
	d := endpoint.SignatureDraft{Provider: &id, Secret: &secret}
	form := configForm(r)
	if id == "generic_hmac" {
		options, err := genericOptions(form)
		if err != nil {
			return a.settle(w, r, err, "", "signatures", func(m *settings.Model) { m.Config = form })
		}
		d.Options = &options
	}
	_, err = a.Endpoints.CreateSignatureConfig(r.Context(), v.who, string(e.ID), d, false)
	if hookglass.Is(err, hookglass.CodeSignatureConfigExists) {
		err = hookglass.Invalid("provider", "already has a secret here; replace it above")
	}
	return a.settle(w, r, err, "created", "signatures", func(m *settings.Model) { m.Config = form })
}

func configForm(r *http.Request) settings.NewConfig {
	return settings.NewConfig{
		Provider: r.PostFormValue("provider"), Tolerance: strings.TrimSpace(r.PostFormValue("tolerance_seconds")),
		Options: hookglass.GenericOptions{
			Header: r.PostFormValue("header"), Algorithm: r.PostFormValue("algorithm"), Encoding: r.PostFormValue("encoding"), Prefix: r.PostFormValue("prefix"),
			PayloadTemplate: r.PostFormValue("payload_template"), TimestampHeader: r.PostFormValue("timestamp_header"), TimestampUnit: r.PostFormValue("timestamp_unit"),
			IDHeader: r.PostFormValue("id_header"), SecretEncoding: r.PostFormValue("secret_encoding"),
		},
	}
}

// genericOptions returns the options of the form. As in the API, a signed timestamp is checked unless 0 is typed.
func genericOptions(c settings.NewConfig) (o hookglass.GenericOptions, err error) {
	o = c.Options
	switch {
	case c.Tolerance != "":
		if o.ToleranceSeconds, err = strconv.Atoi(c.Tolerance); err != nil {
			err = hookglass.Invalid("signature_config.options.tolerance_seconds", "must be a whole number")
		}
	case o.SignsTime():
		o.ToleranceSeconds = hookglass.DefaultTolerance
	}
	return o, err
}

func (a *app) changeConfig(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	id, err := numberIn(r, "config", "signature config")
	if err != nil {
		return err
	}
	ref, done := string(e.ID), "saved"
	switch r.PathValue("do") {
	case "toggle":
		enabled := r.PostFormValue("enabled") == "true"
		_, err = a.Endpoints.UpdateSignatureConfig(r.Context(), v.who, ref, id, endpoint.SignatureDraft{Enabled: &enabled})
	case "secret":
		secret := r.PostFormValue("secret")
		_, err = a.Endpoints.UpdateSignatureConfig(r.Context(), v.who, ref, id, endpoint.SignatureDraft{Secret: &secret, KeepPrevious: r.PostFormValue("keep") == "true"})
		done = "replaced"
	case "rejudge":
		_, err = a.Captures.Rejudge(r.Context(), v.who, ref, id)
		done = "rejudged"
	case "delete":
		err = a.Endpoints.DeleteSignatureConfig(r.Context(), v.who, ref, id)
		done = "deleted"
	default:
		return hookglass.NotFound("page")
	}
	return a.settle(w, r, err, done, "signatures", func(m *settings.Model) { m.AtConfig(id) })
}

func readTarget(r *http.Request) (t settings.NewTarget, d endpoint.TargetDraft, err error) {
	t = settings.NewTarget{Name: r.PostFormValue("name"), URL: strings.TrimSpace(r.PostFormValue("url")), When: strings.TrimSpace(r.PostFormValue("when")), Timeout: r.PostFormValue("timeout_seconds"), Retries: r.PostFormValue("retry_count"),
		RateLimit: strings.TrimSpace(r.PostFormValue("rate_limit")), RatePeriod: r.PostFormValue("rate_period"),
		DedupeBy: strings.TrimSpace(r.PostFormValue("dedupe_by")), DedupeSeconds: strings.TrimSpace(r.PostFormValue("dedupe_seconds")), Seen: r.PostFormValue("seen")}
	if r.PostForm.Has("name") {
		d.Name = &t.Name
	}
	if r.PostForm.Has("url") {
		d.URL = &t.URL
	}
	if r.PostForm.Has("when") {
		d.When = &t.When
	}
	if r.PostForm.Has("headers") {
		text := r.PostFormValue("headers")
		t.Headers = untold(text)
		headers, err := headerLines(text)
		if err != nil {
			return t, d, err
		}
		d.Headers = &headers
	}
	if r.PostForm.Has("enabled") {
		enabled := r.PostFormValue("enabled") == "true"
		d.Enabled = &enabled
	}
	if r.PostForm.Has("paused") {
		paused := r.PostFormValue("paused") == "true"
		d.Paused = &paused
	}
	for _, f := range []struct {
		name, text string
		to         **int64
	}{{"timeout_seconds", t.Timeout, &d.TimeoutSeconds}, {"retry_count", t.Retries, &d.RetryCount}, {"rate_limit", t.RateLimit, &d.RateLimit}, {"dedupe_seconds", t.DedupeSeconds, &d.DedupeSeconds}} {
		if f.text == "" {
			continue
		}
		n, err := strconv.ParseInt(f.text, 10, 64)
		if err != nil {
			return t, d, hookglass.Invalid(f.name, "must be a number")
		}
		*f.to = &n
	}
	switch {
	case !r.PostForm.Has("rate_limit"):
	case t.RateLimit == "":
		d.RateLimit = new(int64) // none
	case *d.RateLimit == 0:
		return t, d, hookglass.Invalid("rate_limit", "must be 1 to %d, or empty for no limit", hookglass.MaxRateLimit)
	case t.RatePeriod != "":
		d.RatePeriod = &t.RatePeriod
	}
	if r.PostForm.Has("dedupe_by") {
		if d.DedupeBy = &t.DedupeBy; t.DedupeBy == "" {
			d.DedupeSeconds = nil // of nothing
		} else if d.DedupeSeconds == nil {
			seconds := int64(hookglass.DefaultDedupeWindow / time.Second)
			d.DedupeSeconds = &seconds
		}
	}
	return t, d, nil
}

// untold returns header lines for a form that is shown again, without the values that were typed: they may be secrets,
// and no page may hold one. A line that is not a header is left out for the same reason.
func untold(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		if b.WriteString(name + ": "); strings.TrimSpace(value) == hookglass.Redacted {
			b.WriteString(hookglass.Redacted)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (a *app) createTarget(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	typed, d, err := readTarget(r)
	if err == nil {
		_, err = a.Endpoints.CreateForwardingTarget(r.Context(), v.who, string(e.ID), d)
	}
	return a.settle(w, r, err, "created", "forwarding", func(m *settings.Model) { m.Target = typed })
}

func (a *app) saveTarget(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	id, err := numberIn(r, "target", "forwarding target")
	if err != nil {
		return err
	}
	typed, d, err := readTarget(r)
	if err == nil {
		var stored hookglass.ForwardingTarget
		if err := a.DB.View(r.Context(), v.who, func(view *store.View) (err error) {
			stored, err = view.ForwardingTarget(string(e.ID), id)
			return err
		}); err != nil {
			return err
		}
		if now := settings.TargetOf(stored).Seen; stale(typed.Seen, now) {
			typed.Seen = now
			return a.renderSettings(w, r, http.StatusConflict, func(m *settings.Model) {
				m.StaleTarget(id)
				m.Target = typed
			})
		}
		_, err = a.Endpoints.UpdateForwardingTarget(r.Context(), v.who, string(e.ID), id, d)
	}
	return a.settle(w, r, err, "saved", "forwarding", func(m *settings.Model) {
		m.AtTarget(id)
		m.Target = typed
	})
}

func (a *app) deleteTarget(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	id, err := numberIn(r, "target", "forwarding target")
	if err != nil {
		return err
	}
	err = a.Endpoints.DeleteForwardingTarget(r.Context(), v.who, string(e.ID), id)
	return a.settle(w, r, err, "deleted", "forwarding", nil)
}

// resendFailed sends all failed deliveries to a target again.
func (a *app) resendFailed(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	id, err := numberIn(r, "target", "forwarding target")
	if err != nil {
		return err
	}
	_, _, err = a.Endpoints.ResendFailed(r.Context(), v.who, string(e.ID), id, time.Time{}, time.Time{})
	return a.settle(w, r, err, "resent", "forwarding", nil)
}

// resendDelivery sends one failed delivery again, and redirects back.
func (a *app) resendDelivery(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	id, err := numberIn(r, "target", "forwarding target")
	if err != nil {
		return err
	}
	f, err := a.Endpoints.ResendDelivery(r.Context(), v.who, string(e.ID), id, hookglass.EventID(r.PathValue("event")))
	if err == nil && r.PostFormValue("at") == "request" {
		redirect(w, r, "/endpoints/"+string(e.ID)+"/requests/"+string(f.EventID)+"?tab="+string(inspector.TabDeliveries))
		return nil
	}
	return a.settle(w, r, err, "resent", "forwarding", nil)
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
