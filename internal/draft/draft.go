// Package draft turns what was sent into what a capability takes: it tells what is absent from what is null, and
// refuses null where a field has none. It hides how the contract spells the two. Pure.
package draft

import (
	"fmt"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/endpoint"
)

// Endpoint reads an endpoint that is to be made or changed. It answers validation_failed, as all here do.
func Endpoint(e *api.NewEndpoint) (endpoint.Draft, error) {
	var faults []hookglass.FieldError
	d := endpoint.Draft{
		Name:           Given(&faults, "endpoint.name", e.Name, false),
		CustomID:       Given(&faults, "endpoint.custom_id", e.CustomID, true),
		Provider:       Given(&faults, "endpoint.provider", e.Provider, true),
		EmailLocalPart: Given(&faults, "endpoint.email_local_part", e.EmailLocalPart, true),
		Enabled:        Given(&faults, "endpoint.enabled", e.Enabled, false),
		ResponseScript: Given(&faults, "endpoint.response_script", e.ResponseScript, true),
		SchemaTracking: Given(&faults, "endpoint.schema_tracking", e.SchemaTracking, false),
		WorkspaceID:    Given(&faults, "endpoint.workspace_id", e.WorkspaceID, true),
	}
	for _, f := range []struct {
		field string
		value api.Optional[string]
	}{{"endpoint.custom_id", e.CustomID}, {"endpoint.email_local_part", e.EmailLocalPart}, {"endpoint.provider", e.Provider}} {
		if f.value.Set && !f.value.Null && f.value.Value == "" { // null is how one says none
			faults = append(faults, hookglass.FieldError{Field: f.field, Message: "may not be empty"})
		}
	}
	if kind := Given(&faults, "endpoint.kind", e.Kind, false); kind != nil {
		d.Kind = (*hookglass.EndpointKind)(kind)
	}
	if config := Given(&faults, "endpoint.provider_config", e.ProviderConfig, false); config != nil {
		d.ProviderConfig = new(config.Domain())
	}
	if e.Response.Set {
		var r *hookglass.Response
		if !e.Response.Null {
			r = e.Response.Value.Domain()
		}
		d.Response = &r
	}
	d.ResponseRules = Rules(e.ResponseRules)
	if e.WorkspaceID.Null {
		d.WorkspaceID = nil
	}
	return d, hookglass.Refusal(faults, nil)
}

// Rules reads rules of answers; nil where none are named, and no rules where they are null.
func Rules(o api.Optional[[]api.ResponseRule]) *[]hookglass.ResponseRule {
	if !o.Set {
		return nil
	}
	rules := make([]hookglass.ResponseRule, 0, len(o.Value))
	for _, r := range o.Value {
		rules = append(rules, r.Domain())
	}
	return &rules
}

// Signature reads a signature config.
func Signature(c api.SignatureConfigChange) (d endpoint.SignatureDraft, err error) {
	var faults []hookglass.FieldError
	const in = "signature_config."
	d.Provider = Given(&faults, in+"provider", c.Provider, false)
	d.Secret = Given(&faults, in+"secret", c.Secret, false)
	d.Enabled = Given(&faults, in+"enabled", c.Enabled, false)
	if keep := Given(&faults, in+"keep_previous", c.KeepPrevious, false); keep != nil {
		d.KeepPrevious = *keep
	}
	if o := Given(&faults, in+"options", c.Options, false); o != nil {
		d.Options, d.NamesOptions = new(o.Domain()), *o != (api.GenericOptions{})
	}
	return d, hookglass.Refusal(faults, nil)
}

// Target reads a forwarding target.
func Target(c api.NewForwardingTarget) (endpoint.TargetDraft, error) {
	return TargetChange(api.ForwardingTargetChange{Name: c.Name, URL: c.URL, Enabled: c.Enabled, TimeoutSeconds: c.TimeoutSeconds, RetryCount: c.RetryCount,
		When: c.When, Headers: c.Headers, RateLimit: c.RateLimit, RatePeriod: c.RatePeriod,
		DedupeBy: c.DedupeBy, DedupeSeconds: c.DedupeSeconds})
}

// TargetChange reads what to change of a forwarding target.
func TargetChange(c api.ForwardingTargetChange) (d endpoint.TargetDraft, err error) {
	var faults []hookglass.FieldError
	const in = "forwarding_target."
	d.Name = Given(&faults, in+"name", c.Name, false)
	d.URL = Given(&faults, in+"url", c.URL, false)
	d.When = Given(&faults, in+"when", c.When, true)
	if !c.Headers.Null { // which keeps those there are
		d.Headers = Given(&faults, in+"headers", c.Headers, false)
	}
	d.Enabled = Given(&faults, in+"enabled", c.Enabled, false)
	d.Paused = Given(&faults, in+"paused", c.Paused, false)
	d.TimeoutSeconds = Given(&faults, in+"timeout_seconds", c.TimeoutSeconds, false)
	d.RetryCount = Given(&faults, in+"retry_count", c.RetryCount, false)
	d.RateLimit, d.RatePeriod = rate(&faults, c.RateLimit, c.RatePeriod)
	d.DedupeBy, d.DedupeSeconds = dedupe(&faults, c.DedupeBy, c.DedupeSeconds)
	return d, hookglass.Refusal(faults, nil)
}

