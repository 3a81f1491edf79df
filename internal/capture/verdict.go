package capture

import (
	"context"
	"encoding/json"
	"math"
	"net/netip"

	"hookglass"
	"hookglass/internal/email"
	"hookglass/internal/store"
)

// notSent is the reason where a mail is not what was sent, so that no signature of it can be verified.
const notSent = "composed"

// Authenticate finds out whether the mail of a task is from whom it says, and stores that. It asks the DNS, for ten seconds at most.
func (s *Service) Authenticate(ctx context.Context, t store.Task) error {
	ev := t.Event
	if ev.Payload == nil { // a large one
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
		return nil // no mail
	}
	client, _ := netip.ParseAddr(ev.IP)
	var found email.Results
	if ev.Envelope.Composed {
		found.SPF = email.SPF{Result: email.None, Reason: notSent}
		found.DKIM = email.DKIM{Result: email.None, Reason: notSent}
		found.DMARC = email.DMARC{Result: email.None, Reason: notSent}
	} else {
		found = email.Authenticate(ctx, s.cfg.Resolver, email.Envelope{RemoteIP: client, HELO: ev.Envelope.Helo, MailFrom: ev.Envelope.From}, ev.Body)
	}
	if err := ctx.Err(); err != nil {
		return err // what was not answered was not for want of an answer
	}
	verdict, err := json.Marshal(found)
	if err != nil {
		return err
	}
	results := hookglass.Authentication{SPF: string(found.SPF.Result), DKIM: string(found.DKIM.Result), DMARC: string(found.DMARC.Result)}
	return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.SetVerdict(t.EndpointNum, t.EventSeq, results, verdict) })
}
