package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/ledger"
	"hookglass/internal/store"
)

// yard is an endpoint with two targets and an action, and what a model says became of its events.
type yard struct {
	t       *testing.T
	db      *store.DB
	ep      hookglass.Endpoint
	targets []hookglass.ForwardingTarget
	action  hookglass.Action
	rnd     *rand.Rand
	session int64 // 0: nobody is connected

	live    map[int64]*fate
	stored  int64
	refused map[string]int64
	gone    int64
	lapsed  int64 // of gone: missed by the tunnel
}

// fate is where the model says that an event stands.
type fate struct {
	event   *hookglass.Event
	targets map[int64]hookglass.ForwardState
	run     hookglass.RunStatus // empty: none
	tasked  bool
	tunnel  hookglass.ConsumerState
	ignored bool
	replays [2]int64 // failed, delivered
}

func newYard(t *testing.T, db *store.DB, seed uint64) *yard {
	y := &yard{t: t, db: db, rnd: rand.New(rand.NewPCG(seed, 1)), live: map[int64]*fate{}, refused: map[string]int64{}}
	y.ep = hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "test", Kind: hookglass.KindWebhook, Enabled: true}
	y.update(func(tx *store.Tx) error { return tx.CreateEndpoint(&y.ep, nil) })
	for i := range 2 {
		target := hookglass.ForwardingTarget{EndpointNum: y.ep.Num, Name: fmt.Sprint("target ", i), URL: "https://app.example.com/", Enabled: true, Timeout: time.Second}
		y.update(func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		y.targets = append(y.targets, target)
	}
	y.action = hookglass.Action{ID: hookglass.NewSortableID("act", time.Now()), EndpointNum: y.ep.Num, Name: "act", Enabled: true, Position: 1, FailurePolicy: hookglass.FailureContinue}
	y.update(func(tx *store.Tx) error { return tx.CreateAction(&y.action, nil) })
	return y
}

func (y *yard) update(fn func(*store.Tx) error) {
	y.t.Helper()
	if err := y.db.Update(y.t.Context(), hookglass.System, fn); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) view(fn func(*store.View) error) {
	y.t.Helper()
	if err := y.db.View(y.t.Context(), hookglass.System, fn); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) capture(body string, received time.Time, work store.Work) *fate {
	y.t.Helper()
	e := &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, received), EndpointNum: y.ep.Num, EndpointID: y.ep.ID, Type: hookglass.EventWebhook, ReceivedAt: received,
		Method: "POST", Path: "/", URL: "http://localhost/", Proto: "HTTP/1.1", Size: int64(len(body)), Provider: hookglass.UnknownProvider,
		SignatureStatus: hookglass.SignatureUnchecked,
		Payload:         &hookglass.Payload{Body: []byte(body), Reply: &hookglass.Reply{Status: 200 + y.rnd.IntN(3), Source: hookglass.SourceDefault}},
	}
	if err := y.db.CaptureWith(y.t.Context(), 0, e, work); err != nil {
		y.t.Fatal(err)
	}
	f := &fate{event: e, targets: map[int64]hookglass.ForwardState{}, tasked: len(work.Tasks) > 0, tunnel: hookglass.StateSkipped}
	if work.Forward {
		for _, t := range y.targets {
			f.targets[t.ID] = hookglass.ForwardPending
		}
	}
	if y.session != 0 {
		f.tunnel = hookglass.StatePending
	}
	y.live[e.Seq] = f
	y.stored++
	return f
}

// any returns an event that is there, nil when none is.
func (y *yard) any() *fate {
	seqs := make([]int64, 0, len(y.live))
	for seq := range y.live {
		seqs = append(seqs, seq)
	}
	if len(seqs) == 0 {
		return nil
	}
	low := seqs[0] // the map's order is random already, but not by our seed
	for _, s := range seqs {
		low = min(low, s)
	}
	want := low + y.rnd.Int64N(y.stored+1)
	best := low
	for _, s := range seqs {
		if s <= want && s > best {
			best = s
		}
	}
	return y.live[best]
}

func (y *yard) forget(f *fate) {
	delete(y.live, f.event.Seq)
	y.gone++
}

