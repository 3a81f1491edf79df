package store_test

import (
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// mailEvent is a small mail that has not been authenticated.
func mailEvent(e hookglass.Endpoint) *hookglass.Event {
	event := newEvent(e, "raw")
	event.ID, event.Type, event.Method = hookglass.NewEventID(hookglass.EventEmail, event.ReceivedAt), hookglass.EventEmail, "EMAIL"
	event.Reply, event.Envelope = nil, &hookglass.Envelope{From: "a@b.test", To: []string{"in@localhost"}, Protocol: "ESMTP"}
	return event
}

func TestAMailIsPendingUntilItsVerdict(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		mail, other := mailEvent(e), mailEvent(e)
		capture(t, db, mail, other)
		results := hookglass.Authentication{SPF: "pass", DKIM: "none", DMARC: "temperror"}
		verdict := `{"spf":{"result":"pass"}}`
		writing(t, db, func(tx *store.Tx) error {
			return tx.SetVerdicts([]store.Verdict{{EndpointNum: e.Num, EventSeq: mail.Seq, Results: results, Details: []byte(verdict)}})
		})
		reading(t, db, func(v *store.View) error {
			got, err := v.Event(string(e.ID), string(mail.ID))
			if err != nil {
				return err
			}
			if got.Authentication != results || string(got.Verdict) != verdict {
				t.Errorf("%+v %s", got.Authentication, got.Verdict)
			}
			got, err = v.Event(string(e.ID), string(other.ID))
			if err != nil {
				return err
			}
			if got.Authentication.SPF != hookglass.AuthPending || got.Verdict != nil {
				t.Errorf("another mail: %+v %s", got.Authentication, got.Verdict)
			}
			return nil
		})
	})
}

func TestAVerdictGoesWithItsMail(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		mail := mailEvent(e)
		capture(t, db, mail)
		verdict := func(tx *store.Tx) error {
			return tx.SetVerdicts([]store.Verdict{{EndpointNum: e.Num, EventSeq: mail.Seq, Results: hookglass.Authentication{SPF: "none"}, Details: []byte("{}")}})
		}
		writing(t, db, verdict)
		writing(t, db, verdict) // a task may be done twice
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), string(mail.ID)) })
		reading(t, db, func(v *store.View) error {
			left, err := v.Ints("SELECT count(*) FROM mail_verdicts")
			if err == nil && left[0] != 0 {
				t.Errorf("%d verdicts are left", left[0])
			}
			return err
		})
	})
}

func TestAVerdictOfAnEventThatIsGoneIsDropped(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, stranger := newEndpoint(t, db), newEndpoint(t, db)
		mail := mailEvent(e)
		capture(t, db, mail)
		results := hookglass.Authentication{SPF: "pass", DKIM: "pass", DMARC: "pass"}
		writing(t, db, func(tx *store.Tx) error {
			return tx.SetVerdicts([]store.Verdict{
				{EndpointNum: e.Num, EventSeq: mail.Seq + 1000, Results: results, Details: []byte("{}")},
				{EndpointNum: stranger.Num, EventSeq: mail.Seq, Results: results, Details: []byte("{}")},
			})
		})
		reading(t, db, func(v *store.View) error {
			got, err := v.Event(string(e.ID), string(mail.ID))
			if err == nil && (got.Authentication.SPF != hookglass.AuthPending || got.Verdict != nil) {
				t.Errorf("%+v %s", got.Authentication, got.Verdict)
			}
			return err
		})
	})
}
