package alert_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/alert"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

// Activity is pushed signed and in order, through failures, on two nodes, and from where the channel was made on.
func TestActivityIsPushedInOrderThroughFailures(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.capture("before the channel")
		r := newReceiver(t, func(n int) int {
			if n%3 == 0 {
				return 503
			}
			return 204
		})
		c := y.webhook("Hook", r.URL+"/hook", "webhook.received", "forwarding.failed")
		stop := y.run(y.svc)
		y.run(y.node())
		var want []string
		for i := range 12 {
			e := y.capture(fmt.Sprint(i))
			want = append(want, string(e.ID))
			if i == 5 {
				line := hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: e.ReceivedAt.Add(time.Microsecond), EndpointID: y.ep.ID, EventID: e.ID, Data: map[string]any{"attempts": 1}}
				y.update(func(tx *store.Tx) error { return tx.AddActivity(line) })
			}
		}
		accepted := func() (ids []string, failed int) {
			for i, h := range r.got() {
				switch {
				case (i+1)%3 == 0:
				case h.body["type"] == "forwarding.failed":
					failed++
				default:
					ids = append(ids, fmt.Sprint(h.body["request_id"]))
				}
			}
			return ids, failed
		}
		// A node has 36 s for what it sends at once, and the other takes its channel after that: the clock must not run
		// ahead of a slow machine.
		until(t, "half of it", func() bool { y.pass(200 * time.Millisecond); ids, _ := accepted(); return len(ids) >= 6 })
		stop() // one node goes away; the other goes on
		until(t, "all of it", func() bool {
			y.clock.advance(200 * time.Millisecond)
			ids, failed := accepted()
			return len(ids) >= 12 && failed > 0
		})
		ids, _ := accepted()
		if fmt.Sprint(ids[:12]) != fmt.Sprint(want) {
			t.Errorf("pushed were %v, want %v", ids, want)
		}
		key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		seen := map[string]string{}
		for _, h := range r.got() {
			mac := hmac.New(sha256.New, key)
			fmt.Fprintf(mac, "%s.%s.%s", h.header.Get("webhook-id"), h.header.Get("webhook-timestamp"), h.raw)
			if h.header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
				t.Errorf("the signature of %s is wrong", h.raw)
			}
			// An attempt that is made again has the id of the first.
			about := fmt.Sprint(h.body["type"], h.body["request_id"])
			if id := h.header.Get("webhook-id"); seen[about] != "" && seen[about] != id {
				t.Errorf("%s came as %s and %s", about, seen[about], id)
			} else {
				seen[about] = id
			}
		}
		if state := y.channel(c.ID); !state.DisabledAt.IsZero() || state.LastDeliveredAt.IsZero() {
			t.Errorf("the channel is %+v", state)
		}
	})
}

// A process that dies has its channels' last messages sent again, so there must be few of them.
func TestWhatAChannelTookIsRecordedBeforeMuchMoreIsSent(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		var id string
		recorded := make(chan bool, 1)
		r := newReceiver(t, func(n int) int {
			y.clock.advance(400 * time.Millisecond) // a chat takes that long for a message
			if n == 5 {
				recorded <- !y.channel(id).LastDeliveredAt.IsZero()
			}
			return 204
		})
		id = y.webhook("Hook", r.URL+"/hook", "webhook.received").ID
		for i := range 6 {
			y.capture(fmt.Sprint(i))
		}
		y.run(y.svc)
		if !<-recorded {
			t.Error("after four messages none is recorded: another node would send them all again")
		}
	})
}

// A turn writes twice, and those that have something to send wait for it.
func TestCapturesThatAChannelDoesNotFollowGiveItNoTurn(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		r := newReceiver(t, always(204))
		y.webhook("Told", r.URL, "webhook.received")
		idle := y.webhook("Idle", r.URL, "email.received")
		y.run(y.svc)
		for i := range 3 {
			y.capture(fmt.Sprint(i))
			y.pass(time.Second)
			until(t, "what was captured", func() bool { return len(r.got()) > i })
		}
		y.update(func(tx *store.Tx) error {
			held, err := tx.HoldChannel(idle.Num, tx.Now, time.Minute)
			if err == nil && held.Claim != 1 {
				t.Errorf("it has turn %d, its first is expected", held.Claim)
			}
			return err
		})
	})
}

