package tunnel

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

// Bounds of a report. The edge that it comes through bounds its total size.
const (
	maxURL     = hookglass.AddressLimit
	maxAttempt = 255
	maxTime    = 24 * 3600 // seconds that a delivery may claim to have taken
)

// Report stores a client's report on a delivery. A report with a known attempt id returns the first one. It answers
// validation_failed, not_found, forbidden when the client is not the one it claims to be, and conflict.
func (s *Service) Report(ctx context.Context, who hookglass.Principal, in api.DeliveryReport) (*hookglass.DeliveryReport, error) {
	ref := cmp.Or(in.EndpointID, string(who.Endpoint))
	var f faults
	if ref == "" {
		f.add("endpoint_id", "is required")
	}
	if in.WebhookRequestID == "" {
		f.add("webhook_request_id", "is required")
	}
	r := f.report(in)
	if len(f) > 0 {
		return nil, hookglass.InvalidFields(f)
	}
	if in.TunnelClientCredential != "" {
		if err := s.checkCredential(ctx, who, in.TunnelClientID, in.TunnelClientCredential); err != nil {
			return nil, err
		}
	}
	var stored *hookglass.DeliveryReport
	err := s.db.Update(ctx, who, func(tx *store.Tx) (err error) {
		copied := *r // the update may run twice
		stored, err = tx.RecordReport(ref, in.WebhookRequestID, &copied)
		return err
	})
	return stored, err
}

// checkCredential answers forbidden unless the credential belongs to that client, and the client to the principal.
func (s *Service) checkCredential(ctx context.Context, who hookglass.Principal, clientID, credential string) error {
	wrong := hookglass.Errorf(hookglass.CodeForbidden, "The tunnel_client_credential is not that of this tunnel_client_id.")
	if len(clientID) > maxWord || len(credential) > maxWord || strings.Contains(clientID, "\x00") { // no id holds a NUL, nor does PostgreSQL
		return wrong
	}
	return s.db.View(ctx, hookglass.System, func(v *store.View) error {
		hash, account, endpoint, err := v.TunnelCredential(clientID)
		if hookglass.Is(err, hookglass.CodeNotFound) {
			return wrong
		}
		if err != nil {
			return err
		}
		mine := account != 0 && account == who.Account
		if who.Endpoint != "" {
			mine = account == 0 && endpoint == who.Endpoint
		}
		if !mine || subtle.ConstantTimeCompare(hash, digest(credential)) != 1 {
			return wrong
		}
		return nil
	})
}

// faults collects the faults in the fields of a body.
type faults []hookglass.FieldError

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, hookglass.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (f *faults) text(field, value string, most int) {
	if len(value) > most {
		f.add(field, "may have %d bytes at most", most)
	}
}

func (f *faults) number(field string, value *int64, most int64) int64 {
	switch {
	case value == nil:
		return 0
	case *value < 0 || *value > most:
		f.add(field, "must be from 0 to %d", most)
	}
	return *value
}

// report converts a report to the domain type, and collects its faults.
func (f *faults) report(in api.DeliveryReport) *hookglass.DeliveryReport {
	r := &hookglass.DeliveryReport{
		AttemptID: in.DeliveryAttemptID, ClientID: in.TunnelClientID, Version: cmp.Or(in.ReportVersion, 1), TargetURL: in.TargetURL,
		FailureCategory: in.FailureCategory, Message: beginning(in.ResponseMessage),
	}
	if r.Version != 1 && r.Version != 2 {
		f.add("report_version", "must be 1 or 2")
	}
	switch {
	case in.TargetURL == "":
		f.add("target_url", "is required")
	case !absolute(in.TargetURL):
		f.add("target_url", "must be an absolute URI")
	}
	if len(in.ResolvedURL) <= maxURL { // a longer one is left out; see beginning
		r.ResolvedURL = in.ResolvedURL
		f.resolved(r.ResolvedURL)
	}
	r.StatusCode = f.status(in.StatusCode, true)
	r.ResponseTime = time.Duration(f.number("response_time_ms", in.ResponseTimeMS, maxTime*1000)) * time.Millisecond
	f.text("delivery_attempt_id", in.DeliveryAttemptID, maxAttempt)
	if strings.ContainsFunc(in.DeliveryAttemptID, unicode.IsControl) {
		f.add("delivery_attempt_id", "may not hold control characters")
	}
	f.text("tunnel_client_id", in.TunnelClientID, maxWord)
	f.category(in.FailureCategory)
	if r.Version == 2 {
		r.Evidence = f.evidence(in.TunnelEvidence)
	}
	return r
}

