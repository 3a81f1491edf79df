package capture

import (
	"context"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/email"
	"hookglass/internal/fair"
	"hookglass/internal/provider"
	"hookglass/internal/store"
)

// perEndpoint bounds the arrivals of one endpoint that are in progress. Further ones are told to come back, so that a
// flood at one endpoint cannot fill the queue that all share.
const perEndpoint = 1024

// refusalWait bounds how long a refusal waits for its count to be stored.
const refusalWait = time.Second

// Service captures events. Refusals are counted only while [Service.Run] runs. Safe for concurrent use.
type Service struct {
	db       *store.DB
	cfg      Config
	log      *slog.Logger
	targets  *targets
	refused  refusals
	record   chan chan<- struct{} // requests to store the counts of refusals; closed when done
	outage   outage
	verdicts verdicts
	tasks    *fair.Bodies // large events loaded for tasks, see load
	reads    *fair.Bodies // held for readers, see Hold
	keys     *keyring

	readTime  time.Duration                               // readTime; tests use less
	purgeTime time.Duration                               // purgeFor; likewise
	expire    func(tx *store.Tx, endpointNum int64) error // ExpireEndpoint; likewise
}

// Config describes the installation.
type Config struct {
	Retention  time.Duration // age at which events are purged, unless the account sets one
	Verifiers  Verifiers
	Tunnel     Tunnel         // nil: local machines never connect
	Keys       Fetcher        // fetches the keys that senders publish; nil: they are not fetched
	MailDomain string         // of the addresses of email endpoints
	Resolver   email.Resolver // the DNS for the authentication of mail
	PublicURL  *url.URL       // --public-url, the address that senders were given; nil: only what they used is known
	MaxBody    int64          // the bound for the bodies of test requests, in bytes, as for reception; 0: none
}

// Verifiers returns the enabled signature configs of an endpoint, with their secrets opened.
type Verifiers interface {
	Verifiers(v *store.View, ref string) ([]provider.Config, error)
}

// New returns the service.
func New(db *store.DB, cfg Config, log *slog.Logger) *Service {
	return &Service{
		db: db, cfg: cfg, log: log,
		targets: newTargets(db, cfg.Verifiers), keys: newKeyring(cfg.Keys, log),
		refused: refusals{clock: db.Now}, record: make(chan chan<- struct{}), outage: outage{log: log},
		tasks: fair.NewBodies(largeTasks), reads: fair.NewBodies(largeReads), readTime: readTime, purgeTime: purgeFor, expire: (*store.Tx).ExpireEndpoint,
	}
}

// Run stores the counts of refusals until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	flush := time.NewTicker(time.Second)
	defer flush.Stop()
	// A write in progress when ctx ends is completed. If it were cancelled it might still be stored, and its counts,
	// being kept, would be stored twice.
	writing := context.WithoutCancel(ctx)
	for {
		select {
		case <-flush.C:
			if err := s.writeRefusals(writing); err != nil {
				s.log.Warn("counts of refused requests could not be stored yet", "error", err)
			}
		case written := <-s.record:
			s.writeRefusals(writing) // failed counts are kept, and the next tick reports the failure
			close(written)
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(writing, 2*time.Second)
			defer cancel()
			s.writeRefusals(ctx)
			return nil
		}
	}
}

// Room returns why the storage had no room for arrivals in the last seconds, or nil if it had.
func (s *Service) Room() error { return s.outage.room() }

// Admit finds the endpoint with an id or custom id before the body is read. It answers not_found for one that is
// unknown, deleted, expired or for mail, gone for a disabled one, and rate_limited if too many of its arrivals are in
// progress.
func (s *Service) Admit(ctx context.Context, ref string) (Target, error) {
	return s.admit(ctx, ref, hookglass.KindWebhook)
}