func TestAChannelThatFailsForLongIsDisabledAndComesBack(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		status := make(chan int, 1)
		status <- 500
		r := newReceiver(t, func(int) int { s := <-status; status <- s; return s })
		c := y.webhook("Hook", r.URL, "webhook.received")
		y.capture("1")
		for range 20 {
			must(t, y.svc.Serve(t.Context(), c.Num))
			y.clock.advance(6 * time.Minute)
		}
		if got := y.channel(c.ID); got.Failures != 20 || !got.DisabledAt.IsZero() || got.LastError != "The channel answered 500." || got.FailingFrom.IsZero() {
			t.Errorf("it is %+v", got)
		}
		y.clock.advance(24 * time.Hour)
		y.run(y.svc)
		until(t, "its end", func() bool { y.pass(5 * time.Minute); return !y.channel(c.ID).DisabledAt.IsZero() })
		if got := y.channel(c.ID); got.DisableReason != hookglass.DisabledFailing {
			t.Errorf("the reason is %q", got.DisableReason)
		}
		before := len(r.got())
		<-status
		status <- 200
		y.capture("2")
		_, err := y.svc.UpdateChannel(t.Context(), y.who, c.ID, alert.ChannelDraft{Enabled: new(true)})
		must(t, err)
		e := y.capture("3")
		until(t, "a message", func() bool { return len(r.got()) > before })
		if got := r.got()[before]; got.body["request_id"] != string(e.ID) {
			t.Errorf("what came first is %v", got.body)
		}
	})
}

// A channel that is at work is enabled by who saves all of it. One that was disabled begins anew.
func TestWhatWaitsForAChannelThatIsEnabled(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		r := newReceiver(t, always(200))
		waits := func(c hookglass.Channel, text string) {
			y.update(func(tx *store.Tx) error {
				return tx.Notify(c.Num, "", hookglass.Message{ID: "msg_" + text, Type: hookglass.MessageAction, At: y.clock.now(), Text: text})
			})
		}
		enable := func(c hookglass.Channel, enabled bool) {
			_, err := y.svc.UpdateChannel(t.Context(), y.who, c.ID, alert.ChannelDraft{Enabled: &enabled})
			must(t, err)
		}
		working, disabled := y.webhook("Working", r.URL+"/working", "webhook.received"), y.webhook("Disabled", r.URL+"/disabled", "webhook.received")
		y.capture("waits")
		for _, c := range []hookglass.Channel{working, disabled} {
			waits(c, "old")
			var held store.HeldChannel
			y.update(func(tx *store.Tx) (err error) {
				held, err = tx.HoldChannel(c.Num, y.clock.now(), time.Minute)
				return err
			})
			enable(c, c.ID == working.ID)
			enable(c, true)
			y.update(func(tx *store.Tx) error {
				ours, err := tx.ReleaseChannel(held, store.ChannelProgress{Cursor: held.Cursor})
				if ours != (c.ID == working.ID) {
					t.Errorf("%s: who was sending may say what came of it: %t", c.Name, ours)
				}
				return err
			})
		}
		waits(disabled, "new")
		y.run(y.svc)
		until(t, "the messages", func() bool { return len(r.got()) >= 3 })
		told := map[string][]string{}
		for _, h := range r.got() {
			told[h.path] = append(told[h.path], fmt.Sprintf("%v %v", h.body["type"], h.body["message"]))
		}
		if want := "map[/disabled:[action.notification new] /working:[webhook.received <nil> action.notification old]]"; fmt.Sprint(told) != want {
			t.Errorf("told was %v, want %s", told, want)
		}
	})
}

