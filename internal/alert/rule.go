package alert

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/store"
)

// Draft is what a caller sets on an alert. A nil field is not named.
type Draft struct {
	Name       *string
	Kind       *hookglass.AlertKind // may not change
	Enabled    *bool
	ChannelIDs *[]string
	Config     *Settings
	Faults     []hookglass.FieldError // of what was typed and no field can hold: they are told with all others
}

// Settings are the configuration of an alert as a caller sends it. A nil field changes nothing.
type Settings struct {
	WindowMinutes, Threshold, MinCount *int64
	Keyword, Field, EventType          *string
	Factor                             *float64
}

// defaultMinCount keeps a handful of events after a silence from being a spike.
const defaultMinCount = 10

// Create stores a new alert, which watches from now on. It answers not_found for the endpoint, and validation_failed.
func (s *Service) Create(ctx context.Context, who hookglass.Principal, ref string, d Draft) (a hookglass.Alert, err error) {
	if err := who.MayManage(); err != nil {
		return a, err
	}
	a.ID, a.Enabled = hookglass.NewSortableID(hookglass.PrefixAlert, s.Now()), true
	d.Faults = append(d.Faults, lacking(alertFault,
		required{"name", d.Name != nil}, required{"kind", d.Kind != nil}, required{"config", d.Config != nil})...)
	switch {
	case d.Kind == nil:
		d.Config = nil // what it may set depends on the kind
	case !slices.Contains(hookglass.AlertKinds, *d.Kind):
		d.Faults = append(d.Faults, alertFault("kind", "must be missing_webhook, error_response, keyword_match, volume_spike or schema_drift"))
		d.Config = nil
	default:
		a.Kind = *d.Kind
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, err := tx.EndpointToChange(ref) // locks it, so that a concurrent Create counts this alert
		if err != nil {
			return err
		}
		if n, err := tx.CountAlerts(e.Num); err != nil {
			return err
		} else if n >= hookglass.MaxAlerts {
			return hookglass.Invalid("alert", "would be one too many: an endpoint has %d at most", hookglass.MaxAlerts)
		}
		a.EndpointNum, a.EndpointID = e.Num, e.ID
		channels, err := d.apply(tx, e, &a)
		if err != nil {
			return err
		}
		if err := tx.CreateAlert(&a, channels); err != nil {
			return err
		}
		a, err = tx.Alert(string(e.ID), a.ID)
		return err
	})
	return a, err
}

// Update changes the fields that the draft sets. An alert that is enabled or gets another configuration starts over:
// its open incident is resolved, as it is when the alert is disabled. It answers not_found and validation_failed.
func (s *Service) Update(ctx context.Context, who hookglass.Principal, ref, id string, d Draft) (a hookglass.Alert, err error) {
	if err := who.MayManage(); err != nil {
		return a, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, err := tx.Endpoint(ref)
		if err != nil {
			return err
		}
		a, err = tx.ChangeAlert(e.Num, id, func(a *hookglass.Alert) (channels []int64, reason string, err error) {
			if d.Kind != nil && *d.Kind != a.Kind {
				return nil, "", hookglass.Invalid("alert.kind", "cannot change")
			}
			enabled, config := a.Enabled, a.Config
			channels, err = d.apply(tx, e, a)
			switch {
			case a.Enabled != enabled && !a.Enabled:
				reason = "The alert was disabled."
			case a.Enabled != enabled || a.Config != config:
				reason = "The alert was changed."
			}
			return channels, reason, err
		})
		return err
	})
	return a, err
}

// Delete deletes an alert with its history. It answers not_found.
func (s *Service) Delete(ctx context.Context, who hookglass.Principal, ref, id string) error {
	if err := who.MayManage(); err != nil {
		return err
	}
	return s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, err := tx.Endpoint(ref)
		if err != nil {
			return err
		}
		return tx.DeleteAlert(e.Num, id)
	})
}

// apply applies the fields that the draft sets. It returns the channels to notify, or nil when the draft names none.
func (d Draft) apply(tx *store.Tx, e hookglass.Endpoint, a *hookglass.Alert) (channels []int64, err error) {
	faults := slices.Clone(d.Faults)
	if d.Name != nil {
		if a.Name = strings.TrimSpace(*d.Name); !validName(a.Name) {
			faults = append(faults, alertFault("name", nameFault))
		}
	}
	if d.Enabled != nil {
		a.Enabled = *d.Enabled
	}
	if d.Config != nil {
		for _, f := range d.Config.apply(a.Kind, &a.Config) {
			if !slices.ContainsFunc(d.Faults, func(known hookglass.FieldError) bool { return known.Field == f.Field }) {
				faults = append(faults, f)
			}
		}
	}
	if d.ChannelIDs != nil {
		var wrong []hookglass.FieldError
		if channels, wrong, err = channelsNamed(tx, e, *d.ChannelIDs); err != nil {
			return nil, err
		}
		faults = append(faults, wrong...)
	}
	return channels, hookglass.Refusal(faults, nil)
}

