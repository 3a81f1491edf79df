// Package tunnel delivers captured events to connected local machines: tickets, sessions, fan-out, delivery reports,
// outages and their recovery, and the replays and answers that use the same connection. It sees a [Conn], not a socket.
//
// # The table is the truth
//
// A session has a cursor for each endpoint that it is subscribed to, and is sent the events after it, in order of
// capture. An announcement only says that it is time to read, and a slow poll backs it up. So any node can serve any
// client, and nothing is queued in memory: a client that reads slowly is sent later events from the table when it is
// ready, and one that does not read at all is disconnected and recovers through its gap.
//
// A node holds a lease. When it ends, other nodes end the node's subscriptions as lost, so an outage is noticed
// whichever node dies.
//
// # Concurrency
//
// A Service is safe for concurrent use. The methods of a [Session] are called by the one goroutine that reads from its
// Conn; another goroutine, which exists only while there is something to send, writes to it.
package tunnel

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// Times of the protocol and of leases.
const (
	// TicketLife is how long a ticket is valid (spec, "Tunnel ticket").
	TicketLife = 30 * time.Second
	// beatEvery is how often the server sends a client a sign of life (spec: decisions, section 10).
	beatEvery = 3 * time.Second
	// pingEvery is how often the server pings a client. A client has 10 s to answer, so one that vanished is noticed
	// within 20 s.
	pingEvery = 10 * time.Second
	// confirmEvery bounds how often a client is pinged while many events are sent, to learn how many it has received.
	confirmEvery = 25 * time.Millisecond
	// confirmBurst is how many such pings may follow one another without a pause after a quiet time.
	confirmBurst = 20
	// leaseFor is how long a node's lease lasts. It is renewed five times in that time.
	leaseFor = 15 * time.Second
	// lookEvery is the slow poll, for announcements that were lost and for rights that end without one. Revoking a
	// token must close its sockets within 5 s (spec: decisions, section 14).
	lookEvery  = 2 * time.Second
	purgeEvery = time.Minute
	// stopFor is how long clients have to disconnect when the server stops.
	stopFor = 5 * time.Second
)

// windowEvents and windowBytes bound what a client has been sent and has not acknowledged. A client that makes no
// progress with a full window is disconnected (spec: decisions, section 10; reliability, row 85).
const (
	windowEvents = 1000
	windowBytes  = 4 << 20
)

const (
	// largeBytes bounds the large events that are being sent, each held for as long as sending it to one client takes.
	// A batch of at most unboundBytes is not counted: a socket may hold that much.
	largeBytes   = 160 << 20
	unboundBytes = 1 << 20
	// messageTimes is how much memory an event takes while it is sent, in multiples of its size, and listTimes on a
	// page of several.
	messageTimes = 2
	listTimes    = 4
	// While others wait for memory, a client must take 2 MiB a second, after 5 s of grace.
	recallAfter = 5 * time.Second
	recallPace  = 2 << 20
	// roomTime is how long a session waits for memory before it does what else there is to do.
	roomTime = 3 * time.Second
)

// Why the server ends a socket, in the words of Action Cable.
const (
	ReasonUnauthorized = "unauthorized"
	ReasonRestart      = "server_restart"
)

// Conn is a client's socket as a session needs it. Deliver, Confirm, Reject and Beat fail when the socket has accepted
// nothing for 10 s.
type Conn interface {
	// Confirm confirms a subscription.
	Confirm(ctx context.Context, key string) error
	// Reject refuses or ends a subscription.
	Reject(ctx context.Context, key string) error
	// Deliver sends a message on a subscription.
	Deliver(ctx context.Context, key string, message []byte) error
	// Beat sends a sign of life with the server's time.
	Beat(ctx context.Context, now time.Time) error
	// Ping returns when the client has received everything sent before; it fails when that takes too long.
	Ping(ctx context.Context) error
	// Disconnect tells the client the reason and closes the socket. It does not wait.
	Disconnect(reason string, reconnect bool)
	// Abort closes the socket without a reason.
	Abort()
}

