// Package replay redelivers captured events when a person asks for it: one at once, many in a row, and as saved cases
// whose responses are checked. It hides how a case is sealed, when a run may be sent, and what is kept of an attempt.
//
// At most once. A case run and an event of a bulk replay are marked in their table before they are sent. Whoever finds
// a marker without a result records unknown and does not resend: uncertainty is a state, not a reason to repeat.
//
// A Service is safe for concurrent use.
package replay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/delivery"
	"hookglass/internal/fair"
	"hookglass/internal/provider"
	"hookglass/internal/redact"
	"hookglass/internal/store"
	"hookglass/internal/timeshift"
)

// Timeout bounds one delivery, from resolving the name to the last byte (spec: decisions, section 13, "Replay").
const Timeout = 30 * time.Second

// maxKept bounds each body in the history. The response to the caller has more of it (spec: decisions, section 13).
const maxKept = 256 << 10

// Verifiers returns the enabled signature configs of an endpoint, with secrets in clear text.
type Verifiers interface {
	Verifiers(v *store.View, ref string) ([]provider.Config, error)
}

// Sealer encrypts what a case holds. where names the row.
type Sealer interface {
	Seal(plaintext []byte, where string) ([]byte, error)
	Open(sealed []byte, where string) ([]byte, error)
}

// Config configures a Service.
type Config struct {
	Client    delivery.Client
	Verifiers Verifiers
	Sealer    Sealer
	Tunnel    Tunnel // nil: no machine is ever connected
	Reads     Reads
	Proxied   bool // webhooks come through proxies of this installation
	Log       *slog.Logger
	Retention time.Duration // age at which ended runs and bulk replays are purged, unless the account sets one
}

// Reads bounds the memory of large events. Hold reads an event once there is room for times its size, RoomFor waits for
// room for bytes; both keep the room until ctx is done, and answer unavailable if there is none.
type Reads interface {
	Hold(ctx context.Context, who hookglass.Principal, times int64, read func(*store.View) (*hookglass.Event, error)) (*hookglass.Event, error)
	RoomFor(ctx context.Context, who hookglass.Principal, bytes int64) error
}

// Service replays events.
type Service struct {
	Config
	db *store.DB

	turns  *fair.Workers // of runs and bulk replays in progress in this process
	bodies *fair.Bodies

	leaving chan struct{} // closed when Run ends
	leave   func()

	recordTime time.Duration // recordTimeout; shorter in tests
	roomTime   time.Duration // roomTime; shorter in tests
}

// A process has as many turns for runs and bulk replays as internal/job has workers for them. A tenant has at most half
// of them, and an endpoint a quarter, so that targets that do not answer leave turns for others.
const (
	turnsAtOnce   = 64
	turnsOfTenant = turnsAtOnce / 2
)

// turn takes a turn for an endpoint and its tenant, or answers rate_limited.
func (s *Service) turn(src source) (give func(), err error) {
	give, ok := s.turns.Take(src.key(), src.endpoint.Num)
	if !ok {
		return nil, &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "Too many replays of this account are under way.", RetryAfter: 2 * time.Second}
	}
	return give, nil
}

const (
	// largeBytes bounds the large bodies that replays and runs hold at a time, each until its target has answered.
	largeBytes = 64 << 20
	// roomTime is how long the caller of a replay waits for room.
	roomTime = 15 * time.Second
)

// errNoRoom is the answer if the bodies of other replays leave no room in time.
var errNoRoom = &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "Too many replays of large requests are under way.", RetryAfter: 2 * time.Second}

// New returns the service. Nothing that a dead process left behind is finished unless [Service.Run] runs.
func New(db *store.DB, cfg Config) *Service {
	leaving := make(chan struct{})
	return &Service{
		Config: cfg, db: db, turns: fair.NewWorkers(turnsAtOnce, turnsOfTenant), bodies: fair.NewBodies(largeBytes),
		leaving: leaving, leave: sync.OnceFunc(func() { close(leaving) }), recordTime: recordTimeout, roomTime: roomTime,
	}
}