// forward claims what is due for a target and settles each in a state of its own; some claims are never heard of again.
func (y *yard) forward() {
	target := y.targets[y.rnd.IntN(len(y.targets))]
	y.update(func(tx *store.Tx) error {
		claimed, err := tx.ClaimForwards(target.ID, tx.Now.Add(time.Second), 1+y.rnd.IntN(4), time.Hour)
		if err != nil {
			return err
		}
		var settled []store.ClaimedForward
		for _, c := range claimed {
			f := y.live[c.EventSeq]
			if f == nil {
				continue // deleted, and not erased yet
			}
			state := []hookglass.ForwardState{hookglass.ForwardDelivered, hookglass.ForwardFailed, hookglass.ForwardPending, hookglass.ForwardSending, hookglass.ForwardSkipped}[y.rnd.IntN(5)]
			if f.targets[target.ID] = state; state == hookglass.ForwardSending {
				continue
			}
			c.State, c.StatusCode = state, 200
			c.Attempts = append(c.Attempts, hookglass.ForwardAttempt{At: tx.Now, StatusCode: 200})
			if state == hookglass.ForwardPending {
				c.NextAt = tx.Now
			} else {
				c.FinishedAt = tx.Now
			}
			settled = append(settled, c)
		}
		_, err = tx.SettleForwards(settled)
		return err
	})
}

// resend puts in line again what failed at a target.
func (y *yard) resend() {
	target := y.targets[y.rnd.IntN(len(y.targets))]
	target.EndpointID = y.ep.ID
	y.update(func(tx *store.Tx) error {
		failed, _, err := tx.FailedForwards(target, store.FailedRange{})
		if err != nil {
			return err
		}
		for _, f := range failed {
			if one := y.live[f.EventSeq]; one != nil {
				one.targets[target.ID] = hookglass.ForwardPending
			}
		}
		return tx.ResendForwards(failed)
	})
}

func (y *yard) act() {
	y.update(func(tx *store.Tx) error {
		tasks, err := tx.ClaimTasks(store.TaskActions, y.ep.Num, 1+y.rnd.IntN(3), time.Hour)
		if err != nil {
			return err
		}
		var done []store.Task
		for _, k := range tasks {
			f := y.live[k.EventSeq]
			if f == nil {
				done = append(done, k)
				continue
			}
			status := []hookglass.RunStatus{"", hookglass.ActionRunRunning, hookglass.ActionRunCompleted, hookglass.ActionRunFailed, hookglass.ActionRunStopped}[y.rnd.IntN(5)]
			if f.run = status; status != "" {
				h := &store.HeldRun{ActionRun: hookglass.ActionRun{
					ID: hookglass.NewSortableID("arun", tx.Now), EndpointNum: y.ep.Num, ActionNum: y.action.Num, ActionID: y.action.ID,
					EventSeq: k.EventSeq, EventID: f.event.ID, Status: status, StartedAt: tx.Now,
				}}
				if status.Final() {
					h.FinishedAt = tx.Now
				}
				if _, err := tx.InsertActionRun(h, time.Hour); err != nil {
					return err
				}
			}
			if y.rnd.IntN(3) > 0 && status != hookglass.ActionRunRunning {
				f.tasked = false
				done = append(done, k)
			}
		}
		return tx.EndTasks(done)
	})
}

func (y *yard) connect() {
	if y.session != 0 {
		y.update(func(tx *store.Tx) error { // lost: an outage begins
			return tx.EndTunnels([]store.TunnelEnd{{Session: y.session, Lost: true, Since: tx.Now}})
		})
		y.session = 0
		return
	}
	s := hookglass.TunnelSession{ID: hookglass.NewSortableID("tsess", time.Now()), Node: "node"}
	y.update(func(tx *store.Tx) error {
		if err := tx.CreateTunnelSession(&s); err != nil {
			return err
		}
		_, err := tx.SubscribeTunnel(string(y.ep.ID), &hookglass.TunnelSubscription{SessionNum: s.Num, TargetURL: "http://localhost:3000"})
		return err
	})
	y.session = s.Num
}

func (y *yard) report(f *fate) {
	status := []int{0, 200, 500}[y.rnd.IntN(3)]
	y.update(func(tx *store.Tx) error {
		_, err := tx.RecordReport(string(y.ep.ID), string(f.event.ID), &hookglass.DeliveryReport{StatusCode: status, TargetURL: "http://localhost:3000"})
		return err
	})
	if status == 200 {
		f.tunnel = hookglass.StateDelivered
	} else if f.tunnel != hookglass.StateDelivered {
		f.tunnel = hookglass.StateFailed
	}
}

