package store

import (
	"sync"
	"time"

	"hookglass"
)

// What follows a captured event is stored with it, and usually the node that captured it is the one to begin it. So a
// capture asks who works such things on its node before it is stored. Where there is room they are stored as claimed,
// and handed over with the event when both are on disk: nobody looks for them, claims them or loads the event again.
// All else waits in the tables for whoever comes.

// Taker begins at once what follows webhooks that this process captures. Its methods return without waiting for
// anything.
type Taker[W any] interface {
	// Offer is asked before an event is stored whether what follows it can begin at once, and until when it is claimed
	// then, a delivery for its target's timeout longer; zero: it cannot. account is 0 for a temporary endpoint.
	Offer(account int64, event *hookglass.Event) (until time.Time)
	// Take ends an offer that was accepted, with what was stored and claimed: nothing when the event was not stored. A
	// delivery without a claim is told of alone: it waits for its target's turn.
	// The event is the taker's own.
	Take(account int64, event *hookglass.Event, work []W)
}

// HandedForward is a delivery that its taker sends, and what decides whether it may go.
type HandedForward struct {
	Queue ForwardQueue
	ClaimedForward
}

// takers are those of this process.
type takers struct {
	mu       sync.RWMutex // held for reading while they are asked
	forwards Taker[HandedForward]
	tasks    map[TaskKind]Taker[Task]
}

// HandForwards hands deliveries over to t from now on, and to nobody when t is nil. Once it returns, the former taker
// is asked no more; it is still told the outcome of offers that it accepted before.
func (db *DB) HandForwards(t Taker[HandedForward]) {
	db.takers.mu.Lock()
	defer db.takers.mu.Unlock()
	db.takers.forwards = t
}

// HandTasks is HandForwards for tasks of a kind.
func (db *DB) HandTasks(kind TaskKind, t Taker[Task]) {
	db.takers.mu.Lock()
	defer db.takers.mu.Unlock()
	if db.takers.tasks == nil {
		db.takers.tasks = make(map[TaskKind]Taker[Task])
	}
	db.takers.tasks[kind] = t
}

// offered is an offer that was accepted, and what was stored of it.
type offered[W any] struct {
	taker Taker[W]  // nil: there is none
	until time.Time // zero then
	work  []W
}

func offer[W any](t Taker[W], c *captureOp) (o offered[W]) {
	if t != nil {
		if o.until = t.Offer(c.account, c.event); !o.until.IsZero() {
			o.taker = t
		}
	}
	return o
}

// crowdOps is the number of captures in one group from which on nothing is handed over: many senders wait for their
// answers then, and the work that follows can wait in the tables.
const crowdOps = 8

// offer asks the takers for what follows the captures among the ops.
func (db *DB) offer(ops []*op) {
	if len(ops) >= crowdOps {
		return
	}
	db.takers.mu.RLock()
	defer db.takers.mu.RUnlock()
	for _, o := range ops {
		c := o.capture
		if c == nil || c.event.Type != hookglass.EventWebhook { // a mail is judged first
			continue
		}
		if c.work.Forward {
			c.forwards = offer(db.takers.forwards, c)
		}
		if len(c.work.Tasks) == 0 {
			continue
		}
		c.tasks = make([]offered[Task], len(c.work.Tasks))
		for i, kind := range c.work.Tasks {
			c.tasks[i] = offer(db.takers.tasks[kind], c)
		}
	}
}

// handed returns what is to be called when the sender has been answered, which may change the event: it hands over what
// was stored.
func (c *captureOp) handed(stored bool) (take []func()) {
	if c.forwards.taker != nil {
		take = append(take, c.forwards.handed(c, stored))
	}
	for i := range c.tasks {
		if c.tasks[i].taker != nil {
			take = append(take, c.tasks[i].handed(c, stored))
		}
	}
	return take
}

func (o *offered[W]) handed(c *captureOp, stored bool) func() {
	if !stored {
		return func() { o.taker.Take(c.account, c.event, nil) }
	}
	ev := asStored(c.event)
	return func() { o.taker.Take(c.account, ev, o.work) }
}