// Request describes a one-off replay.
type Request struct {
	TargetURL string
	Identity  string // "": original
	Signature string // "": the default
	Overrides delivery.Overrides
	TimeShift string // moves the times of the copy (see timeshift.Parse); "": moves none
	DryRun    bool   // only return what would be sent
}

// ReadOverrides reads the changes to a copy of an event; nil changes nothing.
func ReadOverrides(o *api.Overrides) delivery.Overrides {
	if o == nil {
		return delivery.Overrides{}
	}
	return delivery.Overrides{Method: o.Method, Headers: o.Headers, Body: o.Body, Query: (*string)(o.Query)}
}

// source is an event with all that is needed to send it.
type source struct {
	endpoint     hookglass.Endpoint
	event        *hookglass.Event
	configs      []provider.Config
	entitlements hookglass.Entitlements
}

// Replay delivers an event once, waits for the response and records the attempt. It answers not_found,
// payment_method_required, validation_failed, target_not_allowed, and rate_limited if there is no room for a large
// event. If the target does not answer, the Failure of the attempt says why.
func (s *Service) Replay(ctx context.Context, who hookglass.Principal, ref, eventID string, r Request) (*hookglass.Replay, error) {
	if err := who.MayManage(); err != nil {
		return nil, err
	}
	options, shift, err := s.read(r)
	if err != nil {
		return nil, err
	}
	plain := options.Plain() && shift.IsZero() // the usual case, allowed for every account
	src, give, err := s.load(ctx, who, ref, eventID, plain)
	if err != nil {
		return nil, err
	}
	defer give()
	if r.Signature == "" && !shift.IsZero() && src.entitlements.MayRegenerateOrResign() == nil && delivery.Signable(src.event, src.configs) {
		options.Signature = hookglass.SignatureResign // a captured signature does not fit shifted times
	}
	if err := src.permits(options); err != nil {
		return nil, err
	}
	o := s.order(src, r.TargetURL, options, s.db.Now())
	o.Overrides, o.Shift = r.Overrides, shift
	if r.DryRun {
		return rehearse(src, r.TargetURL, o)
	}
	made, err := s.attempt(ctx, src, r.TargetURL, o)
	if refused, ok := errors.AsType[*hookglass.Error](err); ok && refused.Code == hookglass.CodeTargetNotAllowed { // because of the resolved address
		return nil, &hookglass.Error{Code: refused.Code, Message: refused.Message, Details: []hookglass.FieldError{{Field: "target_url", Message: "leads to an address that may not be reached"}}}
	}
	if err != nil {
		return nil, err
	}
	// Return what was sent even if it cannot be recorded: after an error the caller would send it again.
	full := made.full
	if err := s.record(ctx, made.kept); err != nil {
		s.Log.ErrorContext(ctx, "a replay was sent and cannot be remembered", "replay", full.ID, "error", err)
		full.Warnings = append(full.Warnings, "The storage did not answer, so this attempt is not in the list of replays.")
		return full, nil
	}
	full.Num, full.Verdict = made.kept.Num, made.kept.Verdict
	return full, nil
}

// read parses a request, or returns all that is wrong with it.
func (s *Service) read(r Request) (options hookglass.ReplayOptions, shift timeshift.Shift, err error) {
	options, faults := hookglass.ParseReplayOptions("", r.Identity, r.Signature)
	if r.TimeShift != "" {
		var fault string
		if shift, fault = timeshift.Parse(r.TimeShift); fault != "" {
			faults = append(faults, hookglass.FieldError{Field: "time_shift", Message: fault})
		}
	}
	return options, shift, hookglass.Refusal(faults, s.checkTarget("target_url", r.TargetURL))
}