// Config is what a Service is made of.
type Config struct {
	// Mail returns a captured mail as local machines get it.
	Mail func(*hookglass.Event) []byte
	// HoldAll reads events once there is memory for that many times their size, and keeps it reserved until ctx is
	// done. The capture capability provides it; nil: there is always room. It answers unavailable.
	HoldAll func(ctx context.Context, who hookglass.Principal, times int64, read func(*store.View) ([]*hookglass.Event, error)) ([]*hookglass.Event, error)
	// Retention is the age at which events are purged if their account sets none.
	Retention time.Duration
	// Draining is closed when the server stops.
	Draining <-chan struct{}
	Log      *slog.Logger
}

// Service is the capability.
type Service struct {
	Config
	db *store.DB
	// bodies bounds the large events that are being sent to clients.
	bodies *fair.Bodies
	node   string
	lease  time.Duration
	life   time.Duration // of tickets
	alone  bool          // no other node can be alive when this one starts: an embedded database has one
	held   chan struct{} // closed when the node has its lease
	stops  chan struct{} // closed when the server stops, which may be before that

	mu       sync.Mutex
	sessions map[*Session]struct{}
	closed   bool
	ended    []store.TunnelEnd // not stored yet
	settling sync.Mutex        // held by who stores them
	open     sync.WaitGroup
}

// New returns the service. Sockets are served while [Service.Run] runs.
func New(db *store.DB, cfg Config) *Service {
	if cfg.HoldAll == nil {
		cfg.HoldAll = func(ctx context.Context, who hookglass.Principal, _ int64, read func(*store.View) ([]*hookglass.Event, error)) ([]*hookglass.Event, error) {
			return store.Read(ctx, db, who, read)
		}
	}
	return &Service{
		bodies: fair.NewBodies(largeBytes).Pace(recallAfter, recallPace),
		Config: cfg, db: db, node: hookglass.NewRandomID("node"), lease: leaseFor, life: TicketLife, alone: !db.Postgres(), held: make(chan struct{}), stops: make(chan struct{}), sessions: make(map[*Session]struct{}),
	}
}

// Run keeps the node's lease, ends the sessions of dead nodes, and closes sockets whose rights have ended, until ctx
// ends or the server drains. Then it tells all clients to reconnect, and returns when no session is left and ctx has
// ended.
func (s *Service) Run(ctx context.Context) error {
	work, stop := context.WithCancel(ctx)
	defer stop()
	var parts sync.WaitGroup
	parts.Go(func() { s.keep(work) })
	parts.Go(func() { s.watch(work) })
	select {
	case <-s.Draining:
	case <-ctx.Done():
	}
	s.disconnectAll()
	s.open.Wait()
	<-ctx.Done()
	stop()
	parts.Wait()
	s.leave(context.WithoutCancel(ctx))
	return nil
}

// disconnectAll disconnects all clients, and accepts no new ones.
func (s *Service) disconnectAll() {
	s.mu.Lock()
	s.closed = true
	close(s.stops)
	for x := range s.sessions {
		x.disconnect(ReasonRestart, true)
	}
	s.mu.Unlock()
	time.AfterFunc(stopFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for x := range s.sessions {
			x.conn.Abort()
		}
	})
}

// Hold runs fn on a goroutine of its own, for which Run waits. It serves a socket, from before its session begins until
// after it has ended. When the server stops it returns false and runs nothing.
func (s *Service) Hold(fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.open.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				s.Log.Error("panic in a socket", "panic", r, "stack", string(debug.Stack()))
			}
		}()
		fn()
	})
	return true
}

// aside runs fn on another goroutine and waits for it. Queries need a deep stack, which a goroutine as long-lived as a
// socket would keep.
func aside[T any](fn func() (T, error)) (T, error) {
	type outcome struct {
		v     T
		err   error
		panic any
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panic = recover()
			done <- o
		}()
		o.v, o.err = fn()
	}()
	o := <-done
	if o.panic != nil {
		panic(o.panic)
	}
	return o.v, o.err
}

// leave removes the node, so that nobody waits for its lease to end.
func (s *Service) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stopFor)
	defer cancel()
	s.settle(ctx)
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.ForgetTunnelNode(s.node) })
	if err != nil {
		s.Log.Warn("the node's lease on its tunnels was not given back", "error", err)
	}
}

// digest hashes a secret for storage. Its 128 random bits need no salt.
func digest(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}