// The query of a webhook's URL is not shown, since it may hold a key. Who sends back what is shown does not lose it.
func TestAURLAsItIsShownStaysAsItIs(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		r := newReceiver(t, always(200))
		c := y.webhook("Hook", r.URL+"/in?key=k1")
		if c.Shown.URL != r.URL+"/in" {
			t.Fatalf("shown is %s", c.Shown.URL)
		}
		for _, step := range []struct{ url, told string }{
			{c.Shown.URL, "/in?key=k1"}, {r.URL + "/other", "/other"}, {r.URL + "/other?key=k2", "/other?key=k2"}, {r.URL + "/other?key=k3", "/other?key=k3"}, {r.URL + "/other", "/other?key=k3"},
		} {
			_, err := y.svc.UpdateChannel(t.Context(), y.who, c.ID, alert.ChannelDraft{Config: &alert.ChannelSettings{URL: &step.url}})
			must(t, err)
			_, err = y.svc.TestChannel(t.Context(), y.who, c.ID)
			must(t, err)
			if hits := r.got(); hits[len(hits)-1].target != step.told {
				t.Errorf("after %s, told was %s, want %s", step.url, hits[len(hits)-1].target, step.told)
			}
		}
		none := ""
		if _, err := y.svc.UpdateChannel(t.Context(), y.who, c.ID, alert.ChannelDraft{Config: &alert.ChannelSettings{URL: &none}}); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("no URL: %v", err)
		}
	})
}

func TestAChannelThatIsGoneIsDisabledAtOnce(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		r := newReceiver(t, always(410))
		c := y.webhook("Hook", r.URL, "webhook.received")
		y.run(y.svc)
		y.capture("1")
		until(t, "its end", func() bool { return !y.channel(c.ID).DisabledAt.IsZero() })
		if got := y.channel(c.ID); got.DisableReason != hookglass.DisabledGone || len(r.got()) != 1 {
			t.Errorf("it is %+v after %d messages", got, len(r.got()))
		}
	})
}

// A message that is refused does not hold up those behind it for ever, and each of them is tried as often.
func TestAMessageThatIsRefusedIsGivenUp(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		r := newReceiver(t, func(n int) int {
			if n <= 10 {
				return 400
			}
			return 200
		})
		y.webhook("Hook", r.URL, "webhook.received")
		y.run(y.svc)
		y.capture("1")
		second, third := y.capture("2"), y.capture("3")
		until(t, "eleven messages", func() bool { y.pass(time.Minute); return len(r.got()) >= 11 })
		for n, want := range map[int]*hookglass.Event{6: second, 10: second, 11: third} {
			if got := r.got()[n-1]; got.body["request_id"] != string(want.ID) {
				t.Errorf("message %d is %v", n, got.body)
			}
		}
	})
}

// An answer that says nothing of the message itself is no refusal: it may be taken later, and those behind it wait.
func TestAMessageThatMayBeTakenLaterIsNotGivenUp(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		for _, status := range []int{408, 425, 429, 503} {
			r := newReceiver(t, always(status))
			c := y.webhook(fmt.Sprint(status), r.URL, "webhook.received")
			first := y.capture("1")
			y.capture("2")
			for range 7 {
				must(t, y.svc.Serve(t.Context(), c.Num))
				y.clock.advance(6 * time.Minute)
			}
			if got := r.got(); len(got) != 7 || got[6].body["request_id"] != string(first.ID) {
				t.Errorf("%d: it was sent %d messages, want the first 7 times", status, len(got))
			}
		}
	})
}

// A webhook without a secret gets one that nobody can guess.
func TestAWebhookGetsASecretOfItsOwn(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		known := map[string]bool{}
		for _, name := range []string{"One", "Other"} {
			_, secret, err := y.svc.CreateChannel(t.Context(), y.who, alert.ChannelDraft{
				Name: &name, Kind: new(hookglass.ChannelWebhook), Config: &alert.ChannelSettings{URL: new("https://example.com/"), Events: &[]string{}},
			})
			must(t, err)
			key, err := alert.SigningKey(secret)
			if err != nil || len(key) != 32 || known[secret] || bytes.Count(key, []byte{0}) > 8 {
				t.Errorf("%q: %d bytes, %v", secret, len(key), err)
			}
			known[secret] = true
		}
	})
}

