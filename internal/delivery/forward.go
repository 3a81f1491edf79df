package delivery

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

const (
	// How many deliveries a node has under way, and how many of them one tenant may have. outbound allows 256 requests
	// at a time and 64 for one tenant; the rest is for people's replays.
	forwardsAtOnce   = 192
	forwardsOfTenant = 64
	// largeBytes bounds the large bodies in memory at a time. Small ones are loaded in bulk, before it is known when
	// they will be sent.
	largeBytes = 96 << 20
	// forwardLease is how long a delivery may be with a silent node before others take it over, within the 60 s of
	// spec: decisions, section 14.
	forwardLease = 45 * time.Second
	// forwardRenew is how often a node renews its leases.
	forwardRenew = 15 * time.Second
	// turnPatience is how long a delivery waits for its turn. The target's timeout begins after it.
	turnPatience = 10 * time.Second
	// lookEvery is how often a node looks unprompted: for leases that ended and announcements that were lost.
	lookEvery = time.Second
	// maxLost is how many processes may die while they hold a delivery before it is given up: it may be what kills
	// them.
	maxLost = 5
	// softStop is how long deliveries under way may take when the node stops. The rest is handed back.
	softStop = 5 * time.Second
	// handBack is how soon a delivery that found no room is due again.
	handBack = time.Second
	// endAtOnce bounds how many deliveries that will never be sent one transaction ends.
	endAtOnce = 500
	// unwritten bounds the deliveries that have been sent and wait to be stored. It does not count those under way.
	unwritten = 256
	// clockJump is by how much a clock may go back without notice.
	clockJump = 5 * time.Second
	// recallEvery is how often to look for deliveries that are due implausibly late. An event that was captured under a
	// wrong clock may be stored after it was noticed that the clock went back.
	recallEvery = 20 * time.Second
)

// ForwardConfig is what a Forwarder is made of.
type ForwardConfig struct {
	Client  Client
	Proxied bool // webhooks come through proxies of this installation
	Log     *slog.Logger
	// Headers opens the headers that a target adds, by name; nil: no target has any.
	Headers func(hookglass.ForwardingTarget) (map[string]string, error)
	Now     func() time.Time // nil: the database's clock, by which all nodes measure what is due
	Delay   Delayed          // nil: evenly distributed ("full jitter")
	// Observe is called for each attempt with its outcome (2xx to 5xx, or the code of its failure), the delivery's new
	// state, and the time that the target took. It may be nil.
	Observe func(outcome string, state hookglass.ForwardState, took time.Duration)
	// Skipped is called for each delivery that is skipped because the same webhook was delivered. It may be nil.
	Skipped func()
	// InLine is called now and then while deliveries wait for a turn under a rate limit: how many targets have such
	// deliveries, how many these are, up to MostInLine, and since when the first waits. It is called once more when
	// there are none any longer. It may be nil.
	InLine func(targets, deliveries int, since time.Time)
}

// Forwarder delivers captured events to the forwarding targets of their endpoints, at least once each.
//
// The table of deliveries is the queue. A capture inserts deliveries in its own transaction. Each node leases
// deliveries that are due, as many as its shares allow each tenant and target, and stores their outcomes; one that will
// be retried waits in the table and holds no resources. When a node dies its leases end and others take over.
type Forwarder struct {
	ForwardConfig
	db       *store.DB
	freed    chan struct{} // a place was returned while a target waited for one, or a delivery is to be tried again
	settled  chan *settled
	sending  sync.WaitGroup
	looked   time.Time             // of the last round, by Now; used by Run only
	renewed  time.Time             // when the leases were last renewed, by Now; used by Run only
	away     bool                  // the database was away since; used by Run only
	recalled time.Time             // of the last look for recalls, by this machine's clock; used by Run only
	recalls  []store.ForwardRecall // what is left of the last recall; used by Run only

	handed *fair.Inbox[*settled] // deliveries that captures handed over
	bodies *fair.Bodies

	mu      sync.Mutex
	shares  *fair.Places
	starved bool                // a target has deliveries due and no place
	direct  *fair.Direct        // deliveries of endpoints that are handed over
	begun   map[int64]time.Time // when the last delivery to a target began, unless that is long ago
	held    map[int64]int64     // claims of the deliveries that were begun, until their outcome is stored
	lines   lines
}

