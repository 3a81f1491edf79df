// Package release sends caught mails on to people, through the operator's relay, when a person asks for it. It hides to
// whom mail may go, what stands before a mail that is sent on, and how many releases there may be at a time.
//
// At most once. A release is stored as unknown before the relay is spoken to, and its end behind it. Whoever finds one
// without an end leaves it so: uncertainty is a status, not a reason to repeat.
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
	// sendTime is for everything that is said to the relay, and roomTime before it for room: together they are less
	// than a client waits for its answer.
	sendTime = 35 * time.Second
	roomTime = 10 * time.Second
	// stopTime is what is left to a release once the server stops: its end can be stored, and answered.
	stopTime = 12 * time.Second
	// recordTime bounds how long it takes to write down what became of a release, even when the caller is gone.
	recordTime = 15 * time.Second
)

// Releases have the bounds of replays, with fewer of them: they go to one relay. A tenant has half of the turns at most
// and an endpoint a quarter, so that a relay that hangs leaves turns for others.
const (
	turnsAtOnce   = 16
	turnsOfTenant = turnsAtOnce / 2
	largeBytes    = 64 << 20
	// perMinute is how many an account may begin in a minute, for people have to read them.
	perMinute = 60
)

// Relay hands mail to a mail server that takes it over.
type Relay interface {
	// From is the address that mail is sent by, to which the relay's reports of failure go.
	From() mail.Address
	// Pass hands over a mail, the parts of which follow one another, to all of the recipients or to none. The error
	// says for the log why, where the relay did not.
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

	stopTime time.Duration // stopTime; a test has less patience
}

// New returns the service.
func New(db *store.DB, cfg Config) *Service {
	return &Service{Config: cfg, db: db, turns: fair.NewWorkers(turnsAtOnce, turnsOfTenant), bodies: fair.NewBodies(largeBytes), stopTime: stopTime}
}

// On reports whether mail can be released in this installation.
func (s *Service) On() bool { return s.Relay != nil && len(s.Recipients.entries) > 0 }

// Release hands a caught mail to the relay, once, waits for what the relay says and remembers it; a relay that does not
// take the mail is a release whose Failure says why. It answers release_off, validation_failed, recipient_not_allowed,
// not_found, not_a_mail, no_raw_message and, where there have been too many, rate_limited.
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
	// It was sent, or not, whether or not that can be stored: an error would have the caller send it again.
	err = s.db.Persist(context.WithoutCancel(ctx), recordTime, hookglass.System, func(tx *store.Tx) error { return tx.FinishRelease(r) })
	if err != nil {
		s.Log.ErrorContext(ctx, "what became of a release can not be stored", "release", r.ID, "status", string(r.Status), "error", err)
	}
	return r, nil
}

// load finds the mail, once there is a turn and room for it; both are given back when give is called.
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
		event, err = v.EventOf(endpoint, eventID)
		return err
	})
	if err != nil {
		give()
		return endpoint, nil, nil, err
	}
	return endpoint, event, give, nil
}

// begin stores the release. Told to stop before, it stores none; told so while it is stored it goes on, since it would
// not know whether it did, and of that would be said later that nobody knows whether it was sent.
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

// sending is the context of a release that has begun. A caller who goes away does not end it, for then nobody would
// know what became of it; a server that stops does, after a while.
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

// told writes into the log who released what, without addresses and without what the mail says.
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
