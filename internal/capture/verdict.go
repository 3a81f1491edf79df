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

// largeMails bounds the bytes of large mails that are loaded for authentication.
const largeMails = 64 << 20

// Authenticate checks whether the mail of a task is from its claimed sender, and stores the result. It queries the DNS
// for up to ten seconds.
func (s *Service) Authenticate(ctx context.Context, t store.Task) error {
	ev := t.Event
	if ev.Payload == nil { // a large one
		give, ok := s.mails.Take(strconv.FormatInt(t.EndpointNum, 10), ev.Size)
		if !ok {
			return &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "Too many large mails are looked at.", RetryAfter: time.Second}
		}
		defer give()
		err := s.db.View(ctx, hookglass.System, func(v *store.View) error {
			events, err := v.EventsBySeq([]int64{t.EventSeq}, math.MaxInt64)
			ev = events[t.EventSeq]
			return err
		})
		if err != nil || ev == nil {
			return err
		}
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