// NewForwarder returns a forwarder. Nothing is sent without [Forwarder.Run].
func NewForwarder(db *store.DB, cfg ForwardConfig) *Forwarder {
	if cfg.Now == nil {
		cfg.Now = db.Now
	}
	if cfg.Observe == nil {
		cfg.Observe = func(string, hookglass.ForwardState, time.Duration) {}
	}
	if cfg.Skipped == nil {
		cfg.Skipped = func() {}
	}
	if cfg.InLine == nil {
		cfg.InLine = func(int, int, time.Time) {}
	}
	if cfg.Delay == nil {
		cfg.Delay = rand.N[time.Duration]
	}
	return &Forwarder{ForwardConfig: cfg, db: db, freed: make(chan struct{}, 1), settled: make(chan *settled, unwritten),
		handed: fair.NewInbox[*settled](), direct: fair.NewDirect(), begun: make(map[int64]time.Time), held: make(map[int64]int64), lines: newLines(),
		shares: fair.NewPlaces(forwardsAtOnce, forwardsOfTenant), bodies: fair.NewBodies(largeBytes)}
}

// Run delivers until ctx ends. Then it gives deliveries under way some time to finish and hands back the rest.
func (f *Forwarder) Run(ctx context.Context) error {
	heard := f.db.Listen(store.TopicForwards)
	defer heard.Close()
	sends, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var settling, beginning sync.WaitGroup
	settling.Go(func() { f.settleAll(ctx) })
	stop := make(chan struct{})
	beginning.Go(func() { f.handed.Serve(stop, func(s *settled) { f.beginHanded(sends, s) }) })
	f.db.HandForwards(forwardDesk{f})

	look := time.NewTimer(0)
	defer look.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-heard.C:
		case <-f.freed:
		case <-look.C:
		}
		began := time.Now()
		wait, err := f.round(ctx, sends)
		if err != nil {
			f.away = f.away || hookglass.Is(err, hookglass.CodeUnavailable)
			if ctx.Err() == nil {
				f.Log.Warn("deliveries could not be taken", "error", err)
			}
			wait = lookEvery
		}
		fair.Rest(ctx, began)
		look.Reset(wait)
	}

	f.db.HandForwards(nil)
	f.direct.Await(softStop) // what is not stored by then is sent when its lease ends
	close(stop)
	beginning.Wait()
	if !fair.Await(&f.sending, softStop) {
		cancel()
		f.sending.Wait()
	}
	close(f.settled)
	settling.Wait()
	return nil
}

// begin starts to send a delivery.
func (f *Forwarder) begin(sends context.Context, s *settled) {
	now := time.Now()
	f.mu.Lock()
	s.many = now.Sub(f.begun[s.TargetID]) < together
	f.begun[s.TargetID] = now
	f.held[s.Num] = s.Claim
	f.mu.Unlock()
	fair.Begin(&f.sending, func() {
		f.deliver(sends, s)
		f.hand(s)
	})
}

// load reads events, with the payloads of those up to maxSize. An event that is deleted meanwhile has no payload, like
// a large one.
func (f *Forwarder) load(ctx context.Context, seqs []int64, maxSize int64) (events map[int64]*hookglass.Event, err error) {
	err = f.db.Glance(ctx, hookglass.System, func(v *store.View) error {
		events, err = v.EventsBySeq(seqs, maxSize)
		return err
	})
	return events, err
}

// settled is a delivery with the outcome that is to be stored.
type settled struct {
	store.ClaimedForward
	queue  store.ForwardQueue
	event  *hookglass.Event
	placed bool // it holds a place
	direct bool // a capture handed it over
	many   bool // others go to the same target at the same time
	made   bool // there was an attempt; else it is handed back or skipped

	turn time.Time // when it had its turn; zero: its target has no bound
	gone bool      // its turn was used
	left bool      // it no longer keeps others from their turn
}

