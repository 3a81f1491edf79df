package capture_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/email"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// office is a capture service with mailboxes.
type office struct {
	t        *testing.T
	db       *store.DB
	captures *capture.Service
}

func newOffice(t *testing.T, db *store.DB, zone string) *office {
	t.Helper()
	b := newBench(t, db)
	dns, err := email.ParseZone([]byte(zone))
	if err != nil {
		t.Fatal(err)
	}
	return &office{t, db, capture.New(db, capture.Config{Retention: time.Hour, Verifiers: b.endpoints, MailDomain: "mail.test", Resolver: dns}, slog.New(slog.DiscardHandler))}
}

func (o *office) mailbox(localPart string) hookglass.Endpoint {
	o.t.Helper()
	e := hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: localPart, Kind: hookglass.KindEmail, EmailLocalPart: localPart, Enabled: true}
	if err := o.db.Update(o.t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.CreateEndpoint(&e, nil) }); err != nil {
		o.t.Fatal(err)
	}
	return e
}

func (o *office) recipient(address string) capture.Recipient {
	o.t.Helper()
	local, _, _ := strings.Cut(address, "@")
	local, _, _ = strings.Cut(local, "+")
	t, err := o.captures.AdmitMail(o.t.Context(), strings.ToLower(local))
	if err != nil {
		o.t.Fatal(err)
	}
	return capture.Recipient{Address: address, Target: t}
}

func (o *office) send(raw string, to ...string) []capture.Delivered {
	o.t.Helper()
	m := &capture.Mail{From: "bounce@example.org", Helo: "mx.example.org", Protocol: "ESMTP", Client: netip.MustParseAddr("192.0.2.7"), Raw: []byte(raw), At: time.Now()}
	for _, a := range to {
		m.To = append(m.To, o.recipient(a))
	}
	return o.captures.CaptureMail(o.t.Context(), m)
}

func (o *office) event(e hookglass.Endpoint, id hookglass.EventID) (ev *hookglass.Event) {
	o.t.Helper()
	err := o.db.View(o.t.Context(), hookglass.System, func(v *store.View) (err error) {
		ev, err = v.Event(string(e.ID), string(id))
		return err
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return ev
}

const note = "From: Ann <ann@example.org>\r\nTo: inbox@mail.test, Bob <bob@example.com>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nMessage-ID: <1@example.org>\r\n\r\nYour code is 482913.\r\n"

func TestAMailBecomesAnEvent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		inbox := o.mailbox("inbox")
		d := o.send(note, "INBOX+tag@Mail.TEST")[0]
		if d.Err != nil || !strings.HasPrefix(string(d.Event), "eml_") {
			t.Fatalf("%+v", d)
		}
		ev := o.event(inbox, d.Event)
		if string(ev.Body) != note || ev.Type != hookglass.EventEmail || ev.Method != "EMAIL" || ev.Path != "inbox+tag@mail.test" || ev.Size != int64(len(note)) ||
			ev.IP != "192.0.2.7" || ev.Subject != "Grüße" || ev.EventRef != "<1@example.org>" || ev.Reply != nil || ev.ContentType != "" {
			t.Errorf("%+v", ev)
		}
		if !strings.Contains(ev.From, "ann@example.org") || !strings.Contains(ev.To, "inbox@mail.test, ") || ev.Headers.Get("subject") != "Grüße" {
			t.Errorf("from %q, to %q, %v", ev.From, ev.To, ev.Headers)
		}
		if e := ev.Envelope; e.From != "bounce@example.org" || !slices.Equal(e.To, []string{"INBOX+tag@Mail.TEST"}) || e.Helo != "mx.example.org" || e.Protocol != "ESMTP" {
			t.Errorf("envelope %+v", e)
		}
		if ev.Authentication.SPF != hookglass.AuthPending {
			t.Errorf("authentication %+v", ev.Authentication)
		}
	})
}