// What waits outlives the process, and what is deleted is not told.
func TestMessagesWaitInTheTable(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		r := newReceiver(t, always(200))
		kept, dropped := y.webhook("Kept", r.URL+"/kept"), y.webhook("Dropped", r.URL+"/dropped")
		for _, c := range []hookglass.Channel{kept, dropped} {
			for range 2 { // the second has the key of the first
				y.update(func(tx *store.Tx) error {
					return tx.Notify(c.Num, "key", hookglass.Message{ID: "msg_1", Type: hookglass.MessageAction, At: time.Now(), Text: "hello"})
				})
			}
		}
		_, err := y.svc.DeleteChannel(t.Context(), y.who, dropped.ID)
		must(t, err)
		y.run(y.node())
		until(t, "a message", func() bool { return len(r.got()) > 0 && y.channel(kept.ID).LastDeliveredAt.After(time.Time{}) })
		if hits := r.got(); len(hits) != 1 || hits[0].path != "/kept" || hits[0].body["message"] != "hello" {
			t.Errorf("told was %v", hits)
		}
	})
}

func TestEachKindOfChannelIsSpokenToInItsWay(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		r := newReceiver(t, always(200))
		svc := y.node()
		svc.Telegram = r.URL
		for _, c := range []struct {
			kind   hookglass.ChannelKind
			config alert.ChannelSettings
			path   string
			member string
		}{
			{hookglass.ChannelSlack, alert.ChannelSettings{WebhookURL: new(r.URL + "/slack")}, "/slack", "text"},
			{hookglass.ChannelDiscord, alert.ChannelSettings{WebhookURL: new(r.URL + "/discord")}, "/discord", "content"},
			{hookglass.ChannelTeams, alert.ChannelSettings{WebhookURL: new(r.URL + "/teams")}, "/teams", "attachments"},
			{hookglass.ChannelTelegram, alert.ChannelSettings{BotToken: new("12:a-B_c"), ChatID: new("-100")}, "/bot12:a-B_c/sendMessage", "text"},
		} {
			made, _, err := svc.CreateChannel(t.Context(), y.who, alert.ChannelDraft{Name: new(string(c.kind)), Kind: &c.kind, Config: &c.config})
			must(t, err)
			sent, err := svc.TestChannel(t.Context(), y.who, made.ID)
			must(t, err)
			hits := r.got()
			if last := hits[len(hits)-1]; !sent.Delivered || sent.StatusCode != 200 || last.path != c.path || !strings.Contains(fmt.Sprint(last.body[c.member]), "Test message") {
				t.Errorf("%s: %+v, told was %s %s", c.kind, sent, last.path, last.raw)
			}
		}
		kind := hookglass.ChannelEmail
		mail, _, err := svc.CreateChannel(t.Context(), y.who, alert.ChannelDraft{Name: new("mail"), Kind: &kind, Config: &alert.ChannelSettings{To: &[]string{"a@example.com"}}})
		must(t, err)
		sent, err := svc.TestChannel(t.Context(), y.who, mail.ID)
		must(t, err)
		if sent.Delivered || sent.Failure == nil || sent.Failure.Code != "unavailable" || svc.Problem(kind) == "" {
			t.Errorf("mail without a relay: %+v", sent)
		}
		addr, _ := relay(t)
		svc.Mailer = alert.NewMailer(alert.Relay{Host: "127.0.0.1", Port: addr.Port, From: "hookglass@example.com", Dial: new(net.Dialer).DialContext})
		some, _, err := svc.CreateChannel(t.Context(), y.who, alert.ChannelDraft{Name: new("some"), Kind: &kind, Config: &alert.ChannelSettings{To: &[]string{"a@example.com", "gone@example.com"}}})
		must(t, err)
		sent, err = svc.TestChannel(t.Context(), y.who, some.ID)
		must(t, err)
		if !sent.Delivered || sent.Failure == nil || !strings.Contains(sent.Failure.Message, "1 of 2") {
			t.Errorf("mail that one of two gets: %+v, %+v", sent, sent.Failure)
		}
	})
}

// A channel that leads back to the endpoint that it tells of goes round three times, and is no channel that fails.
func TestAChannelThatTellsItselfEnds(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		r := newReceiver(t, func(int) int { return 200 })
		c := y.webhook("Hook", r.URL, "webhook.received")
		y.run(y.svc)
		y.capture("the first")
		for n := 1; n <= 3; n++ {
			until(t, fmt.Sprint("message ", n), func() bool { y.pass(time.Second); return len(r.got()) == n })
			h := r.got()[n-1].header
			if got := h.Get(outbound.HopHeader); got != fmt.Sprint(n) {
				t.Errorf("message %d says it has come %q ways", n, got)
			}
			y.captureWith(hookglass.Headers{{Name: outbound.HopHeader, Value: h.Get(outbound.HopHeader)}}, "again")
		}
		until(t, "the end", func() bool { y.pass(time.Second); return strings.Contains(y.channel(c.ID).LastError, "loop") })
		after := y.capture("another")
		until(t, "what comes after", func() bool { y.pass(time.Second); return len(r.got()) == 4 })
		if id := r.got()[3].body["request_id"]; id != string(after.ID) || !y.channel(c.ID).DisabledAt.IsZero() {
			t.Errorf("told was of %v; the channel is %+v", id, y.channel(c.ID))
		}
	})
}