// channelsNamed finds the channels of the endpoint's workspace by their ids.
func channelsNamed(tx *store.Tx, e hookglass.Endpoint, ids []string) (channels []int64, faults []hookglass.FieldError, err error) {
	if len(ids) > hookglass.MaxAlertTargets {
		return nil, []hookglass.FieldError{alertFault("channel_ids", fmt.Sprintf("may name %d channels at most", hookglass.MaxAlertTargets))}, nil
	}
	channels = []int64{}
	for i, id := range ids {
		c, err := tx.ChannelIn(e.WorkspaceID, id)
		if hookglass.Is(err, hookglass.CodeNotFound) || err == nil && c.ID != id {
			faults = append(faults, alertFault(fmt.Sprintf("channel_ids.%d", i), "is no notification channel of the endpoint's workspace"))
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		channels = append(channels, c.Num)
	}
	return channels, faults, nil
}

// apply applies the given settings, faults those that the kind does not have, and validates the result (spec:
// decisions, sections 11 and 13).
func (d Settings) apply(kind hookglass.AlertKind, c *hookglass.AlertConfig) (faults []hookglass.FieldError) {
	fault := func(field, format string, args ...any) {
		faults = append(faults, alertFault("config."+field, fmt.Sprintf(format, args...)))
	}
	window := kind != hookglass.AlertKeywordMatch && kind != hookglass.AlertSchemaDrift
	set(d.WindowMinutes, &c.WindowMinutes, window, "window_minutes", kind, fault)
	set(d.Threshold, &c.Threshold, kind == hookglass.AlertErrorResponse, "threshold", kind, fault)
	set(d.Keyword, &c.Keyword, kind == hookglass.AlertKeywordMatch, "keyword", kind, fault)
	set(d.Field, &c.Field, kind == hookglass.AlertKeywordMatch, "field", kind, fault)
	set(d.Factor, &c.Factor, kind == hookglass.AlertVolumeSpike, "factor", kind, fault)
	set(d.MinCount, &c.MinCount, kind == hookglass.AlertVolumeSpike, "min_count", kind, fault)
	set(d.EventType, &c.EventType, kind == hookglass.AlertSchemaDrift, "event_type", kind, fault)
	if window && (c.WindowMinutes < 1 || c.WindowMinutes > hookglass.MaxAlertWindow) {
		fault("window_minutes", "must be 1 to %d", hookglass.MaxAlertWindow)
	}
	switch kind {
	case hookglass.AlertErrorResponse:
		if c.Threshold < 1 || c.Threshold > hookglass.MaxThreshold {
			fault("threshold", "must be 1 to %d", hookglass.MaxThreshold)
		}
	case hookglass.AlertKeywordMatch:
		if n := utf8.RuneCountInString(c.Keyword); n < 1 || n > hookglass.MaxKeyword || !utf8.ValidString(c.Keyword) {
			fault("keyword", "must have 1 to %d characters", hookglass.MaxKeyword)
		}
		if c.Field == "" && d.Field == nil {
			c.Field = hookglass.KeywordAny
		}
		if !validField(c.Field) {
			fault("field", "must be one of %s, or a JSON Pointer into the body such as /data/status", strings.Join(hookglass.KeywordFields, ", "))
		}
	case hookglass.AlertVolumeSpike:
		if math.IsNaN(c.Factor) || c.Factor < hookglass.MinSpikeFactor || c.Factor > hookglass.MaxSpikeFactor {
			fault("factor", "must be %v to %d", hookglass.MinSpikeFactor, hookglass.MaxSpikeFactor)
		}
		if c.MinCount == 0 && d.MinCount == nil {
			c.MinCount = defaultMinCount
		}
		if c.MinCount < 1 || c.MinCount > hookglass.MaxThreshold {
			fault("min_count", "must be 1 to %d", hookglass.MaxThreshold)
		}
	case hookglass.AlertSchemaDrift:
		if utf8.RuneCountInString(c.EventType) > hookglass.MaxKeyword || !utf8.ValidString(c.EventType) {
			fault("event_type", "may have %d characters at most", hookglass.MaxKeyword)
		}
	}
	return faults
}

func set[T any](given *T, to *T, known bool, field string, kind hookglass.AlertKind, fault func(string, string, ...any)) {
	switch {
	case given == nil:
	case !known:
		fault(field, "is not a setting of %s", kind)
	default:
		*to = *given
	}
}

// required is a field that something new must have.
type required struct {
	field string
	given bool
}

// lacking returns the faults of the fields that are not given.
func lacking(fault func(field, message string) hookglass.FieldError, fields ...required) (faults []hookglass.FieldError) {
	for _, f := range fields {
		if !f.given {
			faults = append(faults, fault(f.field, "is required"))
		}
	}
	return faults
}

func alertFault(field, message string) hookglass.FieldError {
	return hookglass.FieldError{Field: "alert." + field, Message: message}
}
