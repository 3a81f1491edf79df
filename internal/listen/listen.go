// Package listen is the local end of the tunnel: it keeps a socket open to the server, sends each captured event to an
// address on this machine as its sender sent it, or runs a command for it, and reports the result. It hides
// reconnecting, catching up on missed events, the order and concurrency of deliveries, the writing of HTTP/1.1 without
// changing a byte of a header, and how a command is started, bounded and stopped.
//
// Nothing is lost between the two ends. A report is kept until the server has it. Events that arrived while there was
// no connection, or faster than the handler answers, are fetched afterwards. An event that was seen is not delivered
// again, however often it comes.
//
// Deliveries of an endpoint start in the order of capture, each a few milliseconds after the one before unless that is
// answered sooner. Up to 16 are under way at once, as with a sender's own calls, so a slow one may end after its
// successor. Commands run one after another. Endpoints do not wait for one another.
package listen

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
)

// Recovery says what to do about missed events.
type Recovery string

// The ways of recovery (spec: decisions, section 10). Outages during this listener's life are caught up on by all of
// them but none; they differ in how they treat earlier outages.
const (
	RecoverAll    Recovery = "all"
	RecoverAsk    Recovery = "ask"
	RecoverRecent Recovery = "recent" // what came in the last 120 minutes
	RecoverNone   Recovery = "none"
)

// recentWindow is how far RecoverRecent looks back (spec: decisions, section 14).
const recentWindow = 120 * time.Minute

// Endpoint is an endpoint to listen to.
type Endpoint struct {
	ID       string
	Email    bool
	Target   *Target // nil: events that no route takes are only shown
	Routes   []Route // the first that matches takes an event
	Events   []string
	Provider string
	When     func(*hookglass.Event) bool // a filter on what the listener is sent of an event; nil: all pass
	Headers  hookglass.Headers           // set on each request, replacing fields of the same name
}

// Config configures a listener.
type Config struct {
	Client    *client.Client
	Endpoints []Endpoint
	// Since is when the endpoints were made, if they were made for this listener: events that came to them before it
	// was connected are its own. Zero: they are older.
	Since   time.Time
	Recover Recovery
	// Ask decides whether to deliver n events that were missed before the listener began; nil declines. It is used with
	// RecoverAsk.
	Ask      func(ctx context.Context, n int) bool
	Chaos    *Chaos // nil: none
	Insecure bool   // do not verify certificates of targets
	// Environment is the environment of commands, to which the facts of their events are added.
	Environment []string
	ExitAfter   int // events after which the listener ends; 0: never
	Machine     api.TunnelMetadata
	// Tell receives notes about what happens, one at a time. It must not block for long.
	Tell func(Note)

	ahead  func(waiting int) time.Duration // headStart; set in tests
	looks  []time.Duration                 // takeover; set in tests
	limits *limits                         // usual; set in tests
}

// limits are how long a listener waits for what happens on this machine.
type limits struct {
	order   time.Duration // a delivery that is not sent by then no longer holds up the next
	connect time.Duration // to connect to a target and, with TLS, to shake hands
	answer  time.Duration // for a target to answer
	drain   time.Duration // for deliveries under way when the listener ends
}

var usual = limits{order: 50 * time.Millisecond, connect: 5 * time.Second, answer: 30 * time.Second, drain: 5 * time.Second}

const (
	laneWidth   = 16       // deliveries of one endpoint at once
	laneLength  = 1_000    // waiting events of one endpoint, as many as a server queues for a session
	laneBytes   = 64 << 20 // bytes of waiting events, for all endpoints
	keepPreview = 2 << 10  // bytes of an answer that a note shows
	rememberFor = 100_000  // events, and gaps and replays, that are remembered as seen
)

// Listener is the local end of a tunnel.
type Listener struct {
	cfg     Config
	carrier *carrier
	reports *reporter
	trial   *trial
	lanes   map[string]*lane
	started time.Time

	telling sync.Mutex
	replays chan struct{} // holds a value for each replay under way

	mu       sync.Mutex
	seen     *memory
	weight   int64 // bytes of bodies that wait
	admitted int   // events taken for delivery
	settled  int   // of those, the finished ones
	extra    int   // chaos: second deliveries to come
	arrivals uint64
	summary  Summary
	behind   time.Time       // since when events were left for later because too many waited; zero: none were
	quiet    map[string]bool // targets that did not answer
	heard    time.Time       // when the server's last message came
	pinged   time.Time       // when its last ping came
	ping     time.Time       // the same by the server's clock
	evidence int             // bytes of an answer that a report may carry
	enough   context.CancelFunc
	stopping bool
	leaveBy  time.Time       // when to stop waiting for what is under way; zero: the listener goes on
	online   bool            // it has been connected, so the next time is a reconnection
	lost     time.Time       // since when events may have been missed; zero: all are caught up on
	from     time.Time       // the same by the server's clock
	opened   time.Time       // when the first successful connection was begun; zero: there was none
	gone     map[string]bool // endpoints that the server refuses
	outage   *outage         // the one that is being caught up on, or nil
	gaps     *memory         // that were seen
	declined map[string]bool // gaps that the user declined to recover; false: the connection broke before that was said
	commands *memory         // replays that were accepted

	ordered      int   // replays that wait or are under way
	orderedBytes int64 // and their bytes

	work  sync.WaitGroup  // deliveries, replays and recoveries under way
	life  context.Context // of deliveries and replays, which outlast connections
	ended chan struct{}   // closed when they are no longer waited for
}