// Mail about an event may go to an inbox of this service and cause the next mail: the loop ends after three rounds.
func TestMailThatComesBackEnds(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		addr, told := relay(t)
		y.svc.Mailer = alert.NewMailer(alert.Relay{Host: "127.0.0.1", Port: addr.Port, From: "hookglass@example.com", Dial: new(net.Dialer).DialContext})
		kind := hookglass.ChannelEmail
		c, _, err := y.svc.CreateChannel(t.Context(), y.who, alert.ChannelDraft{Name: new("Mail"), Kind: &kind, Config: &alert.ChannelSettings{To: &[]string{"a@example.com"}}})
		must(t, err)
		y.run(y.svc)
		tell := func(hops int) {
			e := y.captureWith(hookglass.Headers{{Name: outbound.HopHeader, Value: fmt.Sprint(hops)}}, "mail")
			y.update(func(tx *store.Tx) error {
				return tx.Notify(c.Num, "", hookglass.Message{
					ID: fmt.Sprint("msg_", hops), Type: hookglass.MessageAction, At: tx.Now, EndpointID: y.ep.ID, EventID: e.ID, Title: "Mail", Text: "It came.",
				})
			})
		}
		for n := 1; n <= 3; n++ {
			tell(n - 1)
			mail := ""
			until(t, fmt.Sprint("mail ", n), func() bool {
				y.pass(time.Second)
				select {
				case mail = <-told:
				default:
				}
				return mail != ""
			})
			if !strings.Contains(mail, fmt.Sprintf("\n%s: %d\n", outbound.HopHeader, n)) {
				t.Errorf("mail %d lacks its hops:\n%s", n, mail)
			}
		}
		tell(3)
		until(t, "the end", func() bool { y.pass(time.Second); return strings.Contains(y.channel(c.ID).LastError, "loop") })
		if len(told) > 0 {
			t.Errorf("mail 4: %s", <-told)
		}
	})
}

// A channel says how long it is to be left alone in seconds or by a date, and gets an hour at most.
func TestAChannelIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		for form, value := range map[string]string{
			"seconds": "1800", "date": y.clock.now().Add(30 * time.Minute).UTC().Format(http.TimeFormat), "far": "99999999999999999999",
		} {
			var calls atomic.Int64
			target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.Header().Set("Retry-After", value)
				w.WriteHeader(429)
			}))
			t.Cleanup(target.Close)
			c := y.webhook(form, target.URL, "webhook.received")
			y.capture("1")
			serve := func(after time.Duration, want int64) {
				t.Helper()
				y.clock.advance(after)
				must(t, y.svc.Serve(t.Context(), c.Num))
				if got := calls.Load(); got != want {
					t.Errorf("%s: after %v more it was called %d times, want %d", form, after, got, want)
				}
			}
			asked := 30 * time.Minute
			if form == "far" {
				asked = time.Hour
			}
			serve(0, 1)
			serve(asked-10*time.Minute, 1)
			serve(11*time.Minute, 2)
			y.clock.advance(-asked - time.Minute)
		}
	})
}

// stopAt ends a context when something is done.
type stopAt struct {
	alert.Sealer
	stop func()
}

func (s stopAt) Open(sealed []byte, where string) ([]byte, error) {
	s.stop()
	return s.Sealer.Open(sealed, where)
}

// panicking panics over what it opens, so many times.
type panicking struct {
	alert.Sealer
	left int
}

func (p *panicking) Open(sealed []byte, where string) ([]byte, error) {
	if p.left--; p.left >= 0 {
		panic("what was sealed")
	}
	return p.Sealer.Open(sealed, where)
}