// asStored is a copy of an event that was just captured, as it would be read.
func asStored(ev *hookglass.Event) *hookglass.Event {
	e := *ev
	if ev.Payload == nil {
		return &e
	}
	p := *ev.Payload
	e.Payload = &p
	if p.Reply != nil {
		r := *p.Reply
		p.Reply = &r
		if !r.Unanswered() {
			e.Status = r.Status
		}
	}
	return &e
}

// taskUntil is the time until which the i-th task is claimed from the start. It is zero for a task that is not claimed.
func (c *captureOp) taskUntil(i int) time.Time {
	if i >= len(c.tasks) {
		return time.Time{}
	}
	return c.tasks[i].until
}

// claimedUntil is a time in microseconds, as a statement takes it, and 0 for the zero time: nothing is claimed.
func claimedUntil(until time.Time) int64 {
	if until.IsZero() {
		return 0
	}
	return until.UnixMicro()
}

// hand gives captures, which have their numbers, what was stored as claimed.
func hand(captures []*captureOp, forwards []HandedForward, tasks []Task) {
	if len(forwards) == 0 && len(tasks) == 0 {
		return
	}
	bySeq := make(map[int64]*captureOp, len(captures))
	for _, c := range captures {
		bySeq[c.event.Seq] = c
	}
	for _, h := range forwards {
		if c := bySeq[h.EventSeq]; c != nil {
			c.forwards.work = append(c.forwards.work, h)
		}
	}
	for _, t := range tasks {
		c := bySeq[t.EventSeq]
		if c == nil {
			continue
		}
		for i, kind := range c.work.Tasks {
			if kind == t.Kind && !c.taskUntil(i).IsZero() {
				c.tasks[i].work = append(c.tasks[i].work, t)
			}
		}
	}
}

// unhand forgets what an attempt to store the captures handed over.
func unhand(ops []*op) {
	for _, o := range ops {
		if c := o.capture; c != nil {
			c.forwards.work = nil
			for i := range c.tasks {
				c.tasks[i].work = nil
			}
		}
	}
}

// handedForward are the columns of a delivery that is handed over: of a row s that has it, and handedTarget.
const handedForward = "s.num, s.event, s.claim, s.created_at, " + handedTarget

// handedTarget are the columns of what decides whether a delivery may go: of its target t, and the endpoint e and
// account a of that.
const handedTarget = `t.id, e.num, e.id, t.name, t.url, t.timeout_seconds, t.retry_count, t.failures,
	coalesce(a.id, 0), coalesce(a.plan, ''), coalesce(a.subscription, ''), coalesce(a.payment_method, 0)`

func scanHandedForward(scan func(...any) error) (h HandedForward, err error) {
	var created int64
	h.Queue, err = scanHandedTarget(scan, &h.Num, &h.EventSeq, &h.Claim, &created)
	h.claimed(time.UnixMicro(created))
	return h, err
}

// scanHandedTarget scans a row of handedTarget, which other columns stand before.
func scanHandedTarget(scan func(...any) error, before ...any) (q ForwardQueue, err error) {
	var timeout, payment int64
	var a hookglass.Account
	t := &q.Target
	err = scan(append(before, &t.ID, &t.EndpointNum, (*string)(&t.EndpointID), &t.Name, &t.URL, &timeout, &t.RetryCount, &t.Failures,
		&q.AccountID, (*string)(&a.Plan), (*string)(&a.Subscription), &payment)...)
	a.PaymentMethod = payment != 0
	t.Enabled, t.Timeout = true, time.Duration(timeout)*time.Second
	q.TargetID, q.Entitlements = t.ID, a.Entitlements()
	return q, err
}

// claimed fills in what a delivery that was stored as claimed has of its target.
func (h *HandedForward) claimed(at time.Time) {
	h.TargetID, h.EndpointNum, h.State, h.CreatedAt = h.Queue.TargetID, h.Queue.Target.EndpointNum, hookglass.ForwardSending, at.UTC()
}

func scanHandedTask(scan func(...any) error) (t Task, err error) {
	err = scan(&t.Num, &t.EventSeq, &t.Claim, &t.EndpointNum, (*string)(&t.Kind))
	return t, err
}