func TestAMailIsAnEventForEachEndpoint(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		inbox, second := o.mailbox("inbox"), o.mailbox("second")
		d := o.send(note, "inbox@mail.test", "second@mail.test", "inbox+x@mail.test", "second@mail.test")
		if d[0].Event != d[2].Event || d[1].Event != d[3].Event || d[0].Event == d[1].Event {
			t.Fatalf("%+v", d)
		}
		if to := o.event(inbox, d[0].Event).Envelope.To; !slices.Equal(to, []string{"inbox@mail.test", "inbox+x@mail.test"}) {
			t.Errorf("the first knows of %v", to)
		}
		o.event(second, d[1].Event)

		// An endpoint that is deleted meanwhile does not keep the other's mail out.
		m := &capture.Mail{Protocol: "ESMTP", Raw: []byte("no header"), At: time.Now(), To: []capture.Recipient{o.recipient("inbox@mail.test"), o.recipient("second@mail.test")}}
		if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEndpoint(&inbox) }); err != nil {
			t.Fatal(err)
		}
		d = o.captures.CaptureMail(t.Context(), m)
		if !hookglass.Is(d[0].Err, hookglass.CodeNotFound) || d[1].Err != nil {
			t.Fatalf("%+v", d)
		}
		if ev := o.event(second, d[1].Event); ev.From != "" || ev.To != "second@mail.test" || ev.Subject != "" {
			t.Errorf("of a mail without a header: %q %q %q", ev.From, ev.To, ev.Subject)
		}
	})
}

func TestWhichMailboxIsThere(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		inbox := o.mailbox("inbox")
		admit := func(localPart string) hookglass.Code {
			_, err := o.captures.AdmitMail(t.Context(), localPart)
			if err == nil {
				return ""
			}
			return hookglass.CodeOf(err)
		}
		for localPart, want := range map[string]hookglass.Code{
			"inbox": "", "nobody": hookglass.CodeNotFound, "": hookglass.CodeNotFound, "x": hookglass.CodeNotFound, strings.Repeat("x", 10_000): hookglass.CodeNotFound,
			"inbox@": hookglass.CodeNotFound, string(inbox.ID): hookglass.CodeNotFound, "' or 1": hookglass.CodeNotFound,
		} {
			if got := admit(localPart); got != want {
				t.Errorf("%.40q: %q, want %q", localPart, got, want)
			}
		}
		if _, err := o.captures.Admit(t.Context(), string(inbox.ID)); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("a webhook to a mailbox: %v", err)
		}
		if _, err := o.captures.AdmitMailbox(t.Context(), string(inbox.ID)); err != nil {
			t.Error(err)
		}
		inbox.Enabled = false
		if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.SaveEndpoint(&inbox) }); err != nil {
			t.Fatal(err)
		}
		if got := admit("inbox"); got != hookglass.CodeGone {
			t.Errorf("disabled: %q", got)
		}
	})
}

func TestWhatListsShowOfAMailIsBounded(t *testing.T) {
	o := newOffice(t, storetest.SQLite(t), "")
	inbox := o.mailbox("inbox")
	subject := strings.Repeat("ü", 100_000)
	ev := o.event(inbox, o.send("Subject: "+subject+"\r\n\r\n", "inbox@mail.test")[0].Event)
	if n := len(ev.Subject); n != 2000 || !strings.HasPrefix(subject, ev.Subject) {
		t.Errorf("a subject of %d bytes", n)
	}
}

// A bounce without a Return-Path is known by its empty reverse path, which stands in the envelope alone.
func TestTheKindOfAMailIsTheSameInListsAndDetails(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		inbox := o.mailbox("inbox")
		delivered := o.captures.CaptureMail(t.Context(), &capture.Mail{
			To: []capture.Recipient{o.recipient("inbox@mail.test")}, Helo: "mx.example.org", Protocol: "ESMTP", Client: netip.MustParseAddr("192.0.2.7"),
			Raw: []byte("From: MAILER-DAEMON@example.org\r\nSubject: failure notice\r\n\r\nIt was not delivered.\r\n"), At: time.Now(),
		})
		ev := o.event(inbox, delivered[0].Event)
		if d := capture.Detail(ev); d.Kind == nil || *d.Kind != "bounce" || ev.EventType != "bounce" {
			t.Errorf("%s in lists, %v in the detail form", ev.EventType, d.Kind)
		}
	})
}

// task is what follows a mail.
func (o *office) task(ev *hookglass.Event) store.Task {
	return store.Task{Kind: store.TaskVerdict, EndpointNum: ev.EndpointNum, EventSeq: ev.Seq, Event: ev}
}