func (y *yard) replay(f *fate) {
	passed := y.rnd.IntN(2)
	y.update(func(tx *store.Tx) error {
		r := &hookglass.Replay{ID: hookglass.NewSortableID("rpl", tx.Now), EndpointNum: y.ep.Num, EventSeq: f.event.Seq, EventID: f.event.ID, At: tx.Now, TargetURL: "https://app.example.com/"}
		if passed == 1 {
			r.Response = &hookglass.TargetResponse{Status: 200}
		}
		return tx.RecordReplay(r)
	})
	f.replays[passed]++
}

func (y *yard) refuse() {
	code := []hookglass.Code{hookglass.CodePayloadTooLarge, hookglass.CodeUnavailable, hookglass.CodeRateLimited}[y.rnd.IntN(3)]
	y.update(func(tx *store.Tx) error {
		return tx.CountRefused([]store.Refused{{EndpointNum: y.ep.Num, At: tx.Now, Code: code, N: 2}})
	})
	y.refused[string(code)] += 2
}

// read returns the ledger of an hour and a little of what is to come.
func (y *yard) read() (l hookglass.Ledger) {
	y.t.Helper()
	now := y.db.Now()
	w, err := ledger.ParseWindow("1h", now.Add(5*time.Minute).Format(time.RFC3339), now)
	if err != nil {
		y.t.Fatal(err)
	}
	y.view(func(v *store.View) (err error) {
		l, err = ledger.Read(v, string(y.ep.ID), w, now)
		return err
	})
	return l
}

// check compares the ledger with the model.
func (y *yard) check(did string) {
	y.t.Helper()
	l := y.read()
	if d := l.Differences(); len(d) > 0 {
		y.t.Fatalf("after %s it does not balance: %+v\n%+v", did, d, l)
	}
	want := hookglass.Ledger{Stored: y.stored, Kept: int64(len(y.live)), Deleted: y.gone}
	for _, f := range y.live {
		if f.ignored {
			want.Ignored++
		}
		want.Replays.Failed += f.replays[0]
		want.Replays.Delivered += f.replays[1]
	}
	if l.Stored != want.Stored || l.Kept != want.Kept || l.Deleted != want.Deleted || l.Ignored != want.Ignored || l.Replays != want.Replays || fmt.Sprint(l.Refused) != fmt.Sprint(y.refused) {
		y.t.Fatalf("after %s: %+v; want %+v and %v refused", did, l, want, y.refused)
	}
	for _, c := range l.Consumers {
		w := hookglass.LedgerConsumer{Kind: c.Kind, ID: c.ID, Name: c.Name, Deleted: y.gone}
		for _, f := range y.live {
			switch state := y.standing(f, c); state {
			case hookglass.StateDelivered:
				w.Delivered++
			case hookglass.StateFailed:
				w.Failed++
			case hookglass.StatePending:
				w.Pending++
			default:
				w.Skipped++
			}
		}
		if c.Kind == hookglass.ConsumerTunnel {
			w.Expired, w.Deleted = y.lapsed, y.gone-y.lapsed
		}
		if c != w {
			y.t.Fatalf("after %s: %+v, want %+v", did, c, w)
		}
	}
}

func (y *yard) standing(f *fate, c hookglass.LedgerConsumer) hookglass.ConsumerState {
	switch c.Kind {
	case hookglass.ConsumerTarget:
		id, _ := strconv.ParseInt(c.ID, 10, 64)
		switch f.targets[id] {
		case hookglass.ForwardDelivered:
			return hookglass.StateDelivered
		case hookglass.ForwardFailed:
			return hookglass.StateFailed
		case hookglass.ForwardPending, hookglass.ForwardSending:
			return hookglass.StatePending
		}
	case hookglass.ConsumerAction:
		switch f.run {
		case hookglass.ActionRunCompleted:
			return hookglass.StateDelivered
		case hookglass.ActionRunFailed, hookglass.ActionRunStopped:
			return hookglass.StateFailed
		case hookglass.ActionRunRunning:
			return hookglass.StatePending
		}
		if f.tasked {
			return hookglass.StatePending
		}
	case hookglass.ConsumerTunnel:
		return f.tunnel
	}
	return hookglass.StateSkipped
}