// A message over which the code panics fails for itself, and is given up as one that is refused.
func TestAMessageThatPanicsEndsNoNode(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		r := newReceiver(t, always(200))
		c := y.webhook("Hook", r.URL, "webhook.received")
		y.capture("1")
		second := y.capture("2")
		svc := y.node()
		svc.Sealer = &panicking{svc.Sealer, 5}
		for n := range 5 {
			must(t, svc.Serve(t.Context(), c.Num))
			if got := y.channel(c.ID); got.LastError == "" || !got.Enabled || len(r.got()) != 0 {
				t.Fatalf("after %d attempts the channel is %+v, and %d messages came", n+1, got, len(r.got()))
			}
			y.pass(10 * time.Minute)
		}
		must(t, svc.Serve(t.Context(), c.Num))
		if got := r.got(); len(got) != 1 || got[0].body["request_id"] != string(second.ID) {
			t.Errorf("what came behind it: %v", got)
		}
	})
}

// A node that stops while it makes or sends a message has not been failed by the channel: another sends it at once.
func TestANodeThatStopsIsNoFailureOfAChannel(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		r := newReceiver(t, always(200))
		hook := y.webhook("Hook", r.URL, "webhook.received")
		y.capture("1")
		kind := hookglass.ChannelEmail
		mail, _, err := y.svc.CreateChannel(t.Context(), y.who, alert.ChannelDraft{Name: new("Mail"), Kind: &kind, Config: &alert.ChannelSettings{To: &[]string{"a@example.com"}}})
		must(t, err)
		y.update(func(tx *store.Tx) error {
			return tx.Notify(mail.Num, "key", hookglass.Message{ID: "msg_1", Type: hookglass.MessageAction, At: time.Now(), Text: "hello"})
		})
		for _, c := range []hookglass.Channel{hook, mail} {
			ctx, cancel := context.WithCancel(t.Context())
			svc := y.node()
			if c.Kind == hookglass.ChannelEmail {
				svc.Mailer = alert.NewMailer(alert.Relay{Host: "127.0.0.1", Port: 25, From: "hookglass@example.com", Dial: func(context.Context, string, string) (net.Conn, error) {
					cancel()
					return nil, ctx.Err()
				}})
			} else {
				svc.Sealer = stopAt{svc.Sealer, cancel}
			}
			must(t, svc.Serve(ctx, c.Num))
			if got := y.channel(c.ID); ctx.Err() == nil || got.LastError != "" || !got.FailingFrom.IsZero() {
				t.Errorf("%s: stopped %v, and the channel says %q since %s", c.Kind, ctx.Err(), got.LastError, got.FailingFrom)
			}
		}
		must(t, y.node().Serve(t.Context(), hook.Num))
		if n := len(r.got()); n != 1 {
			t.Errorf("the next node sent %d messages", n)
		}
	})
}

// Who creates at the same time as others is counted with them.
func TestNoMoreChannelsAreMadeAtOnceThanThereMayBe(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		const most, present = 1000, 990
		y.update(func(tx *store.Tx) error {
			for i := range present {
				c := hookglass.Channel{
					ID: hookglass.NewSortableID(hookglass.PrefixChannel, tx.Now), WorkspaceID: y.ep.WorkspaceID, Name: fmt.Sprintf("present %d", i),
					Kind: hookglass.ChannelSlack, Sealed: []byte{1},
				}
				if err := tx.CreateChannel(&c); err != nil {
					return err
				}
			}
			return nil
		})
		var made atomic.Int64
		var makers sync.WaitGroup
		for i := range 40 {
			makers.Go(func() {
				name, kind, to := fmt.Sprintf("new %d", i), hookglass.ChannelEmail, []string{"ada@example.com"}
				_, _, err := y.svc.CreateChannel(t.Context(), y.who, alert.ChannelDraft{Name: &name, Kind: &kind, Config: &alert.ChannelSettings{To: &to}})
				if err == nil {
					made.Add(1)
				} else if !hookglass.Is(err, hookglass.CodeValidationFailed) {
					t.Error(err)
				}
			})
		}
		makers.Wait()
		if n := made.Load(); n != most-present {
			t.Errorf("%d channels were made where there was room for %d", n, most-present)
		}
	})
}
