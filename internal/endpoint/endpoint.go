// Package endpoint creates, changes and deletes endpoints. It hides which fields belong together, how addresses and
// custom ids are chosen, and what a temporary endpoint is.
package endpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/outbound"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// TemporaryLife is how long a temporary endpoint lives (spec: decisions, section 5).
const TemporaryLife = 24 * time.Hour

// Bounds of what people set. A name is shown on one line; the response must fit in an answer.
const (
	maxName         = 200
	maxResponseBody = 1 << 20
	maxHeaders      = 50
	maxHeaderName   = 256     // bytes
	maxHeaderValue  = 8 << 10 // bytes; many clients and proxies reject longer lines
	maxDelay        = 30 * time.Second
)

// Service manages endpoints. It is safe for concurrent use.
type Service struct {
	db      *store.DB
	sealer  Sealer
	targets Targets
}

// New returns the service.
func New(db *store.DB, sealer Sealer) *Service {
	return &Service{db, sealer, outbound.New(outbound.Config{})}
}

// Draft is what a caller sets. A nil field is not set: it gets its default on create and is unchanged on update. A
// pointer to "" clears a nullable field.
type Draft struct {
	Name           *string
	Kind           *hookglass.EndpointKind // create only
	CustomID       *string
	Provider       *string
	ProviderConfig *hookglass.ProviderConfig
	EmailLocalPart *string // create only
	Enabled        *bool
	Response       **hookglass.Response // pointer to nil clears
	ResponseRules  *[]hookglass.ResponseRule
	ResponseScript *string
	SchemaTracking *bool
	WorkspaceID    *int64 // create only
}

// Create stores a new endpoint of the principal. Without a workspace, an account principal's endpoint goes to its
// oldest one. It answers validation_failed with the fields at fault.
func (s *Service) Create(ctx context.Context, who hookglass.Principal, d Draft) (hookglass.Endpoint, error) {
	e := hookglass.Endpoint{ID: hookglass.NewEndpointID(), Kind: hookglass.KindWebhook, Enabled: true}
	var faults []hookglass.FieldError
	if d.Name == nil {
		faults = append(faults, hookglass.FieldError{Field: "endpoint.name", Message: "is required"})
	}
	if d.Kind != nil {
		e.Kind = *d.Kind
		if e.Kind != hookglass.KindWebhook && e.Kind != hookglass.KindEmail {
			faults = append(faults, hookglass.FieldError{Field: "endpoint.kind", Message: "must be webhook or email"})
		}
	}
	if d.EmailLocalPart != nil && *d.EmailLocalPart != "" {
		switch {
		case e.Kind != hookglass.KindEmail:
			faults = append(faults, hookglass.FieldError{Field: "endpoint.email_local_part", Message: "applies to email endpoints only"})
		case !hookglass.ValidLocalPart(*d.EmailLocalPart):
			faults = append(faults, hookglass.FieldError{Field: "endpoint.email_local_part", Message: "must be 2 to 50 of a-z, 0-9, dot, hyphen and underscore"})
		}
		e.EmailLocalPart = *d.EmailLocalPart
	} else if e.Kind == hookglass.KindEmail {
		e.EmailLocalPart = strings.TrimPrefix(hookglass.NewRandomID(""), "_")[:12]
	}
	if d.WorkspaceID != nil && *d.WorkspaceID <= 0 { // for the store 0 means the oldest one
		faults = append(faults, hookglass.FieldError{Field: "endpoint.workspace_id", Message: "is no workspace of yours"})
	}
	faults = append(faults, d.apply(&e)...)
	if len(faults) > 0 {
		return e, hookglass.InvalidFields(faults)
	}
	err := s.db.Update(ctx, who, func(tx *store.Tx) error {
		w, err := tx.HomeWorkspace(deref(d.WorkspaceID))
		if err != nil {
			if hookglass.Is(err, hookglass.CodeNotFound) && d.WorkspaceID != nil {
				return hookglass.Invalid("endpoint.workspace_id", "is no workspace of yours")
			}
			return err
		}
		e.AccountID, e.WorkspaceID = w.AccountID, w.ID
		return tx.CreateEndpoint(&e, nil)
	})
	if err != nil {
		return e, fmt.Errorf("create endpoint: %w", err)
	}
	return e, nil
}

