// Package tunnel carries captured events to connected local machines, the last mile: tickets, sessions, fan-out,
// delivery reports, outages and their recovery, replays and answers that come back the same way. It sees a [Conn], not
// a socket.
//
// # What is true is in the table
//
// A session holds a cursor for each endpoint that it is subscribed to, and is sent what is captured behind it, in order
// of capture. An announcement only says that it is time to read; a slow poll backs that up. So any node serves any
// client, and nothing waits in memory: a client that reads slowly reads later from the table, and one that does not
// read at all is given up and recovers by its gap.
//
// A node holds a lease. Subscriptions of a node whose lease has ended are ended by the others as lost, so an outage is
// noticed whoever dies.
//
// # Concurrency
//
// A Service is safe for concurrent use. The methods of a [Session] are called by the one goroutine that reads from its
// Conn; another, which is there while there is something to send, writes to it.
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
	// beatEvery is how often a client is shown that the server is there (decisions, section 10).
	beatEvery = 3 * time.Second
	// pingEvery is how often a client is asked whether it is; with the 10 s that it has to answer, one that vanished is
	// noticed within 20 s.
	pingEvery = 10 * time.Second
	// confirmEvery bounds how often it is asked while many events go out, to know how far it has received them.
	confirmEvery = 25 * time.Millisecond
	// confirmBurst is how many times it may be asked without a pause, when few did go out before.
	confirmBurst = 20
	// leaseFor is how long the sessions of a node live without a word of it. It is renewed five times in that time.
	leaseFor = 15 * time.Second
	// lookEvery is the slow poll: for announcements that were lost, and for rights that ended without one. A token's
	// revocation must end its sockets within 5 s (decisions, section 14).
	lookEvery  = 2 * time.Second
	purgeEvery = time.Minute
	// stopFor is for clients to be told that the server stops.
	stopFor = 5 * time.Second
)

// window bounds what a client has been sent and has not acknowledged: the queue of its socket. One that stands still
// behind it is closed (decisions, section 10; reliability, row 85).
const (
	windowEvents = 1000
	windowBytes  = 4 << 20
)

const (
	// largeBytes bounds the large events that are being sent, each to one client for as long as that takes. What is
	// read together and has no more than unboundBytes is within what a socket may hold.
	largeBytes   = 160 << 20
	unboundBytes = 1 << 20
	// messageTimes is how many times its size an event takes while it is sent, as a message that is being written, and
	// listTimes on a page of several.
	messageTimes = 2
	listTimes    = 4
	// While others wait for room a client has the time for 2 MiB a second and 5 s.
	recallAfter = 5 * time.Second
	recallPace  = 2 << 20
	// roomTime is how long a session waits for room before it looks again at what else there is to do.
	roomTime = 3 * time.Second
)

// Why the server ends a socket, in the words of Action Cable.
const (
	ReasonUnauthorized = "unauthorized"
	ReasonRestart      = "server_restart"
)

// Conn is a client's socket as a session needs it. Deliver, Confirm, Reject and Beat fail when the socket has taken
// nothing for 10 s.
type Conn interface {
	// Confirm tells that a subscription is there.
	Confirm(ctx context.Context, key string) error
	// Reject tells that one is not, or is no longer.
	Reject(ctx context.Context, key string) error
	// Deliver sends a message on a subscription.
	Deliver(ctx context.Context, key string, message []byte) error
	// Beat shows that the server is there, and what its clock shows.
	Beat(ctx context.Context, now time.Time) error
	// Ping returns when the other side has received what was sent before; it fails when that takes too long.
	Ping(ctx context.Context) error
	// Disconnect says why the socket ends, and ends it. It does not wait.
	Disconnect(reason string, reconnect bool)
	// Abort ends the socket without a word.
	Abort()
}

// Config is what a Service is made of.
type Config struct {
	// Mail is a captured mail as local machines get it.
	Mail func(*hookglass.Event) []byte
	// HoldAll reads events as there is room for so many times their size until ctx is done, as the capability that
	// captures can; nil: there is always room. It answers unavailable.
	HoldAll func(ctx context.Context, who hookglass.Principal, times int64, read func(*store.View) ([]*hookglass.Event, error)) ([]*hookglass.Event, error)
	// Retention is the age at which events are purged where an account sets none.
	Retention time.Duration
	// Draining is closed when the server stops.
	Draining <-chan struct{}
	Log      *slog.Logger
}

// Service is the capability.
type Service struct {
	Config
	db *store.DB
	// bodies are the large events that are being sent to clients.
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
	ended    []ending // what could not be written down yet
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

// Run keeps the node's lease, ends what other nodes left behind, and closes sockets whose rights have ended, until ctx
// ends or the server drains. Then it tells every client that it may come back, and returns when no session is left and
// ctx has ended.
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

// disconnectAll tells all clients that the server stops, and takes no new ones.
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

// Hold runs fn on a goroutine of its own, for which Run waits: a socket is served there from before its session begins
// until after it has ended. It reports false, and runs nothing, when the server stops.
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

// aside runs fn on another goroutine and waits for it. What asks a database needs a deep stack, and a goroutine that
// lives as long as a socket would keep it for nothing.
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

// leave forgets the node, so that nobody waits for its lease to end.
func (s *Service) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stopFor)
	defer cancel()
	s.settle(ctx)
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.ForgetTunnelNode(s.node) })
	if err != nil {
		s.Log.Warn("the node's lease on its tunnels was not given back", "error", err)
	}
}

// digest is how secrets of 128 random bits are stored.
func digest(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}
