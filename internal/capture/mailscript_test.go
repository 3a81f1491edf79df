package capture_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// script gives a mailbox a script. The next mail sees it.
func (o *office) script(e *hookglass.Endpoint, script string) {
	o.t.Helper()
	e.ResponseScript = script
	if err := o.db.Update(o.t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.SaveEndpoint(e) }); err != nil {
		o.t.Fatal(err)
	}
}

// sendBy sends a mail as a protocol does, and returns what each recipient was told.
func (o *office) sendBy(answers capture.Answers, raw string, to ...string) (told []string, delivered []capture.Delivered) {
	o.t.Helper()
	m := &capture.Mail{From: "ann@example.org", Protocol: "ESMTP", Client: netip.MustParseAddr("192.0.2.7"), Raw: []byte(raw), At: time.Now(), Answers: answers}
	for _, a := range to {
		m.To = append(m.To, o.recipient(a))
	}
	for _, d := range o.captures.CaptureMail(o.t.Context(), m) {
		if d.Err != nil {
			o.t.Fatal(d.Err)
		}
		delivered = append(delivered, d)
		told = append(told, toldBy(d.Reply))
	}
	return told, delivered
}

func toldBy(r *hookglass.Reply) string {
	switch {
	case r == nil:
		return "-"
	case r.Unanswered():
		return "none"
	}
	return strconv.Itoa(r.Status)
}

func (o *office) rcpt(from, to string) string {
	o.t.Helper()
	r, err := o.captures.AnswerRecipient(o.t.Context(), o.recipient(to).Target, from, to)
	if err != nil {
		o.t.Fatal(err)
	}
	return toldBy(r)
}

func mailOf(id string) string {
	if id != "" {
		id = "Message-ID: <" + id + "@example.org>\r\n"
	}
	return "From: ann@example.org\r\nSubject: x\r\n" + id + "\r\nx\r\n"
}

func TestEachMailIsAnsweredByTheScriptFromItsBeginning(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		inbox := o.mailbox("inbox")
		o.script(&inbox, "451,450+2s 4.7.1 Greylisted,reset,timeout+5s,250")
		for name, m := range map[string]struct {
			raw string
			to  []string
		}{
			"a mail":                     {mailOf("1"), []string{"inbox@mail.test"}},
			"another":                    {mailOf("2"), []string{"inbox@mail.test"}},
			"the same to somebody else":  {mailOf("1"), []string{"inbox+bob@mail.test"}},
			"the same to both":           {mailOf("1"), []string{"inbox@mail.test", "inbox+bob@mail.test"}},
			"one without a Message-ID":   {mailOf(""), []string{"inbox@mail.test"}},
			"that, with another subject": {strings.Replace(mailOf(""), "Subject: x", "Subject: y", 1), []string{"inbox@mail.test"}},
		} {
			var told []string
			var kept []*hookglass.Event
			for range 6 {
				answers, delivered := o.sendBy(capture.AnswersOne, m.raw, m.to...)
				told = append(told, answers[0])
				kept = append(kept, o.event(inbox, delivered[0].Event))
			}
			if want := []string{"451", "450", "none", "none", "250", "250"}; !slices.Equal(told, want) {
				t.Errorf("%s: %v, want %v", name, told, want)
			}
			// What is on record is what was said.
			for i, want := range []string{"451 0s 4.3.0 An error occurred here; try again later", "450 2s 4.7.1 Greylisted", "0 0s ", "0 5s ", "250 0s 2.0.0 Stored"} {
				r := kept[i].Reply
				if got := fmt.Sprintf("%d %s %s", r.Status, r.Delay, r.Body); got != want || kept[i].Status != r.Status || r.Source != hookglass.SourceCustom || len(kept[i].Envelope.To) != len(m.to) {
					t.Errorf("%s: attempt %d is on record as %q, status %d, envelope %+v", name, i+1, got, kept[i].Status, kept[i].Envelope)
				}
			}
		}
		// Who posts a mail by HTTP is no mail server, and an endpoint without a script says nothing.
		if told, _ := o.sendBy(capture.AnswersUnscripted, mailOf("3"), "inbox@mail.test"); told[0] != "-" {
			t.Errorf("a posted mail was answered %v", told)
		}
		o.script(&inbox, "")
		if told, _ := o.sendBy(capture.AnswersOne, mailOf("1"), "inbox@mail.test"); told[0] != "-" {
			t.Errorf("without a script: %v", told)
		}
	})
}

