// Package release sends caught mails on to people, through the operator's relay, when a person asks for it. It hides
// who may receive them, which header fields precede them, and how many releases may run at once.
//
// A release is sent at most once. It is stored as unknown before the relay is contacted, and its outcome afterwards.
// One that is found without an outcome stays unknown and is never sent again.
//
// A Service is safe for concurrent use.
package release

import (
	"context"
	"log/slog"
	"net/mail"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

const (
	// sendTime bounds the conversation with the relay, roomTime the wait for memory before it. Together they stay below
	// the time that a client waits for its answer.
	sendTime = 35 * time.Second
	roomTime = 10 * time.Second
	// stopTime is how long a release under way may go on once the server stops, so that its outcome can still be stored
	// and answered.
	stopTime = 12 * time.Second
	// recordTime bounds how long storing the outcome of a release may take, even when the caller is gone.
	recordTime = 15 * time.Second
)

// Releases are bounded like replays, with lower limits because all of them go to one relay. A tenant gets half of the
// turns at most and an endpoint a quarter, so that nobody takes all turns while the relay hangs.
const (
	turnsAtOnce   = 16
	turnsOfTenant = turnsAtOnce / 2
	largeBytes    = 64 << 20
	// perMinute is how many releases an account may begin in a minute: people have to read them.
	perMinute = 60
)

// Relay hands mail to a mail server that takes it over.
type Relay interface {
	// From is the sender's address, to which the relay reports failed deliveries.
	From() mail.Address
	// Pass hands over one mail, given in consecutive parts, to all of the recipients or to none. The error is for the
	// log: it says why, where the relay gave no reason.
	Pass(ctx context.Context, to []string, parts ...[]byte) (hookglass.Relayed, error)
}

// Config is what a Service is made of.
type Config struct {
	Relay      Relay // nil: nothing is released
	Recipients Recipients
	Stopping   <-chan struct{} // closed when the server begins to stop; nil: never
	Log        *slog.Logger
}

// Service is the capability.
type Service struct {
	Config
	db     *store.DB
	turns  *fair.Workers
	bodies *fair.Bodies

	stopTime time.Duration // the constant; shorter in tests
}

// New returns the service.
func New(db *store.DB, cfg Config) *Service {
	return &Service{Config: cfg, db: db, turns: fair.NewWorkers(turnsAtOnce, turnsOfTenant), bodies: fair.NewBodies(largeBytes), stopTime: stopTime}
}

// On reports whether mail can be released in this installation.
func (s *Service) On() bool { return s.Relay != nil && len(s.Recipients.entries) > 0 }

// Release hands a caught mail to the relay once, waits for its answer and stores it. A mail that the relay does not
// take is no error but a release with a Failure. It answers release_off, validation_failed, recipient_not_allowed,
// not_found, not_a_mail, no_raw_message and, when there are too many, rate_limited.
func (s *Service) Release(ctx context.Context, who hookglass.Principal, ref, eventID string, to []string) (*hookglass.Release, error) {
	if err := who.MayManage(); err != nil {
		return nil, err
	}
	if !s.On() {
		return nil, hookglass.Errorf(hookglass.CodeReleaseOff, "Mail is not released here. The operator of this installation allows it with --smtp-relay and --release-to.")
	}
	addresses, err := s.Recipients.read(to)
	if err != nil {
		return nil, err
	}
	endpoint, event, give, err := s.load(ctx, who, ref, eventID)
	if err != nil {
		return nil, err
	}
	defer give()
	if event.Type != hookglass.EventEmail {
		return nil, hookglass.Errorf(hookglass.CodeNotAMail, "This is a webhook; only a mail can be released. A webhook is replayed.")
	}
	if event.Payload == nil || len(event.Body) == 0 {
		return nil, hookglass.Errorf(hookglass.CodeNoRawMessage, "There is no raw message of this mail that could be released.")
	}
	if err := s.db.AllowEvenly(ctx, "release:"+fair.Tenant(endpoint.AccountID, endpoint.Num), perMinute, time.Minute); err != nil {
		return nil, err
	}
	r := &hookglass.Release{
		ID: hookglass.NewSortableID(hookglass.PrefixRelease, s.db.Now()), EndpointNum: endpoint.Num, EventSeq: event.Seq, EventID: event.ID, To: addresses,
		Relayed: hookglass.Relayed{Status: hookglass.ReleaseUnknown},
	}
	if err := s.begin(ctx, r); err != nil {
		return nil, err
	}
	sending, cancel := s.sending(ctx)
	defer cancel()
	var why error
	r.Relayed, why = s.Relay.Pass(sending, r.To, fields(r, s.Relay.From(), event.Body), event.Body)
	s.told(ctx, who, r, why)
	// The outcome stands even when it cannot be stored: an error would make the caller send the mail again.
	err = s.db.Persist(context.WithoutCancel(ctx), recordTime, hookglass.System, func(tx *store.Tx) error { return tx.FinishRelease(r) })
	if err != nil {
		s.Log.ErrorContext(ctx, "the outcome of a release cannot be stored", "release", r.ID, "status", string(r.Status), "error", err)
	}
	return r, nil
}

// load waits for a turn and for memory and then reads the mail; give returns both.
func (s *Service) load(ctx context.Context, who hookglass.Principal, ref, eventID string) (endpoint hookglass.Endpoint, event *hookglass.Event, give func(), err error) {
	var size int64
	err = s.db.View(ctx, who, func(v *store.View) error {
		if endpoint, err = v.Endpoint(ref); err != nil {
			return err
		}
		listed, err := v.ListedEvent(ref, eventID)
		if err != nil {
			return err
		}
		size = listed.Size
		return nil
	})
	if err != nil {
		return endpoint, nil, nil, err
	}
	tenant := fair.Tenant(endpoint.AccountID, endpoint.Num)
	end, ok := s.turns.Take(tenant, endpoint.Num)
	if !ok {
		return endpoint, nil, nil, &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "Too many releases of this account are under way.", RetryAfter: 2 * time.Second}
	}
	leave, ok := s.bodies.Await(ctx, tenant, size, roomTime)
	if !ok {
		end()
		return endpoint, nil, nil, &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "Too many releases of large mails are under way.", RetryAfter: 2 * time.Second}
	}
	give = func() { leave(); end() }
	err = s.db.View(ctx, who, func(v *store.View) error {
		event, err = v.Event(string(endpoint.ID), eventID)
		return err
	})
	if err != nil {
		give()
		return endpoint, nil, nil, err
	}
	return endpoint, event, give, nil
}