func TestTheVerdictComesAfterTheMail(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "example.org. TXT \"v=spf1 ip4:192.0.2.7 -all\"\n_dmarc.example.org. TXT \"v=DMARC1; p=reject\"\n")
		inbox := o.mailbox("inbox")
		id := o.send(note, "inbox@mail.test")[0].Event
		for _, loaded := range []bool{true, false} { // a large mail comes without its payload
			ev := o.event(inbox, id)
			if !loaded {
				ev.Payload = nil
			}
			if err := o.captures.Authenticate(t.Context(), o.task(ev)); err != nil {
				t.Fatal(err)
			}
			ev = o.event(inbox, id)
			if want := (hookglass.Authentication{SPF: "pass", DKIM: "none", DMARC: "pass"}); ev.Authentication != want {
				t.Errorf("%+v", ev.Authentication)
			}
			var verdict email.Results
			if err := json.Unmarshal(ev.Verdict, &verdict); err != nil || verdict.SPF.Domain != "example.org" || verdict.DMARC.Policy != "reject" {
				t.Errorf("%s, %v", ev.Verdict, err)
			}
			if d := capture.Detail(ev); d.AuthenticationResults.SPF.Result != "pass" || d.AuthenticationResults.DMARC.Policy != "reject" || d.Authentication.DMARC != "pass" {
				t.Errorf("the detail form: %+v", d.AuthenticationResults)
			}
		}
	})
}

// heldDNS answers when it is let.
type heldDNS struct {
	email.Resolver
	asked, goOn chan struct{}
}

func (d heldDNS) LookupTXT(ctx context.Context, name string) ([]string, error) {
	d.asked <- struct{}{}
	<-d.goOn
	return d.Resolver.LookupTXT(ctx, name)
}

// Large events are loaded for tasks a few at a time. Those that find no room are looked at later, and not forgotten.
func TestTasksLoadAFewLargeEventsAtATime(t *testing.T) {
	db := storetest.SQLite(t)
	b := newBench(t, db)
	zone, err := email.ParseZone(nil)
	if err != nil {
		t.Fatal(err)
	}
	dns := heldDNS{zone, make(chan struct{}, 100), make(chan struct{})}
	o := &office{t, db, capture.New(db, capture.Config{Verifiers: b.endpoints, MailDomain: "mail.test", Resolver: dns}, slog.New(slog.DiscardHandler))}
	inbox := o.mailbox("inbox")
	large := func() store.Task {
		ev := o.event(inbox, o.send(note, "inbox@mail.test")[0].Event)
		ev.Payload, ev.Size = nil, 40<<20
		return o.task(ev)
	}
	first, second := large(), large()
	ended := make(chan error)
	go func() { ended <- o.captures.Authenticate(t.Context(), first) }()
	<-dns.asked
	if err := o.captures.Authenticate(t.Context(), second); !hookglass.Is(err, hookglass.CodeRateLimited) {
		t.Errorf("the second mail of 40 MB beside the first: %v, want rate_limited", err)
	}
	if err := o.captures.JudgeSignature(t.Context(), second); !hookglass.Is(err, hookglass.CodeRateLimited) {
		t.Errorf("the signature of an event of 40 MB beside the first: %v, want rate_limited", err)
	}
	close(dns.goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := o.captures.Authenticate(t.Context(), second); err != nil {
		t.Error(err)
	}
}

// A node that stops in the middle leaves the task to another rather than a wrong answer.
func TestAVerdictThatWasCutOffIsNone(t *testing.T) {
	o := newOffice(t, storetest.SQLite(t), "")
	inbox := o.mailbox("inbox")
	ev := o.event(inbox, o.send(note, "inbox@mail.test")[0].Event)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.captures.Authenticate(ctx, o.task(ev)); err == nil {
		t.Error("it was done")
	}
	if got := o.event(inbox, ev.ID); got.Authentication.SPF != hookglass.AuthPending {
		t.Errorf("%+v", got.Authentication)
	}
}

// Without a storage a mail is refused, which is counted, and the verdict on an earlier one is not taken for kept.
func TestAStorageThatIsGoneTakesNeitherMailNorVerdict(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		inbox := o.mailbox("inbox")
		task := o.task(o.event(inbox, o.send(note, "inbox@mail.test")[0].Event))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err, n := o.send(note, "inbox@mail.test")[0].Err, o.captures.Unwritten(); err == nil || n != 1 {
			t.Errorf("the mail: %v, counted %d times", err, n)
		}
		if err := o.captures.Authenticate(t.Context(), task); err == nil {
			t.Error("the verdict is taken for kept")
		}
	})
}

