package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/settings"
)

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
	if err := readNumbers(&d, t); err != nil {
		return t, d, err
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

// readNumbers sets the numbers that were typed, as far as there are any.
func readNumbers(d *endpoint.TargetDraft, t settings.NewTarget) error {
	for _, f := range []struct {
		name, text string
		to         **int64
	}{{"timeout_seconds", t.Timeout, &d.TimeoutSeconds}, {"retry_count", t.Retries, &d.RetryCount}, {"rate_limit", t.RateLimit, &d.RateLimit}, {"dedupe_seconds", t.DedupeSeconds, &d.DedupeSeconds}} {
		if f.text == "" {
			continue
		}
		n, err := strconv.ParseInt(f.text, 10, 64)
		if err != nil {
			return hookglass.Invalid(f.name, "must be a number")
		}
		*f.to = &n
	}
	return nil
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