// CreateTemporary stores an endpoint without an owner that lives for [TemporaryLife], and returns its key. The key is
// stored as a hash and never shown again.
func (s *Service) CreateTemporary(ctx context.Context) (e hookglass.Endpoint, key string, err error) {
	key = hookglass.NewRandomID(hookglass.PrefixTunnelKey)
	hash := keyHash(key)
	e = hookglass.Endpoint{
		ID: hookglass.NewEndpointID(), Name: "Temporary endpoint", Kind: hookglass.KindWebhook, Enabled: true,
		ExpiresAt: s.db.Now().Add(TemporaryLife),
	}
	err = s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.CreateEndpoint(&e, hash) })
	if err != nil {
		return e, "", fmt.Errorf("create temporary endpoint: %w", err)
	}
	return e, key, nil
}

// keyHash hashes a tunnel key for storage. The key has 128 random bits, so a plain hash cannot be reversed by guessing.
func keyHash(key string) []byte {
	h := sha256.Sum256([]byte(key))
	return h[:]
}

// Update changes the fields that the draft sets.
func (s *Service) Update(ctx context.Context, who hookglass.Principal, ref string, d Draft) (e hookglass.Endpoint, err error) {
	if err := who.MayManage(); err != nil {
		return e, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		if e, err = tx.EndpointToChange(ref); err != nil {
			return err
		}
		if faults := d.apply(&e); len(faults) > 0 {
			return hookglass.InvalidFields(faults)
		}
		return tx.SaveEndpoint(&e)
	})
	return e, err
}

// Delete deletes the endpoint and all its events permanently.
func (s *Service) Delete(ctx context.Context, who hookglass.Principal, ref string) (e hookglass.Endpoint, err error) {
	if err := who.MayManage(); err != nil {
		return e, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		if e, err = tx.Endpoint(ref); err != nil {
			return err
		}
		return tx.DeleteEndpoint(&e)
	})
	return e, err
}

// apply sets the fields of the draft and returns their faults.
func (d Draft) apply(e *hookglass.Endpoint) []hookglass.FieldError {
	c := change{Endpoint: e}
	named(d.Name, c.name)
	named(d.CustomID, c.customID)
	named(d.Provider, c.provider)
	named(d.ProviderConfig, c.providerConfig)
	named(d.Enabled, func(enabled bool) { e.Enabled = enabled })
	named(d.Response, c.response)
	named(d.ResponseRules, c.responseRules)
	named(d.ResponseScript, c.responseScript)
	named(d.SchemaTracking, c.schemaTracking)
	return c.faults
}

// named calls set if a draft sets a field.
func named[T any](value *T, set func(T)) {
	if value != nil {
		set(*value)
	}
}

// change is an endpoint whose fields are being set, with their faults.
type change struct {
	*hookglass.Endpoint
	faults []hookglass.FieldError
}

func (c *change) fault(field, format string, args ...any) {
	c.faults = append(c.faults, hookglass.FieldError{Field: "endpoint." + field, Message: fmt.Sprintf(format, args...)})
}

// webhooksAlone adds a fault for a field that email endpoints do not have.
func (c *change) webhooksAlone(field string) {
	if c.Kind == hookglass.KindEmail {
		c.fault(field, "applies to webhook endpoints only")
	}
}

func (c *change) name(name string) {
	c.Name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(c.Name); n == 0 || n > maxName {
		c.fault("name", "must have 1 to %d characters", maxName)
	}
	if strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }) {
		c.fault("name", "may not hold control characters")
	}
}

func (c *change) customID(id string) {
	if c.CustomID = id; id != "" && !hookglass.ValidCustomID(id) {
		c.fault("custom_id", "must be 2 to 63 of a-z, 0-9 and hyphen, beginning with a letter or digit")
	}
}

func (c *change) provider(id string) {
	switch c.Provider = id; {
	case id == "":
	case c.Kind == hookglass.KindEmail:
		c.webhooksAlone("provider")
	case !slices.Contains(hookglass.EndpointProviders, id):
		c.fault("provider", "must be one of %s", strings.Join(hookglass.EndpointProviders, ", "))
	}
}

func (c *change) providerConfig(p hookglass.ProviderConfig) {
	kept := reflect.DeepEqual(p, c.ProviderConfig) // older versions accepted it: it may be sent back as read
	if c.ProviderConfig = p; !kept && p != (hookglass.ProviderConfig{}) {
		c.webhooksAlone("provider_config")
	}
	switch p.ResponseMode {
	case "", hookglass.ResponseStatic, hookglass.ResponseTunnel:
	default:
		c.fault("provider_config.response_mode", "must be static or tunnel")
	}
}

func (c *change) response(r *hookglass.Response) {
	kept := sameResponse(r, c.Response)
	if c.Response = r; r == nil || kept {
		return
	}
	c.webhooksAlone("response")
	for _, f := range responseFaults(r) {
		c.fault("response."+f.Field, "%s", f.Message)
	}
}

