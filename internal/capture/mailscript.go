package capture

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"hookglass"
	"hookglass/internal/store"
)

// Answers says how many answers the sender of a mail gets.
type Answers int

// The ways to answer a mail.
const (
	AnswersUnscripted Answers = iota // over HTTP: scripts do not apply
	AnswersOne                       // over SMTP: one for all recipients
	AnswersEach                      // over LMTP: one for each recipient
)

// codeScripted is the code under which recipients that a script refused are counted. It is never sent.
const codeScripted hookglass.Code = "scripted"

// mailScript answers the attempts of a mail one after another. text is its canonical spelling.
type mailScript struct {
	hookglass.MailScript
	text string
}

// readMailScript parses the script of an email endpoint; nil is none.
func readMailScript(e *hookglass.Endpoint) *mailScript {
	if e.ResponseScript == "" || e.Kind != hookglass.KindEmail {
		return nil
	}
	script, err := hookglass.ParseMailScript(e.ResponseScript)
	if err != nil {
		return nil // written by a later version of the program: the endpoint answers as if it had none
	}
	return &mailScript{script, script.String()}
}

// AnswerRecipient returns the answer of an email endpoint's script to RCPT, nil if the script does not answer there.
// Attempts are counted by sender and recipient. The count starts over when a script that ends with 250 is at its end.
// It answers unavailable.
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

// followMail sets the replies of a mail's events, one for each target, by the scripts of their endpoints. It returns an
// error for each event whose attempt could not be counted; such an event must not be stored. As with webhooks, an
// attempt counts even if its event then cannot be stored.
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
	// Counters are locked in one order, so that two mails to the same endpoints cannot deadlock.
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

// mailReply converts an entry of a script to a reply.
func mailReply(a hookglass.ScriptedAnswer, stage hookglass.MailStage) *hookglass.Reply {
	r := &hookglass.Reply{Status: a.Status, Source: hookglass.SourceCustom, Delay: a.Delay}
	if a.Status != 0 {
		r.Body = []byte(a.SMTPText(stage))
	}
	return r
}

// worst chooses one answer to a mail for all recipients. No answer goes before 4xx, that before 5xx, and that before
// 250 or no script, so that a sender never takes a mail for delivered that some endpoint refuses. Of two alike, the
// first is chosen.
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

// untilUnanswered leaves all recipients after the first unanswered one without an answer too: the connection is gone by
// then.
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