func (y *yard) step() string {
	switch n := y.rnd.IntN(30); {
	case n < 10:
		outage := y.session == 0 && y.outage()
		f := y.capture("x", time.Now().UTC().Truncate(time.Microsecond), store.Work{Forward: y.rnd.IntN(4) > 0, Tasks: [][]store.TaskKind{nil, {store.TaskActions}}[y.rnd.IntN(2)]})
		if outage {
			f.tunnel = hookglass.StatePending
		}
		return "capture"
	case n < 14:
		y.forward()
		return "forward"
	case n < 18:
		y.act()
		return "act"
	case n == 18:
		y.connect()
		return "connect"
	case n == 19:
		y.refuse()
		return "refuse"
	case n == 20:
		for more := true; more; {
			y.update(func(tx *store.Tx) (err error) {
				more, err = tx.RollUp(200)
				return err
			})
		}
		return "roll up"
	case n == 21 && y.rnd.IntN(6) == 0:
		y.deleteAll()
		return "delete all"
	case n == 22:
		y.erase()
		return "erase"
	case n == 23:
		y.resend()
		return "resend"
	}
	f := y.any()
	if f == nil {
		return "nothing"
	}
	if y.rnd.IntN(12) == 0 {
		y.purge(f.event.ReceivedAt)
		return "delete by age"
	}
	switch y.rnd.IntN(7) {
	case 0, 1, 2:
		y.report(f)
		return "report"
	case 3, 4:
		y.replay(f)
		return "replay"
	case 5:
		y.update(func(tx *store.Tx) error { return tx.SetIgnored(string(y.ep.ID), string(f.event.ID), "noise") })
		f.ignored = true
		return "ignore"
	}
	y.lapse(f)
	y.update(func(tx *store.Tx) error { return tx.DeleteEvent(string(y.ep.ID), string(f.event.ID)) })
	y.forget(f)
	return "delete"
}

// lapse counts an event that is about to be erased and that the tunnel missed.
func (y *yard) lapse(f *fate) {
	if f.tunnel != hookglass.StateDelivered && y.inGap(f) {
		y.lapsed++
	}
}

// purge deletes what was received before a time, as retention does.
func (y *yard) purge(cutoff time.Time) {
	for _, f := range y.live {
		if f.event.ReceivedAt.Before(cutoff) {
			y.lapse(f)
		}
	}
	for more := true; more; {
		y.update(func(tx *store.Tx) (err error) {
			_, more, err = tx.PurgeEvents(store.PurgeDue{EndpointNum: y.ep.Num, Cutoff: cutoff})
			return err
		})
	}
	for _, f := range y.live {
		if f.event.ReceivedAt.Before(cutoff) {
			y.forget(f)
		}
	}
}

// outage reports whether a session was lost and none is back.
func (y *yard) outage() (open bool) {
	y.view(func(v *store.View) error {
		gaps, err := v.Gaps([]int64{y.ep.Num}, 0, 100)
		for _, g := range gaps {
			open = open || g.State == hookglass.GapOpen
		}
		return err
	})
	return open
}

// inGap asks the outages as they are listed whether an event is in one.
func (y *yard) inGap(f *fate) (in bool) {
	y.view(func(v *store.View) error {
		gaps, err := v.Gaps([]int64{y.ep.Num}, 0, 100)
		for _, g := range gaps {
			if f.event.Seq <= g.From || g.To > 0 && f.event.Seq > g.To {
				continue
			}
			reports, err := v.Reports(f.event.Seq, 100)
			if err != nil {
				return err
			}
			late := true
			if len(reports) > 0 {
				late = reports[len(reports)-1].At.After(g.DetectedAt) // the first that was made
			}
			in = in || late
		}
		return err
	})
	return in
}

func (y *yard) deleteAll() {
	y.update(func(tx *store.Tx) error { _, err := tx.DeleteAllEvents(string(y.ep.ID)); return err })
	for _, f := range y.live {
		y.forget(f)
	}
}

// erase takes what is deleted off the disk. What the tunnel never delivered of it has expired by then: the model takes
// the ledger's word for how many.
func (y *yard) erase() {
	before := y.read()
	for done := false; !done; {
		y.update(func(tx *store.Tx) (err error) {
			done, err = tx.EraseEvents(y.ep.Num)
			return err
		})
	}
	after := y.read()
	for _, c := range after.Consumers {
		if c.Kind != hookglass.ConsumerTunnel {
			continue
		}
		if c.Expired < y.lapsed || c.Expired > y.gone {
			y.t.Fatalf("%d expired of %d that are gone, and before it were %d", c.Expired, y.gone, y.lapsed)
		}
		y.lapsed = c.Expired
	}
	if before.Kept != after.Kept || before.Deleted != after.Deleted {
		y.t.Fatalf("erasing changed the ledger from %+v to %+v", before, after)
	}
}