// load reads an event with all that is needed to send it, a large one once there is room for its body; give returns the
// room. A plain replay needs no entitlements, so load does not read them.
func (s *Service) load(ctx context.Context, who hookglass.Principal, ref, eventID string, plain bool) (src source, give func(), err error) {
	event := func(v *store.View) (err error) {
		src.event, err = v.Event(ref, eventID)
		return err
	}
	// Each read is consistent by itself, so they need no transaction, which would cost two more round trips.
	err = s.db.Glance(ctx, who, func(v *store.View) error {
		err := v.Together(func(v *store.View) (err error) {
			src.endpoint, err = v.Endpoint(ref)
			return err
		}, func(v *store.View) error {
			small, _ := v.Sparing(fair.SmallBody)
			return event(small)
		}, func(v *store.View) (err error) {
			src.configs, err = s.Verifiers.Verifiers(v, ref)
			return err
		})
		if err == nil && !plain {
			src.entitlements, err = v.Entitlements(src.endpoint)
		}
		return err
	})
	if err != nil {
		return src, nil, err
	}
	give, ok := s.bodies.Await(ctx, src.key(), src.event.Size, s.roomTime)
	if !ok {
		return src, nil, errNoRoom
	}
	if src.event.Payload == nil {
		err = s.db.Glance(ctx, who, event)
	}
	if err == nil && src.event.EndpointNum != src.endpoint.Num { // its custom id has gone to another endpoint meanwhile
		err = hookglass.NotFound("endpoint")
	}
	if err != nil {
		give()
		return src, nil, err
	}
	return src, give, nil
}

// source reads what the delivery of any event of the endpoint needs.
func (s *Service) source(v *store.View, ref string) (src source, err error) {
	if src.endpoint, err = v.Endpoint(ref); err != nil {
		return src, err
	}
	err = s.fill(v, &src)
	return src, err
}

func (s *Service) fill(v *store.View, src *source) (err error) {
	if src.entitlements, err = v.Entitlements(src.endpoint); err != nil {
		return err
	}
	src.configs, err = s.Verifiers.Verifiers(v, string(src.endpoint.ID))
	return err
}

// permits answers payment_method_required if the modes need an entitlement that the account lacks (spec, Replay rules 2
// to 4). Mail ignores the modes, so it needs none.
func (s source) permits(o hookglass.ReplayOptions) error {
	if o.Plain() || s.endpoint.Kind == hookglass.KindEmail {
		return nil
	}
	return s.entitlements.MayRegenerateOrResign()
}

// key identifies the tenant, whose requests are bounded together.
func (s source) key() string { return fair.Tenant(s.endpoint.AccountID, s.endpoint.Num) }

// order describes a delivery to package delivery.
func (s *Service) order(src source, target string, options hookglass.ReplayOptions, at time.Time) delivery.Order {
	return delivery.Order{
		Event: src.event, TargetURL: target, Local: target == hookglass.TunnelTarget, Options: options, Configs: src.configs, Proxied: s.Proxied,
		Identity: provider.NewIdentity(), At: at.UTC().Truncate(time.Microsecond),
	}
}

// rehearse returns the attempt that a replay would make, without sending it.
func rehearse(src source, target string, o delivery.Order) (*hookglass.Replay, error) {
	r, _, err := begin(src, target, o)
	if err != nil {
		return nil, err
	}
	r.DryRun, r.ID = true, ""
	r.Request.Headers = shown(r.Request.Headers, src.configs)
	return r, nil
}

func begin(src source, target string, o delivery.Order) (*hookglass.Replay, delivery.Request, error) {
	out, err := delivery.Build(o)
	if err != nil {
		return nil, out, err
	}
	return &hookglass.Replay{
		ID: hookglass.NewSortableID(hookglass.PrefixReplay, o.At), EndpointNum: src.endpoint.Num, EventSeq: src.event.Seq, EventID: src.event.ID,
		TargetURL: target, Options: o.Options, Request: out.SentRequest, At: o.At, NewDeliveryID: out.NewDeliveryID, Warnings: out.Warnings,
		TimeShifted: !o.Shift.IsZero(), TimeChanges: out.TimeChanges,
	}, out, nil
}