func TestSeveralRecipientsHaveTheWorstAnswerBySMTP(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		boxes := map[string]hookglass.Endpoint{}
		for name, script := range map[string]string{"plain": "", "fine": "250 Thanks", "later": "451,250", "other": "450,250", "never": "550", "mute": "reset", "first": "rcpt:550"} {
			e := o.mailbox(name)
			o.script(&e, script)
			boxes[name] = e
		}
		for i, c := range []struct {
			to, one string
			each    string
		}{
			{"plain", "-", "-"},
			{"first plain", "- -", "- -"}, // what is said to RCPT is said there
			{"plain fine", "250 250", "- 250"},
			{"fine never plain", "550 550 550", "250 550 -"},
			{"never later", "451 451", "550 451"},
			{"later never plain", "451 451 451", "451 550 -"},
			{"later other", "451 451", "451 450"}, // of two alike it is the first
			{"other later", "450 450", "450 451"},
			{"never later mute", "none none none", "550 451 none"},
			{"plain mute later plain", "none none none none", "- none none -"}, // plain was answered before
		} {
			for answers, want := range map[capture.Answers]string{capture.AnswersOne: c.one, capture.AnswersEach: c.each} {
				var to []string
				for name := range strings.FieldsSeq(c.to) {
					to = append(to, name+"@mail.test")
				}
				told, delivered := o.sendBy(answers, mailOf(fmt.Sprintf("%d.%d", i, answers)), to...)
				if got := strings.Join(told, " "); got != want {
					t.Errorf("%s (%d): %s, want %s", c.to, answers, got, want)
				}
				for j, name := range strings.Fields(c.to) { // each has it, with what was said
					if e := o.event(boxes[name], delivered[j].Event); toldBy(e.Reply) != told[j] {
						t.Errorf("%s: %s has %s on record", c.to, name, toldBy(e.Reply))
					}
				}
			}
		}
		// The mail comes again, and each endpoint counts for itself.
		first, _ := o.sendBy(capture.AnswersOne, mailOf("again"), "later@mail.test", "fine@mail.test")
		second, _ := o.sendBy(capture.AnswersOne, mailOf("again"), "later@mail.test", "fine@mail.test")
		if first[0] != "451" || second[0] != "250" {
			t.Errorf("answered %v, then %v", first, second)
		}
	})
}

func TestRecipientsAreRefusedBySenderAndRecipient(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		inbox := o.mailbox("inbox")
		o.script(&inbox, "rcpt:451,451,250")
		for range 2 { // the next mail begins at the start
			for _, pair := range [][2]string{{"a@x.test", "inbox@mail.test"}, {"b@x.test", "inbox@mail.test"}, {"a@x.test", "inbox+1@mail.test"}, {"", "inbox@mail.test"}} {
				var told []string
				for range 3 {
					told = append(told, o.rcpt(pair[0], pair[1]))
				}
				if !slices.Equal(told, []string{"451", "451", "250"}) {
					t.Errorf("%v: %v", pair, told)
				}
			}
		}
		if told, _ := o.sendBy(capture.AnswersOne, mailOf("1"), "inbox@mail.test"); told[0] != "-" {
			t.Errorf("the message was answered %v", told)
		}
		o.script(&inbox, "rcpt:250*2,552")
		if told := []string{o.rcpt("a@x.test", "inbox@mail.test"), o.rcpt("a@x.test", "inbox@mail.test"), o.rcpt("a@x.test", "inbox@mail.test"), o.rcpt("a@x.test", "inbox@mail.test")}; !slices.Equal(told, []string{"250", "250", "552", "552"}) {
			t.Errorf("a mailbox that fills up: %v", told)
		}
		o.script(&inbox, "451")
		if told := o.rcpt("a@x.test", "inbox@mail.test"); told != "-" {
			t.Errorf("a script for messages told a recipient %s", told)
		}
	})
}

// The refusals of recipients, which leave no event, are counted.
func TestRefusedRecipientsAreCounted(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		inbox := o.mailbox("inbox")
		o.script(&inbox, "rcpt:550,reset,250")
		for range 3 {
			o.rcpt("a@x.test", "inbox@mail.test")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var ran sync.WaitGroup
		ran.Go(func() { o.captures.Run(ctx) })
		cancel() // which has it write down what it has
		ran.Wait()
		var l hookglass.Ledger
		var e hookglass.Endpoint
		err := db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
			if e, err = v.Endpoint(string(inbox.ID)); err != nil {
				return err
			}
			l, err = v.Ledger(string(inbox.ID), time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
			return err
		})
		if err != nil || l.Refused["scripted"] != 2 || e.RefusedCount != 2 || e.EventCount != 0 {
			t.Errorf("the ledger has %v, the endpoint %d, %v", l.Refused, e.RefusedCount, err)
		}
	})
}

// Nodes count together, and a node that is started anew goes on where the attempts stand.
func TestAttemptsOfMailAreCountedInTheDatabase(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		inbox, second := o.mailbox("inbox"), o.mailbox("second")
		o.script(&inbox, "451*2,250")
		o.script(&second, "rcpt:451*2,250")
		later := *o
		later.captures = newOffice(t, db, "").captures
		var told, rcpts []string
		for i := range 3 {
			node := o
			if i%2 == 1 {
				node = &later
			}
			one, _ := node.sendBy(capture.AnswersOne, mailOf("1"), "inbox@mail.test")
			told, rcpts = append(told, one[0]), append(rcpts, node.rcpt("a@x.test", "second@mail.test"))
		}
		if want := []string{"451", "451", "250"}; !slices.Equal(told, want) || !slices.Equal(rcpts, want) {
			t.Errorf("answered %v and %v, want %v", told, rcpts, want)
		}
		// Mails to the same two endpoints at the same time, named in either order, do not wait for each other for ever.
		o.script(&second, "451*40,250")
		o.script(&inbox, "451*40,250")
		var sending sync.WaitGroup
		for i := range 20 {
			to := []string{"inbox@mail.test", "second@mail.test"}
			if i%2 == 1 {
				slices.Reverse(to)
			}
			sending.Go(func() { o.sendBy(capture.AnswersOne, mailOf("both"), to...) })
		}
		sending.Wait()
	})
}