// begin stores the release, or nothing when ctx has already ended. A transaction that has begun is not interrupted:
// whether it committed would be unknown, and a stored release without an outcome counts as possibly sent.
func (s *Service) begin(ctx context.Context, r *hookglass.Release) error {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return s.db.Update(whole, hookglass.System, func(tx *store.Tx) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return tx.BeginRelease(r)
	})
}

// sending returns the context of the conversation with the relay. It outlives the caller, since after an interruption
// nobody would know whether the mail was sent; it ends stopTime after the server begins to stop.
func (s *Service) sending(ctx context.Context) (context.Context, context.CancelFunc) {
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	go func() {
		select {
		case <-sending.Done():
			return
		case <-s.Stopping:
		}
		select {
		case <-sending.Done():
		case <-time.After(s.stopTime):
			cancel()
		}
	}()
	return sending, cancel
}

// told logs who released what, without addresses and without anything the mail says.
func (s *Service) told(ctx context.Context, who hookglass.Principal, r *hookglass.Release, why error) {
	attributes := []any{
		"release", r.ID, "event", string(r.EventID), "account", who.Account, "user", who.User, "token", who.Token, "recipients", len(r.To),
		"status", string(r.Status), "relay_code", r.Code,
	}
	if r.Failure != nil {
		attributes = append(attributes, "failure", r.Failure.Code)
	}
	if why != nil {
		attributes = append(attributes, "reason", strings.ToValidUTF8(why.Error(), "\uFFFD"))
	}
	s.Log.InfoContext(ctx, "a mail was released", attributes...)
}