// attempted is the outcome of one delivery of an event.
type attempted struct {
	kept     *hookglass.Replay // as recorded, bounded and without credentials
	full     *hookglass.Replay // as sent and received
	withheld bool              // nothing was sent: it had no turn, or the process stops
}

// attempt sends an event once.
func (s *Service) attempt(ctx context.Context, src source, target string, o delivery.Order) (a attempted, err error) {
	full, out, err := begin(src, target, o)
	if err != nil {
		return a, err
	}
	got, _ := s.send(ctx, src, target, "", out)
	if got.Forbidden != nil {
		return a, got.Forbidden
	}
	full.Request.Headers, full.Response, full.Failure, full.Duration = got.Headers, delivery.Readable(got.Response), got.Failure, got.Duration
	remembered := *full
	secrets := delivery.Secrets(src.configs, full.Request.Headers)
	remembered.Request = keepRequest(full.Request, secrets)
	remembered.Response = keepResponse(full.Response, secrets)
	full.Request.Headers = shown(full.Request.Headers, src.configs)
	return attempted{&remembered, full, got.Withheld()}, nil
}

// shown returns headers for the caller of a replay. A secret that a provider sends in clear text (GitLab's token) is
// redacted even there.
func shown(h hookglass.Headers, configs []provider.Config) hookglass.Headers {
	all := make(hookglass.Headers, len(h))
	secrets := delivery.Secrets(configs, nil)
	for i, f := range h {
		all[i] = hookglass.Header{Name: f.Name, Value: secrets.Secrets(f.Value)}
	}
	return all
}

// keepRequest returns a request as it is recorded.
func keepRequest(r hookglass.SentRequest, secrets *redact.Redactor) hookglass.SentRequest {
	r.Headers = delivery.RedactHeaders(r.Headers, secrets)
	if len(r.Body) > maxKept {
		r.Body, r.Truncated = delivery.Beginning(r.Body, maxKept), true
	}
	return r
}

// keepResponse returns a response as it is recorded.
func keepResponse(r *hookglass.TargetResponse, secrets *redact.Redactor) *hookglass.TargetResponse {
	if r == nil {
		return nil
	}
	kept := *r
	kept.Headers = delivery.RedactHeaders(r.Headers, secrets)
	kept.Body = delivery.RedactBody(r.Body, r.Headers, secrets)
	if len(kept.Body) > maxKept {
		kept.Body, kept.Truncated = delivery.Beginning(kept.Body, maxKept), true
	}
	return &kept
}

// take stores the marker of a delivery that is about to be sent. If ctx is done before, it stores none. It does not
// stop in the middle of storing: the marker might be there without its worker knowing, and the sweep would later record
// as unknown what was never sent.
func (s *Service) take(ctx context.Context, mark func(*store.Tx) error) error {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return s.db.Update(whole, hookglass.System, func(tx *store.Tx) error {
		if err := mark(tx); err != nil {
			return err
		}
		return context.Cause(ctx)
	})
}

// recordTimeout bounds the recording of what was sent, even if the caller is gone.
const recordTimeout = 15 * time.Second

// record stores an attempt, even if the caller is gone: a request that was sent must not be forgotten.
func (s *Service) record(ctx context.Context, r *hookglass.Replay) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.recordTime)
	defer cancel()
	write := func(tx *store.Tx) error { return tx.RecordReplay(r) }
	err := s.db.Jot(ctx, hookglass.System, write)
	if hookglass.Is(err, hookglass.CodeUnavailable) {
		err = s.db.Persist(ctx, s.recordTime, hookglass.System, write)
	}
	return err
}

// checkTarget judges a target as spelled. It accepts the word tunnel.
func (s *Service) checkTarget(field, target string) error {
	if target == "" {
		return hookglass.Invalid(field, "is required")
	}
	if target == hookglass.TunnelTarget {
		return nil
	}
	return s.Client.Check(field, target)
}
