package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/redact"
	"hookglass/internal/store"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/settings"
)

// readTarget reads the form of a target. Its faults are texts that the draft cannot hold.
func readTarget(r *http.Request) (t settings.NewTarget, d endpoint.TargetDraft, faults []hookglass.FieldError) {
	t = settings.NewTarget{Name: r.PostFormValue("name"), URL: strings.TrimSpace(r.PostFormValue("url")), When: strings.TrimSpace(r.PostFormValue("when")), Timeout: r.PostFormValue("timeout_seconds"), Retries: r.PostFormValue("retry_count"),
		RateLimit: strings.TrimSpace(r.PostFormValue("rate_limit")), RatePeriod: r.PostFormValue("rate_period"),
		DedupeBy: strings.TrimSpace(r.PostFormValue("dedupe_by")), DedupeSeconds: strings.TrimSpace(r.PostFormValue("dedupe_seconds")), Seen: r.PostFormValue("seen")}
	fault := func(field, format string, args ...any) {
		faults = append(faults, hookglass.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	number := func(field, text string, to **int64) {
		if text == "" {
			return
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			fault(field, "must be a number")
			return
		}
		*to = &n
	}
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
		t.Headers, t.Withheld = shownAgain(text)
		if headers, err := headerLines(text); err != nil {
			faults = append(faults, faultsOf(err)...)
		} else {
			d.Headers = &headers
		}
	}
	if r.PostForm.Has("enabled") {
		d.Enabled = new(r.PostFormValue("enabled") == "true")
	}
	if r.PostForm.Has("paused") {
		d.Paused = new(r.PostFormValue("paused") == "true")
	}
	number("timeout_seconds", t.Timeout, &d.TimeoutSeconds)
	number("retry_count", t.Retries, &d.RetryCount)
	number("rate_limit", t.RateLimit, &d.RateLimit)
	switch {
	case !r.PostForm.Has("rate_limit"):
	case t.RateLimit == "":
		d.RateLimit = new(int64) // none
	case d.RateLimit == nil: // no number
	case *d.RateLimit == 0:
		fault("rate_limit", "must be 1 to %d, or empty for no limit", hookglass.MaxRateLimit)
		d.RateLimit = nil
	case t.RatePeriod != "":
		d.RatePeriod = &t.RatePeriod
	}
	if r.PostForm.Has("dedupe_by") {
		if d.DedupeBy = &t.DedupeBy; t.DedupeBy != "" { // else the window is one of nothing
			d.DedupeSeconds = new(int64(hookglass.DefaultDedupeWindow / time.Second))
			number("dedupe_seconds", t.DedupeSeconds, &d.DedupeSeconds)
		}
	}
	return t, d, faults
}

// shownAgain returns header lines for a form that is shown again, as they were typed but for the values that may be
// secrets, which no page may hold: it returns the names of these. Of a line that is no header nothing can be told, so
// it is left out and counts as a name that is empty.
func shownAgain(text string) (lines string, withheld []string) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case line == "":
			continue
		case !ok:
			withheld = append(withheld, "")
			continue
		case value != hookglass.Redacted && mayBeSecret(name, value):
			withheld = append(withheld, name)
			value = ""
		}
		b.WriteString(name + ": " + value + "\n")
	}
	return b.String(), withheld
}

// mayBeSecret reports whether the value of a header that was typed may be a secret: its name says so, or it is as long
// as keys are.
func mayBeSecret(name, value string) bool {
	known := func(word string) bool { return strings.Contains(strings.ToLower(name), word) }
	return len(value) >= shortestKey || redact.SensitiveHeader(name) || slices.ContainsFunc([]string{"key", "secret", "token", "pass", "auth", "cred", "sign", "session"}, known)
}

// shortestKey is the length from which on a value may be a key.
const shortestKey = 16

func (a *app) createTarget(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownForm(w, r)
	if err != nil {
		return err
	}
	typed, d, faults := readTarget(r)
	if len(faults) > 0 {
		err = a.Endpoints.CheckTarget(d, faults)
	} else {
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
	typed, d, faults := readTarget(r)
	if len(faults) > 0 {
		err = a.Endpoints.CheckTarget(d, faults)
	} else {
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
		if d.Enabled != nil || d.Paused != nil { // a button, with nothing typed
			typed = settings.TargetOf(stored)
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