func (o *office) post(e hookglass.Endpoint, kind, body string, more ...hookglass.Header) (*hookglass.Event, error) {
	o.t.Helper()
	t, err := o.captures.AdmitMailbox(o.t.Context(), string(e.ID))
	if err != nil {
		o.t.Fatal(err)
	}
	reply, err := o.captures.CapturePosted(o.t.Context(), t, &capture.Arrival{
		Method: "POST", Headers: append(hookglass.Headers{{Name: "Content-Type", Value: kind}}, more...), Body: []byte(body), Client: netip.MustParseAddr("192.0.2.7"), At: time.Now(),
	})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Received bool
		ID       hookglass.EventID
	}
	if err := json.Unmarshal(reply.Body, &answer); err != nil || !answer.Received || reply.Status != 200 {
		o.t.Fatalf("%d %s", reply.Status, reply.Body)
	}
	return o.event(e, answer.ID), nil
}

func TestMailIsPosted(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		inbox := o.mailbox("inbox")
		ev, err := o.post(inbox, "message/rfc822", note)
		if err != nil {
			t.Fatal(err)
		}
		if string(ev.Body) != note || ev.Path != "inbox@mail.test" || ev.Envelope.Protocol != "HTTP" || ev.Envelope.Composed || ev.IP != "" {
			t.Errorf("%+v %+v", ev, ev.Envelope)
		}
		postmark := `{"FromFull":{"Email":"ann@example.org","Name":"Ann"},"From":"ann@example.org","To":"help@customer.test","OriginalRecipient":"help@customer.test","Subject":"Hi","TextBody":"Hello","HtmlBody":"","MessageID":"73e6d360","Headers":[],"Attachments":[]}`
		if ev, err = o.post(inbox, "application/json", postmark); err != nil {
			t.Fatal(err)
		}
		if ev.Subject != "Hi" || !ev.Envelope.Composed || !strings.Contains(ev.From, "ann@example.org") {
			t.Errorf("%+v %+v", ev, ev.Envelope)
		}
		if err := o.captures.Authenticate(t.Context(), o.task(ev)); err != nil {
			t.Fatal(err)
		}
		if ev = o.event(inbox, ev.ID); ev.Authentication != (hookglass.Authentication{SPF: "none", DKIM: "none", DMARC: "none"}) {
			t.Errorf("of a mail that was put together: %+v", ev.Authentication)
		}
		for kind, want := range map[string]hookglass.Code{"text/plain": hookglass.CodeUnsupportedMediaType, "application/json": hookglass.CodeInvalidJSON} {
			if _, err := o.post(inbox, kind, "no mail"); !hookglass.Is(err, want) {
				t.Errorf("%s: %v", kind, err)
			}
		}
		if _, err := o.post(inbox, "message/rfc822", "\x1f\x8b…", hookglass.Header{Name: "Content-Encoding", Value: "gzip"}); !hookglass.Is(err, hookglass.CodeUnsupportedMediaType) {
			t.Errorf("compressed: %v", err)
		}
		if _, err := o.post(inbox, "message/rfc822", note, hookglass.Header{Name: "Content-Encoding", Value: "identity"}); err != nil {
			t.Errorf("identity: %v", err)
		}
	})
}

func TestExportedMailboxes(t *testing.T) {
	var out strings.Builder
	x, err := capture.NewExport("mbox", &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i, ev := range []*hookglass.Event{
		{Type: hookglass.EventEmail, ReceivedAt: at, Payload: &hookglass.Payload{Body: []byte("a\r\nFrom b\r\n"), Envelope: &hookglass.Envelope{From: "x@y"}}},
		{Type: hookglass.EventWebhook, Payload: &hookglass.Payload{Body: []byte("{}")}},
	} {
		if err := x.Add(ev); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := x.Close(); err != nil || out.String() != "From x@y Fri Nov 20 12:00:00 2026\na\n>From b\n\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