func (c *change) responseRules(rules []hookglass.ResponseRule) {
	kept := reflect.DeepEqual(rules, c.ResponseRules)
	if c.ResponseRules = rules; len(rules) == 0 || kept {
		return
	}
	c.webhooksAlone("response_rules")
	for _, f := range ruleFaults(rules) {
		c.fault(f.Field, "%s", f.Message)
	}
}

// CheckRules answers validation_failed for invalid rules.
func CheckRules(rules []hookglass.ResponseRule) error {
	return hookglass.Refusal(ruleFaults(rules), nil)
}

func ruleFaults(rules []hookglass.ResponseRule) (faults []hookglass.FieldError) {
	fault := func(field, format string, args ...any) {
		faults = append(faults, hookglass.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if len(rules) > hookglass.MaxResponseRules {
		fault("response_rules", "may have %d entries at most", hookglass.MaxResponseRules)
		return faults
	}
	bodies := 0
	for i, r := range rules {
		at := fmt.Sprintf("response_rules.%d.", i)
		if strings.TrimSpace(r.When) == "" {
			fault(at+"when", "must say which webhooks are answered so")
		} else if wrong := conditionFault(r.When); wrong != "" {
			fault(at+"when", "%s", wrong)
		}
		for _, f := range responseFaults(&r.Response) {
			fault(at+f.Field, "%s", f.Message)
		}
		bodies += len(r.Body)
	}
	if bodies > maxResponseBody {
		fault("response_rules", "may have bodies of %d bytes together at most", maxResponseBody)
	}
	return faults
}

// conditionFault returns what is wrong with a condition, or "".
func conditionFault(when string) string {
	_, err := query.ParseCondition(when)
	var coded *hookglass.Error
	switch {
	case errors.As(err, &coded) && len(coded.Details) > 0:
		return coded.Details[0].Message
	case err != nil:
		return err.Error()
	}
	return ""
}

func (c *change) responseScript(text string) {
	if c.ResponseScript = ""; text == "" {
		return
	}
	var script fmt.Stringer
	var err error
	if c.Kind == hookglass.KindEmail {
		script, err = hookglass.ParseMailScript(text)
	} else {
		script, err = hookglass.ParseResponseScript(text)
	}
	if coded, ok := errors.AsType[*hookglass.Error](err); ok {
		for _, f := range coded.Details {
			c.fault(f.Field, "%s", f.Message)
		}
		return
	}
	// The canonical spelling is stored and read again, and may be longer than what was typed: 2m is 120s there.
	if c.ResponseScript = script.String(); len(c.ResponseScript) > hookglass.MaxScript {
		c.fault("response_script", "has %d characters when its times are in seconds; it may have %d at most", len(c.ResponseScript), hookglass.MaxScript)
	}
}

func (c *change) schemaTracking(on bool) {
	if c.SchemaTracking = on; on {
		c.webhooksAlone("schema_tracking")
	}
}

// sameResponse reports whether two custom answers are equal.
func sameResponse(a, b *hookglass.Response) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && maps.Equal(a.Headers, b.Headers) && a.Body == b.Body && a.Delay == b.Delay
}

// responseFaults checks a custom answer (spec: decisions, section 4). It must not set framing or connection headers.
func responseFaults(r *hookglass.Response) (faults []hookglass.FieldError) {
	fault := func(field, format string, args ...any) {
		faults = append(faults, hookglass.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if r.Status < 200 || r.Status > 599 {
		fault("status", "must be 200 to 599")
	}
	if len(r.Body) > maxResponseBody {
		fault("body", "may have %d bytes at most", maxResponseBody)
	}
	if r.Delay < 0 || r.Delay > maxDelay {
		fault("delay_ms", "must be 0 to %d", maxDelay.Milliseconds())
	}
	if len(r.Headers) > maxHeaders {
		fault("headers", "may have %d entries at most", maxHeaders)
	}
	spelled := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) { // sorted: the same request is answered the same
		value := r.Headers[name]
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if spelled[canonical] {
			fault("headers", "names %s twice", canonical)
		}
		spelled[canonical] = true
		switch {
		case len(name) > maxHeaderName:
			fault("headers", "has a name of more than %d bytes", maxHeaderName)
		case !hookglass.IsToken(name):
			fault("headers", "has the invalid name %q", name)
		case hookglass.FramesAnswer(name) || hookglass.AffectsHost(name):
			fault("headers", "may not set %s", name)
		case !hookglass.IsFieldValue(value):
			fault("headers", "has an invalid value for %s", name)
		case len(value) > maxHeaderValue:
			fault("headers", "has a value for %s of more than %d bytes", name, maxHeaderValue)
		}
	}
	return faults
}

func deref[T any](p *T) (t T) {
	if p != nil {
		t = *p
	}
	return t
}
