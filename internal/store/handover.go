package store

import (
	"sync"
	"time"

	"hookglass"
)

// The work that follows a captured event is stored with it, and usually the node that captured it also begins it. So
// before a capture is stored, the node's own workers are asked. If they have capacity, the work is stored as claimed by
// them, and handed over with the event once both are on disk: nobody has to find it, claim it or load the event again.
// Other work waits in the tables.

// Taker begins work on webhooks that this process captured at once. Its methods never block.
type Taker[W any] interface {
	// Offer is called before an event is stored. It returns until when the event's work is claimed, or zero if it
	// cannot begin at once. account is 0 for a temporary endpoint.
	Offer(account int64, event *hookglass.Event) (until time.Time)
	// Take ends an accepted offer with the work that was stored as claimed, none if the event was not stored. A
	// delivery without a claim comes alone: it waits for its target's turn. The event belongs to the taker.
	Take(account int64, event *hookglass.Event, work []W)
}

// HandedForward is a delivery for its taker to send, with what decides whether it may be sent.
type HandedForward struct {
	Queue ForwardQueue
	ClaimedForward
}

// takers holds the takers of this process.
type takers struct {
	mu       sync.RWMutex // held for reading while takers are asked
	forwards Taker[HandedForward]
	tasks    map[TaskKind]Taker[Task]
}

// HandForwards hands deliveries to t from now on; nil is nobody. Once it returns, the former taker gets no more offers,
// but still hears the outcome of those that it accepted.
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

// offered is an accepted offer, and its work once stored.
type offered[W any] struct {
	taker Taker[W]  // nil: there is none
	until time.Time // zero if there is none
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

// crowdOps is the number of captures in a group from which nothing is handed over: with so many senders waiting for
// answers, further work can wait in the tables.
const crowdOps = 8

// offer offers the work of the captures among the ops to the takers.
func (db *DB) offer(ops []*op) {
	if len(ops) >= crowdOps {
		return
	}
	db.takers.mu.RLock()
	defer db.takers.mu.RUnlock()
	for _, o := range ops {
		c := o.capture
		if c == nil || c.event.Type != hookglass.EventWebhook { // mail waits for its verdict
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

// handed returns functions that hand over the stored work. Call them after the sender was answered, because takers may
// change the event.
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

// asStored returns a copy of a just captured event as it would be read from the database.
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

// taskUntil returns until when the i-th task is claimed, or zero if it is not.
func (c *captureOp) taskUntil(i int) time.Time {
	if i >= len(c.tasks) {
		return time.Time{}
	}
	return c.tasks[i].until
}

// claimedUntil returns a time in microseconds for a statement, or 0 for the zero time, which is no claim.
func claimedUntil(until time.Time) int64 {
	if until.IsZero() {
		return 0
	}
	return until.UnixMicro()
}

// hand adds the work that was stored as claimed to its captures, which have their Seqs.
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

// unhand drops the work of a failed attempt to store the captures.
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

// handedForward lists the columns of a handed delivery: those of its row s, then handedTarget.
const handedForward = "s.num, s.event, s.claim, s.created_at, " + handedTarget

// handedTarget lists the columns that decide whether a delivery may be sent: of its target t, the endpoint e and the
// account a.
const handedTarget = `t.id, e.num, e.id, t.name, t.url, t.sealed, t.timeout_seconds, t.retry_count, t.failures,
	coalesce(a.id, 0), coalesce(a.plan, ''), coalesce(a.subscription, ''), coalesce(a.payment_method, 0)`

func scanHandedForward(scan func(...any) error) (h HandedForward, err error) {
	var created int64
	h.Queue, err = scanHandedTarget(scan, &h.Num, &h.EventSeq, &h.Claim, &created)
	h.claimed(time.UnixMicro(created))
	return h, err
}

// scanHandedTarget scans a row of other columns followed by handedTarget.
func scanHandedTarget(scan func(...any) error, before ...any) (q ForwardQueue, err error) {
	var timeout, payment int64
	var a hookglass.Account
	t := &q.Target
	err = scan(append(before, &t.ID, &t.EndpointNum, (*string)(&t.EndpointID), &t.Name, &t.URL, &t.Sealed, &timeout, &t.RetryCount, &t.Failures,
		&q.AccountID, (*string)(&a.Plan), (*string)(&a.Subscription), &payment)...)
	a.PaymentMethod = payment != 0
	t.Enabled, t.Timeout = true, time.Duration(timeout)*time.Second
	q.TargetID, q.Entitlements = t.ID, a.Entitlements()
	return q, err
}

// claimed fills in the fields of a claimed delivery that follow from its target.
func (h *HandedForward) claimed(at time.Time) {
	h.TargetID, h.EndpointNum, h.State, h.CreatedAt = h.Queue.TargetID, h.Queue.Target.EndpointNum, hookglass.ForwardSending, at.UTC()
}

func scanHandedTask(scan func(...any) error) (t Task, err error) {
	err = scan(&t.Num, &t.EventSeq, &t.Claim, &t.EndpointNum, (*string)(&t.Kind))
	return t, err
}