func (s *Service) admit(ctx context.Context, ref string, kind hookglass.EndpointKind) (Target, error) {
	t, err := s.targets.find(ctx, ref)
	if err != nil {
		s.outage.refusal(err)
		return Target{}, err
	}
	e := &t.endpoint
	refuse := func(err error) (Target, error) {
		s.refused.add(e.Num, err)
		return Target{}, err
	}
	switch {
	case e.Kind != kind || !e.ExpiresAt.IsZero() && !s.db.Now().Before(e.ExpiresAt):
		return Target{}, hookglass.NotFound("endpoint")
	case !e.Enabled:
		return refuse(hookglass.Errorf(hookglass.CodeGone, "This endpoint is disabled."))
	case t.underWay.Load() >= perEndpoint:
		return refuse(tooMany())
	}
	return Target{Endpoint: *e, known: t}, nil
}

// Capture stores the arrival and returns the reply to its sender. The event is on disk by then, so the reply may be
// sent, but one that awaits must go through Answer first. It answers not_found if the endpoint was deleted meanwhile,
// and unavailable if the storage cannot take it.
func (s *Service) Capture(ctx context.Context, t Target, a *Arrival) (*hookglass.Reply, error) {
	ev, err := s.capture(ctx, t, a)
	if err != nil {
		s.refused.add(t.Endpoint.Num, err)
		return nil, err
	}
	return awaiting(t, ev), nil
}

func (s *Service) capture(ctx context.Context, t Target, a *Arrival) (*hookglass.Event, error) {
	if t.known.underWay.Add(1) > perEndpoint {
		t.known.underWay.Add(-1)
		return nil, tooMany()
	}
	defer t.known.underWay.Add(-1)

	ev := s.judge(t, a)
	work := t.known.following(ev)
	if err := s.follow(ctx, t, ev); err != nil {
		s.outage.refusal(err)
		return nil, err
	}
	if ev.SignatureReason == provider.KeyUnavailable {
		work.Tasks = append(slices.Clip(work.Tasks), store.TaskSignature)
	}
	if err := s.db.CaptureWith(ctx, t.Endpoint.AccountID, ev, work); err != nil {
		s.outage.refusal(err)
		return nil, err
	}
	s.outage.stored()
	return ev, nil
}

// Refuse counts an arrival that was refused for its size. The count is stored when it returns, so that whoever learns
// of the refusal finds it. If the storage is slow, it does not wait, and the count is stored later.
func (s *Service) Refuse(ctx context.Context, t Target) {
	s.refused.add(t.Endpoint.Num, hookglass.Errorf(hookglass.CodePayloadTooLarge, "The body is too large."))
	ctx, cancel := context.WithTimeout(ctx, refusalWait)
	defer cancel()
	written := make(chan struct{})
	select {
	case s.record <- written:
	case <-ctx.Done():
		return
	}
	select {
	case <-written:
	case <-ctx.Done():
	}
}

func tooMany() error {
	return &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "Too many requests to this endpoint are under way.", RetryAfter: time.Second}
}

// judge makes an event of the arrival: it detects the provider, verifies the signature and chooses the reply.
func (s *Service) judge(t Target, a *Arrival) *hookglass.Event {
	at := s.db.Stamp(a.At).UTC().Truncate(time.Microsecond)
	ev := &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, at), EndpointNum: t.Endpoint.Num, EndpointID: t.Endpoint.ID,
		Type: hookglass.EventWebhook, ReceivedAt: at,
		Method: a.Method, Path: a.Path, RawQuery: a.RawQuery, URL: a.Scheme + "://" + a.Host + a.Target, Proto: a.Proto,
		ContentType: a.Headers.Get("Content-Type"), IP: addrText(a.Client), Size: int64(len(a.Body)),
		Payload: &hookglass.Payload{Headers: a.Headers, Trailers: a.Trailers, Body: a.Body},
	}
	req := s.presented(ev, t.Endpoint.Provider)
	found := provider.Detect(req)
	verdict := s.verify(req, found, t.known.configs)
	ev.Provider, ev.EventType, ev.EventRef, ev.DeliveryID = found.Provider, found.EventType, found.EventID, found.DeliveryID
	ev.SignatureStatus, ev.SignatureReason = verdict.Status, verdict.Reason
	ev.Reply = dated(reply(t, ev, req, found))
	return ev
}

// loopback is the client address of test requests.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.Unmap().WithZone("").String()
}