// deliver makes one attempt.
func (f *Forwarder) deliver(ctx context.Context, s *settled) {
	defer func() {
		if r := recover(); r != nil {
			f.Log.Error("panic in a delivery", "panic", r, "stack", string(debug.Stack()))
			f.fail(s, &hookglass.Failure{Code: codeInternal, Message: "The delivery failed inside the service."})
		}
	}()
	if s.Lost > maxLost {
		f.fail(s, &hookglass.Failure{Code: codeAbandoned, Message: "The delivery was begun several times and never came to an end."})
		return
	}
	if s.event.Payload == nil {
		light := s.event // shared with deliveries to other targets
		full, give := f.loadLarge(ctx, s)
		if full == nil {
			f.later(s, handBack)
			return
		}
		s.event = full
		defer func() {
			s.event = light
			give()
		}()
	}
	headers, err := f.headers(s)
	if err != nil {
		f.judge(s, hookglass.ForwardAttempt{At: f.Now().UTC(), Failure: &hookglass.Failure{
			Code: codeHeaders, Message: "The headers of the target cannot be read: this node has other keys than the one that sealed them.",
		}}, nil, 0)
		return
	}
	r, failure := buildForward(s.event, s.queue.Target.URL, headers, f.Proxied, f.Now())
	if failure != nil {
		f.fail(s, failure)
		return
	}
	waiting, cancel := context.WithTimeout(ctx, turnPatience)
	r.Turn, err = f.Client.Turn(waiting, tenant(&s.queue), 0) // the tenant's places are shared among its targets already
	cancel()
	if err != nil {
		f.later(s, 0)
		return
	}
	defer r.Turn.End()
	if !f.goes(ctx, s) {
		f.later(s, handBack)
		return
	}
	// At some 470 requests a second, one connection each would exhaust the ports between two machines. But a reused
	// connection may close with the request on it. So only attempts that a retry can follow share one, and retries do
	// not.
	r.keep = s.many && len(s.Attempts) == s.Spent && s.queue.Target.RetryCount > 0
	a, evidence, retryAfter := f.attempt(ctx, s, r)
	if withdrawn(a) {
		s.gone = false
		f.later(s, 0)
		return
	}
	f.judge(s, a, evidence, retryAfter)
}

// headers opens the headers that the target of a delivery adds.
func (f *Forwarder) headers(s *settled) (map[string]string, error) {
	t := s.queue.Target
	if t.Sealed == nil {
		return nil, nil
	}
	headers, err := f.Headers(t)
	if err != nil {
		f.Log.Error("the headers of a forwarding target cannot be opened", "target", t.ID, "error", err)
	}
	return headers, err
}

// judge ends a delivery or schedules its next attempt, by the outcome of this one. Evidence may be nil.
func (f *Forwarder) judge(s *settled, a hookglass.ForwardAttempt, evidence *hookglass.ForwardEvidence, retryAfter time.Duration) {
	s.Attempts, s.StatusCode, s.made = append(s.Attempts, a), a.StatusCode, true
	if s.Evidence = evidence; evidence != nil {
		evidence.Attempt = len(s.Attempts)
	}
	state, wait := JudgeForward(a, len(s.Attempts)-s.Spent, s.queue.Target.RetryCount, retryAfter, f.Delay)
	if s.State = state; state == hookglass.ForwardPending {
		s.NextAt = f.Now().Add(wait)
	} else {
		s.FinishedAt = f.Now()
	}
	f.Observe(outcome(a), state, a.Duration)
}

// loadLarge loads an event with a large body if there is memory for it, which the caller gives back. It returns nil
// when there is none or the event is gone.
func (f *Forwarder) loadLarge(ctx context.Context, s *settled) (full *hookglass.Event, give func()) {
	give, fits := f.bodies.Take(tenant(&s.queue), s.event.Size)
	if !fits {
		return nil, nil
	}
	events, err := f.load(ctx, []int64{s.EventSeq}, s.event.Size)
	if full = events[s.EventSeq]; err != nil || full == nil || full.Payload == nil {
		give()
		return nil, nil
	}
	return full, give
}

// outcome returns the result of an attempt for the figures: 2xx to 5xx, or the code of its failure.
func outcome(a hookglass.ForwardAttempt) string {
	if a.Failure != nil {
		return a.Failure.Code
	}
	return strconv.Itoa(a.StatusCode/100) + "xx"
}

// later hands a delivery back to the table, as if it had not been taken.
func (f *Forwarder) later(s *settled, wait time.Duration) {
	s.State, s.NextAt = hookglass.ForwardPending, f.Now().Add(wait)
}

// fail ends a delivery as failed, with an attempt that sent nothing.
func (f *Forwarder) fail(s *settled, failure *hookglass.Failure) {
	s.Attempts, s.StatusCode, s.made = append(s.Attempts, hookglass.ForwardAttempt{At: f.Now().UTC(), Failure: failure}), 0, true
	s.State, s.NextAt, s.FinishedAt = hookglass.ForwardFailed, time.Time{}, f.Now()
}

// hand passes a delivery on to be stored and returns its place, so that the next need not wait for the storage.
func (f *Forwarder) hand(s *settled) {
	f.settled <- s
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.direct {
		f.direct.Ended(s.EndpointNum)
	}
	f.leaves(s)
	if !s.placed {
		return
	}
	f.shares.Give(tenant(&s.queue), s.TargetID)
	if f.starved {
		f.lookAgain()
	}
}

// lookAgain starts the next round at once.
func (f *Forwarder) lookAgain() {
	select {
	case f.freed <- struct{}{}:
	default:
	}
}
