package web

import (
	"net/http"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/web/settings"
)

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
	return a.settle(w, r, err, "verifies", "signatures", func(m *settings.Model) { m.Config = form })
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
		_, err = a.Endpoints.UpdateSignatureConfig(r.Context(), v.who, ref, id, endpoint.SignatureDraft{Enabled: new(r.PostFormValue("enabled") == "true")})
	case "secret":
		_, err = a.Endpoints.UpdateSignatureConfig(r.Context(), v.who, ref, id, endpoint.SignatureDraft{Secret: new(r.PostFormValue("secret")), KeepPrevious: r.PostFormValue("keep") == "true"})
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