// rate reads the bound of a forwarding target. null takes it away, the period as well.
func rate(faults *[]hookglass.FieldError, limit api.Optional[int64], period api.Optional[string]) (n *int64, of *string) {
	if limit.Set && !limit.Null && limit.Value == 0 {
		*faults = append(*faults, hookglass.FieldError{Field: "forwarding_target.rate_limit", Message: fmt.Sprintf("must be 1 to %d, or null for no limit", hookglass.MaxRateLimit)})
		return nil, nil
	}
	n = Given(faults, "forwarding_target.rate_limit", limit, true)
	if !period.Null {
		of = Given(faults, "forwarding_target.rate_period", period, false)
	}
	return n, of
}

// dedupe reads what a forwarding target does with duplicates. null ends it, the window as well.
func dedupe(faults *[]hookglass.FieldError, by api.Optional[string], seconds api.Optional[int64]) (what *string, window *int64) {
	if by.Set && !by.Null && by.Value == "" {
		*faults = append(*faults, hookglass.FieldError{Field: "forwarding_target.dedupe_by", Message: "may not be empty; null is none"})
		return nil, nil
	}
	what = Given(faults, "forwarding_target.dedupe_by", by, true)
	if !seconds.Null {
		window = Given(faults, "forwarding_target.dedupe_seconds", seconds, false)
	}
	return what, window
}

// Action reads an action.
func Action(c api.ActionChange) (d action.Draft, err error) {
	var faults []hookglass.FieldError
	const in = "endpoint_action."
	d.Name = Given(&faults, in+"name", c.Name, false)
	d.Enabled = Given(&faults, in+"enabled", c.Enabled, false)
	d.FailurePolicy = Given(&faults, in+"failure_policy", c.FailurePolicy, false)
	d.Position = Given(&faults, in+"position", c.Position, false)
	if conditions := Given(&faults, in+"conditions", c.Conditions, false); conditions != nil {
		made := make([]action.ConditionDraft, len(*conditions))
		for i, c := range *conditions {
			made[i] = action.ConditionDraft{Field: c.Field, Operator: c.Operator, Value: c.Value}
		}
		d.Conditions = &made
	}
	if steps := Given(&faults, in+"steps", c.Steps, false); steps != nil {
		made := make([]action.StepDraft, len(*steps))
		for i, st := range *steps {
			made[i] = step(st)
		}
		d.Steps = &made
	}
	return d, hookglass.Refusal(faults, nil)
}

// step takes null for what is left out, where that has a meaning.
func step(st api.NewStep) action.StepDraft {
	d := action.StepDraft{Type: st.StepType, Config: st.Config}
	if st.ReferenceKey.Set && !st.ReferenceKey.Null {
		d.ReferenceKey = &st.ReferenceKey.Value
	}
	if st.Name.Set {
		d.Name = &st.Name.Value
	}
	if st.ConfigVersion.Set && !st.ConfigVersion.Null {
		d.ConfigVersion = &st.ConfigVersion.Value
	}
	if st.FailurePolicy.Set && !st.FailurePolicy.Null {
		d.FailurePolicy = &st.FailurePolicy.Value
	}
	for _, c := range st.Conditions {
		d.Conditions = append(d.Conditions, action.StepConditionDraft{Source: c.Source, Path: c.Path, Operator: c.Operator, Value: c.Value})
	}
	return d
}

// Alert reads an alert.
func Alert(c api.AlertChange) (d alert.Draft, err error) {
	var faults []hookglass.FieldError
	d.Name = Given(&faults, "alert.name", c.Name, false)
	d.Kind = (*hookglass.AlertKind)(Given(&faults, "alert.kind", c.Kind, false))
	d.Enabled = Given(&faults, "alert.enabled", c.Enabled, false)
	d.ChannelIDs = Given(&faults, "alert.channel_ids", c.ChannelIDs, false)
	if config := Given(&faults, "alert.config", c.Config, false); config != nil {
		d.Config = &alert.Settings{
			WindowMinutes: Given(&faults, "alert.config.window_minutes", config.WindowMinutes, false),
			Threshold:     Given(&faults, "alert.config.threshold", config.Threshold, false),
			Keyword:       Given(&faults, "alert.config.keyword", config.Keyword, false),
			Field:         Given(&faults, "alert.config.field", config.Field, false),
			Factor:        Given(&faults, "alert.config.factor", config.Factor, false),
			MinCount:      Given(&faults, "alert.config.min_count", config.MinCount, false),
			EventType:     Given(&faults, "alert.config.event_type", config.EventType, false),
		}
	}
	return d, hookglass.Refusal(faults, nil)
}

// Given returns the value of a field that was sent; null is the zero value where it is allowed.
func Given[T any](faults *[]hookglass.FieldError, field string, o api.Optional[T], nullable bool) *T {
	if !o.Set {
		return nil
	}
	if o.Null && !nullable {
		*faults = append(*faults, hookglass.FieldError{Field: field, Message: "may not be null"})
	}
	return &o.Value
}
