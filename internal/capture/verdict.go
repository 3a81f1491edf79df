package capture

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/email"
	"hookglass/internal/store"
)

// notSent is the reason for a mail that is not the message as it was sent, so that its signatures cannot be verified.
const notSent = "composed"

// largeTasks bounds the bytes of large events that are loaded for tasks.
const largeTasks = 64 << 20

// load returns the event of a task with its payload, or nil if it was deleted. A large one has room until give is
// called. It answers rate_limited while there is none.
func (s *Service) load(ctx context.Context, t store.Task) (ev *hookglass.Event, give func(), err error) {
	if t.Event.Payload != nil {
		return t.Event, func() {}, nil
	}
	give, ok := s.tasks.Take(strconv.FormatInt(t.EndpointNum, 10), t.Event.Size)
	if !ok {
		return nil, func() {}, &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "Too many large events are looked at.", RetryAfter: time.Second}
	}
	events, err := store.Read(ctx, s.db, hookglass.System, func(v *store.View) (map[int64]*hookglass.Event, error) {
		return v.EventsBySeq([]int64{t.EventSeq}, math.MaxInt64)
	})
	return events[t.EventSeq], give, err
}

// Authenticate checks whether the mail of a task is from its claimed sender, and stores the result. It queries the DNS
// for up to ten seconds. It answers rate_limited if a large mail has to wait for others.
func (s *Service) Authenticate(ctx context.Context, t store.Task) error {
	ev, give, err := s.load(ctx, t)
	defer give()
	if err != nil || ev == nil {
		return err
	}
	if ev.Envelope == nil {
		return nil // not a mail
	}
	var found email.Results
	if ev.Envelope.Composed {
		found.SPF = email.SPF{Result: email.None, Reason: notSent}
		found.DKIM = email.DKIM{Result: email.None, Reason: notSent}
		found.DMARC = email.DMARC{Result: email.None, Reason: notSent}
	} else {
		found = email.Authenticate(ctx, s.cfg.Resolver, envelopeOf(ev), ev.Body)
	}
	if err := ctx.Err(); err != nil {
		return err // a missing DNS answer proves nothing then
	}
	verdict, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return s.verdicts.keep(ctx, s.db, store.Verdict{
		EndpointNum: t.EndpointNum, EventSeq: t.EventSeq, Details: verdict,
		Results: hookglass.Authentication{SPF: string(found.SPF.Result), DKIM: string(found.DKIM.Result), DMARC: string(found.DMARC.Result)},
	})
}

// verdictBatch bounds the verdicts of one transaction: captures wait behind it.
const verdictBatch = 128

// verdicts batches concurrent verdicts into one transaction. The first caller writes for all that wait, then the next
// one does.
type verdicts struct {
	mu      sync.Mutex
	waiting []*keptVerdict
	writing bool
}

type keptVerdict struct {
	store.Verdict
	turn chan struct{} // closed when it is this caller's turn to write
	done chan error    // buffered
}

func (v *verdicts) keep(ctx context.Context, db *store.DB, verdict store.Verdict) error {
	own := &keptVerdict{verdict, make(chan struct{}), make(chan error, 1)}
	v.mu.Lock()
	v.waiting = append(v.waiting, own)
	if v.writing {
		v.mu.Unlock()
		select {
		case err := <-own.done:
			return err
		case <-own.turn:
		}
		v.mu.Lock()
	}
	v.writing = true
	n := min(len(v.waiting), verdictBatch) // own is the first of them
	batch := v.waiting[:n:n]
	v.waiting = v.waiting[n:]
	v.mu.Unlock()

	rows := make([]store.Verdict, n)
	for i, k := range batch {
		rows[i] = k.Verdict
	}
	// A fixed order, so that nodes do not deadlock.
	slices.SortFunc(rows, func(a, b store.Verdict) int { return cmp.Compare(a.EventSeq, b.EventSeq) })
	err := db.Update(context.WithoutCancel(ctx), hookglass.System, func(tx *store.Tx) error { return tx.SetVerdicts(rows) })
	for _, k := range batch {
		k.done <- err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.writing = len(v.waiting) > 0; v.writing {
		close(v.waiting[0].turn)
	}
	return err
}