// New returns a listener. Its endpoints must be at least one.
func New(cfg Config) *Listener {
	if cfg.Tell == nil {
		cfg.Tell = func(Note) {}
	}
	if cfg.ahead == nil {
		cfg.ahead = headStart
	}
	if cfg.looks == nil {
		cfg.looks = takeover
	}
	if cfg.limits == nil {
		cfg.limits = &usual
	}
	l := &Listener{
		cfg: cfg, carrier: &carrier{insecure: cfg.Insecure, limit: cfg.limits.connect}, lanes: make(map[string]*lane), started: time.Now(),
		seen: newMemory(rememberFor), quiet: make(map[string]bool), gone: make(map[string]bool), declined: make(map[string]bool), commands: newMemory(rememberFor), gaps: newMemory(rememberFor),
		evidence: 64 << 10, replays: make(chan struct{}, replayWidth), enough: func() {}, ended: make(chan struct{}),
	}
	if cfg.Chaos != nil {
		l.trial = newTrial(cfg.Chaos.Seed)
	}
	l.reports = newReporter(cfg.Client, func(text string) { l.tell(Warning{text}) })
	for _, e := range cfg.Endpoints {
		l.lanes[e.ID] = newLane(l, e)
	}
	return l
}

// Run listens until ctx ends, until ExitAfter events are settled, which is no error, or until the server refuses for
// good. A lost connection is opened again, however often.
func (l *Listener) Run(ctx context.Context) (Summary, error) {
	ctx, l.enough = context.WithCancel(ctx)
	defer l.enough()
	var end context.CancelFunc
	l.life, end = context.WithCancel(context.WithoutCancel(ctx))
	var owned sync.WaitGroup
	owned.Go(func() { l.reports.run(l.life) })
	for _, lane := range l.lanes {
		owned.Go(func() { lane.run(l.life) })
	}
	err := l.stay(ctx)
	l.finish()
	close(l.ended)
	end()
	owned.Wait()
	l.work.Wait()
	l.carrier.close()
	return l.total(), err
}

// stay keeps a session open.
func (l *Listener) stay(ctx context.Context) error {
	pause := newBackoff()
	said := "" // the last error, so that a repeated one is told once
	for {
		began := time.Now()
		online, err := l.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if final(err) {
			return err
		}
		if online {
			l.mu.Lock()
			if l.lost.IsZero() {
				l.lost = l.heard // the connection may have been dead long before that was noticed
			}
			l.mu.Unlock()
		}
		if online || err.Error() != said {
			l.tell(Disconnected{err})
		}
		said = err.Error()
		wait := asked(pause.next(online && time.Since(began) > steady), err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// final reports whether trying again is useless.
func final(err error) bool {
	var refused *client.Error
	return errors.Is(err, errNoneLeft) || errors.As(err, &refused) && refused.Code != "" && (refused.Status == 401 || refused.Status == 403)
}

// errNoneLeft says that every endpoint was refused.
var errNoneLeft = errors.New("none of the endpoints can be listened to any more: they were deleted, or are not yours")

func (l *Listener) tell(n Note) {
	l.telling.Lock()
	defer l.telling.Unlock()
	l.cfg.Tell(n)
}

// total is the summary.
func (l *Listener) total() Summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.summary
	s.Waiting = l.admitted - l.settled
	s.Unreported = l.reports.waiting()
	s.Elapsed = time.Since(l.started)
	if l.trial != nil {
		s.Chaos = l.trial.result()
	}
	return s
}

// wanted returns the endpoints that the server has not refused.
func (l *Listener) wanted() []Endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.cfg.Endpoints), func(e Endpoint) bool { return l.gone[e.ID] })
}

func (l *Listener) ids() (all []string) {
	for _, e := range l.wanted() {
		all = append(all, e.ID)
	}
	return all
}

// forsake drops an endpoint that the server refuses.
func (l *Listener) forsake(id string) {
	l.mu.Lock()
	l.gone[id] = true
	l.mu.Unlock()
	l.tell(Warning{"the server refuses to send the events of " + id})
}

// route finds the target of an event; ok is false when the endpoint's filters leave it out.
func (e *Endpoint) route(r *api.TunnelRequest) (to *Target, ok bool) {
	event := eventType(r.ProviderEventData)
	if e.Provider != "" && e.Provider != r.DetectedProvider {
		return nil, false
	}
	means := func(pattern string) bool { return Matches(pattern, r.DetectedProvider, event) }
	if len(e.Events) > 0 && !slices.ContainsFunc(e.Events, means) {
		return nil, false
	}
	if e.When != nil && !e.When(told(r)) {
		return nil, false
	}
	return e.leads(r.DetectedProvider, event), true
}

// leads returns the target of the events of a provider and type; nil: they are shown only.
func (e *Endpoint) leads(provider, event string) *Target {
	for _, way := range e.Routes {
		if Matches(way.Events, provider, event) {
			return &way.Target
		}
	}
	return e.Target
}

// announced returns the target that the server is told of; nil: there is none.
func (e *Endpoint) announced() *Target {
	if e.Target == nil && len(e.Routes) > 0 {
		return &e.Routes[0].Target
	}
	return e.Target
}

func eventType(d *api.ProviderEventData) string {
	if d == nil || d.EventType == nil {
		return ""
	}
	return *d.EventType
}
