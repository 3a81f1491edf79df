package capture

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"hookglass"
	"hookglass/internal/store"
)

// Answers says how many answers the sender of a mail is given.
type Answers int

// The numbers.
const (
	AnswersUnscripted Answers = iota // by HTTP: nobody asks scripts, which are of SMTP
	AnswersOne                       // by SMTP: one for all recipients
	AnswersEach                      // by LMTP: one for each recipient
)

// codeScripted is under which recipients are counted that a script refused. Nobody is answered it.
const codeScripted hookglass.Code = "scripted"

// mailScript is what the attempts of a mail are answered one after another. text is its one spelling.
type mailScript struct {
	hookglass.MailScript
	text string
}

// readMailScript reads the script of an email endpoint; nil where it has none.
func readMailScript(e *hookglass.Endpoint) *mailScript {
	if e.ResponseScript == "" || e.Kind != hookglass.KindEmail {
		return nil
	}
	script, err := hookglass.ParseMailScript(e.ResponseScript)
	if err != nil {
		return nil // of a later version of the program: the endpoint answers as without one
	}
	return &mailScript{script, script.String()}
}

// AnswerRecipient is what the script of an email endpoint has the sender be answered to RCPT; nil where it says
// nothing there. Which attempt this is, is counted by sender and recipient, from the beginning again after a script
// that ends with 250. It answers unavailable.
func (s *Service) AnswerRecipient(ctx context.Context, t Target, from, to string) (*hookglass.Reply, error) {
	script := t.known.mail
	if script == nil || script.Stage != hookglass.StageRecipient {
		return nil, nil
	}
	key := hookglass.RecipientIdentity(from, to)
	var attempt int64
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		if attempt, err = tx.NextAttempt(t.Endpoint.Num, key, script.text); err == nil && script.Over(attempt) {
			err = tx.ForgetAttempts(t.Endpoint.Num, key)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("count an attempt: %w", err)
		s.outage.refusal(err)
		s.refused.add(t.Endpoint.Num, err)
		return nil, err
	}
	r := mailReply(script.At(attempt), script.Stage)
	if r.Status != 250 {
		s.refused.add(t.Endpoint.Num, hookglass.Errorf(codeScripted, "The endpoint's script refuses the recipient."))
	}
	return r, nil
}

// followMail gives the events of a mail the answers of their endpoints' scripts, one event for each target, and says
// for which of them the attempt could not be counted: those are not to be stored. As with webhooks, an attempt whose
// event then cannot be stored counts.
func (s *Service) followMail(ctx context.Context, answers Answers, targets []Target, events []*hookglass.Event) []error {
	outcomes := make([]error, len(events))
	var scripted []int
	for n, t := range targets {
		if script := t.known.mail; answers != AnswersUnscripted && script != nil && script.Stage == hookglass.StageData {
			scripted = append(scripted, n)
		}
	}
	if len(scripted) == 0 {
		return outcomes
	}
	// All who count the same count in the same order, so that none waits for another that waits for it.
	slices.SortFunc(scripted, func(a, b int) int { return cmp.Compare(targets[a].Endpoint.Num, targets[b].Endpoint.Num) })
	attempts := make([]int64, len(events))
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		for _, n := range scripted {
			_, key := hookglass.DeliveryIdentity(events[n])
			if attempts[n], err = tx.NextAttempt(targets[n].Endpoint.Num, key, targets[n].known.mail.text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("count an attempt: %w", err)
		s.outage.refusal(err)
		for _, n := range scripted {
			outcomes[n] = err
			s.refused.add(targets[n].Endpoint.Num, err)
		}
		return outcomes
	}
	for _, n := range scripted {
		script := targets[n].known.mail
		events[n].Reply = mailReply(script.At(attempts[n]), script.Stage)
	}
	if answers == AnswersOne {
		one := worst(events)
		for _, ev := range events {
			ev.Reply = one
		}
	} else {
		untilUnanswered(events)
	}
	return outcomes
}

// mailReply is an entry of a script as a reply.
func mailReply(a hookglass.ScriptedAnswer, stage hookglass.MailStage) *hookglass.Reply {
	r := &hookglass.Reply{Status: a.Status, Source: hookglass.SourceCustom, Delay: a.Delay}
	if a.Status != 0 {
		r.Body = []byte(a.SMTPText(stage))
	}
	return r
}

// worst is the answer to a mail for all of its recipients, where each endpoint has one of its own or none, which is
// 250: that after which the sender tries again goes before one for good, and that before 250. So no mail is taken to be
// delivered that somebody refuses. Of two alike it is the first.
func worst(events []*hookglass.Event) (one *hookglass.Reply) {
	for _, ev := range events {
		if r := ev.Reply; r != nil && (one == nil || badness(r) > badness(one)) {
			one = r
		}
	}
	return one
}

func badness(r *hookglass.Reply) int {
	switch {
	case r.Unanswered():
		return 3
	case r.Status/100 == 4:
		return 2
	case r.Status/100 == 5:
		return 1
	}
	return 0
}

// untilUnanswered has those recipients be left without an answer who come behind the first one that is: the connection
// is gone by then.
func untilUnanswered(events []*hookglass.Event) {
	var none *hookglass.Reply
	for _, ev := range events {
		if none != nil {
			ev.Reply = none
		} else if ev.Reply != nil && ev.Reply.Unanswered() {
			none = ev.Reply
		}
	}
}