// beginning shortens a message for people. A report is not refused for what follows, nor for other values that the
// sender or the handler chose: its event would count as not delivered, and a sender would wait for its answer in vain.
func beginning(s string) string { return hookglass.Beginning(s, hookglass.MessageLimit) }

func absolute(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxURL && u.Scheme != "" && (u.Host != "" || u.Opaque != "")
}

// resolved validates the URL that a request went to. Its path and query are as the sender of the event wrote them,
// which need not be a valid URI.
func (f *faults) resolved(s string) {
	scheme, rest, _ := strings.Cut(s, "://")
	host := rest
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		host = rest[:end]
	}
	web := (scheme == "http" || scheme == "https") && !strings.ContainsFunc(s, unicode.IsControl)
	if s != "" && !absolute(s) && !(web && absolute(scheme+"://"+host)) {
		f.add("resolved_url", "must be an absolute URI")
	}
}

// status reads the status of an answer; 0 means that there was none.
func (f *faults) status(in api.Optional[int64], required bool) int {
	switch {
	case !in.Set || in.Null:
		if required {
			f.add("status_code", "is required")
		}
		return 0
	case in.Value != 0 && (in.Value < 100 || in.Value > 599):
		f.add("status_code", "must be the status of an answer, or 0 where none came")
		return 0
	}
	return int(in.Value)
}

func (f *faults) category(c string) {
	if c != "" && !slices.Contains(hookglass.FailureCategories, c) {
		f.add("failure_category", "must be one of %s", strings.Join(hookglass.FailureCategories, ", "))
	}
}

// evidence reads what a client reports of an answer.
func (f *faults) evidence(in api.TunnelEvidence) *hookglass.DeliveryEvidence {
	const most = 1 << 50
	e := &hookglass.DeliveryEvidence{
		ContentType: hookglass.Beginning(in.ContentType, hookglass.EvidenceWordLimit), DeclaredLength: -1, TruncationReason: in.TruncationReason,
		ObservedBytes: f.number("decoded_bytes_observed", in.DecodedBytesObserved, most),
		RetainedBytes: f.number("retained_bytes", in.RetainedBytes, most),
		Complete:      in.CaptureComplete == nil || *in.CaptureComplete,
	}
	if in.DeclaredContentLength != nil {
		e.DeclaredLength = f.number("declared_content_length", in.DeclaredContentLength, most)
	}
	f.text("truncation_reason", in.TruncationReason, hookglass.EvidenceWordLimit)
	size := 0
	fields := in.ReceivedHeaders()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]
		size += len(name) + len(value)
		e.Headers = append(e.Headers, hookglass.Header{Name: name, Value: value})
	}
	if len(e.Headers) > hookglass.EvidenceFields || size > hookglass.EvidenceFieldsLimit {
		f.add("response_headers", "may have %d fields and %d bytes at most", hookglass.EvidenceFields, hookglass.EvidenceFieldsLimit)
	}
	switch strings.ToLower(in.BodyEncoding) {
	case "", "utf8", "utf-8":
		e.Body = []byte(in.Body)
	case "base64":
		var err error
		if e.Body, err = base64.StdEncoding.DecodeString(in.Body); err != nil {
			f.add("body", "is not base64")
		}
	default:
		f.add("body_encoding", "must be utf8 or base64")
	}
	if in.RetainedBytes == nil {
		e.RetainedBytes = int64(len(e.Body))
	}
	if in.DecodedBytesObserved == nil {
		e.ObservedBytes = e.RetainedBytes
	}
	if len(e.Body) > hookglass.EvidenceLimit { // like a message; see beginning
		e.Body, e.RetainedBytes = e.Body[:hookglass.EvidenceLimit], hookglass.EvidenceLimit
		e.Complete, e.TruncationReason = false, "body_limit"
	}
	return e
}
