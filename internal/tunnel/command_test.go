package tunnel_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
	"hookglass/internal/tunnel"
)

var request = hookglass.SentRequest{Method: "POST", URL: "/orders?a=1", Headers: hookglass.Headers{{Name: "X-A", Value: "1"}}, Body: []byte("hi")}

// of returns an event of the endpoint.
func (b *bench) of() *hookglass.Event {
	return &hookglass.Event{EndpointNum: b.ep.Num, Provider: "stripe", EventType: "invoice.paid"}
}

// send has a request made in the background.
func (b *bench) send(ctx context.Context, n *node, timeout time.Duration) <-chan hookglass.TunnelOutcome {
	out := make(chan hookglass.TunnelOutcome, 1)
	go func() { out <- n.Send(ctx, b.of(), "rrun_x", request, timeout) }()
	return out
}

func TestARequestGoesToOneClientAndComesBackFromAnyNode(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		one, two := b.node(0, 0), b.node(1, 0)
		if got := one.Send(t.Context(), b.of(), "", request, time.Second); !got.Blocked || got.Failure.Code != "no_tunnel" {
			t.Errorf("with no session: %+v", got)
		}
		can := b.connect(two, b.who, string(b.ep.ID), hookglass.TunnelClient{Capabilities: []string{hookglass.CapabilityReplay}})
		can.subscribe(b.ep)
		not := b.connect(one, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		not.subscribe(b.ep)
		out := b.send(t.Context(), one, patience)
		can.await("the command", func() bool { return len(can.commands) == 1 })
		c := can.commands[0]
		if c.Type != "tunnel_replay_command" || c.Method != "POST" || c.URL != "http://localhost:3000/in/orders?a=1" || c.BodyBase64 != "aGk=" || c.Headers["X-A"] != "1" ||
			c.DetectedProvider != "stripe" || *c.ProviderEventData.EventType != "invoice.paid" || *c.ReplayCaseRunID != "rrun_x" || c.TimeoutMS <= 0 || c.EvidenceBodyLimit != 65536 || c.ResultToken == "" || !c.ExpiresAt.After(time.Now()) {
			t.Errorf("%+v", c)
		}
		result := api.TunnelReplayResult{
			CommandID: c.CommandID, ResultToken: c.ResultToken, StatusCode: api.Some[int64](201), ResponseTimeMS: new(int64(1234)),
			TunnelEvidence: api.TunnelEvidence{ContentType: "text/plain", Body: "made", ResponseHeaders: map[string]string{"X-B": "2"}},
		}
		wrong := result
		wrong.ResultToken = "trt_00000000000000000000000000"
		if err := one.Finish(t.Context(), wrong); !hookglass.Is(err, hookglass.CodeUnauthorized) {
			t.Errorf("a wrong token: %v", err)
		}
		must(t, one.Finish(t.Context(), result))
		got := <-out
		if got.Duration != 1234*time.Millisecond || got.Response == nil || got.Response.Status != 201 || string(got.Response.Body) != "made" || got.Response.Headers.Get("content-type") != "text/plain" || got.Response.Headers.Get("X-B") != "2" {
			t.Errorf("%+v", got)
		}
		if err := one.Finish(t.Context(), result); !hookglass.Is(err, hookglass.CodeConflict) {
			t.Errorf("the token again: %v", err)
		}
		if len(not.commands) != 0 {
			t.Error("both clients got the command")
		}
	})
}

func TestARequestReachesTheClientByteForByte(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{Capabilities: []string{hookglass.CapabilityReplay}})
		c.subscribe(b.ep)
		raw := hookglass.SentRequest{Method: "POST", URL: "/\xff%zz?a=\xe9", Headers: hookglass.Headers{{Name: "X-Latin", Value: "caf\xe9"}, {Name: "X-Text", Value: "caf\u00e9"}}}
		out := make(chan hookglass.TunnelOutcome, 1)
		go func() { out <- n.Send(t.Context(), b.of(), "", raw, patience) }()
		c.await("the command", func() bool { return len(c.commands) == 1 })
		command := c.commands[0]
		if url, fields := command.Wanted(); url != "http://localhost:3000/in/\xff%zz?a=\xe9" || fields[0][1] != "caf\xe9" || fields[1][1] != "caf\u00e9" {
			t.Errorf("%q, %q", url, fields)
		}
		result := api.TunnelReplayResult{CommandID: command.CommandID, ResultToken: command.ResultToken, StatusCode: api.Some[int64](200)}
		result.SetResponseHeaders(map[string]string{"X-Latin": "caf\xe9"})
		must(t, n.Finish(t.Context(), result))
		if got := <-out; got.Duration <= 0 || got.Response == nil || got.Response.Headers.Get("X-Latin") != "caf\xe9" { // a client that does not say how long it took
			t.Errorf("%+v", got)
		}
	})
}

// However many commands come at the same moment, and one announcement of them, each is given to its client.
func TestCommandsThatComeTogetherAreAllSent(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.connect(b.node(0, 0), b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		const many = 70
		must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			for range many {
				command := hookglass.TunnelCommand{
					ID: hookglass.NewSortableID(hookglass.PrefixTunnelCommand, tx.Now), EndpointNum: b.ep.Num, Request: request, Timeout: time.Minute, ExpiresAt: tx.Now.Add(time.Minute),
				}
				if err := tx.CreateTunnelCommand(&command, tx.Now); err != nil {
					return err
				}
			}
			return nil
		}))
		c.await("all commands", func() bool { return len(c.commands) == many })
		given := map[string]bool{}
		for _, command := range c.commands {
			given[command.CommandID] = true
		}
		if len(given) != many {
			t.Errorf("%d commands of %d", len(given), many)
		}
	})
}

func TestWhatBecomesOfARequestWithoutAnAnswer(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		for timeout := 4 * time.Second; ; timeout *= 2 {
			got := <-b.send(t.Context(), n, timeout)
			c.mu.Lock()
			given := len(c.commands) == 1
			c.mu.Unlock()
			if !given && timeout < patience {
				continue // the time was over before the client was given it
			}
			if !given || got.Blocked || !got.MaySent || got.Failure == nil {
				t.Errorf("the client has it (%t) and says nothing: %+v", given, got)
			}
			break
		}
		no, yes := false, true
		for i, said := range []struct {
			category string
			sent     *bool
			want     bool
		}{
			{"connection_refused", &no, false}, {"connection_refused", &yes, true}, {"timeout", &no, false},
			{"connection_refused", nil, false}, {"dns_error", nil, false}, {"tls_error", nil, false}, {"timeout", nil, true}, {"unknown_error", nil, true},
			{"", nil, true},
		} {
			out := b.send(t.Context(), n, patience)
			c.await("the next command", func() bool { return len(c.commands) == 2+i })
			last := c.commands[1+i]
			must(t, n.Finish(t.Context(), api.TunnelReplayResult{
				CommandID: last.CommandID, ResultToken: last.ResultToken, Error: "refused", FailureCategory: said.category, RequestMayHaveBeenSent: said.sent,
			}))
			if got := <-out; got.Blocked || got.MaySent != said.want || got.Failure == nil || got.Failure.Code != cmp.Or(said.category, "connection_failed") || got.Failure.Message != "refused" {
				t.Errorf("%+v: %+v", said, got)
			}
		}
	})
}

// Whoever gives a request up while it is being stored is told whether a client can have it: it does not go out with the
// next one.
func TestARequestThatIsGivenUpWhileItIsStoredIsNotSentLater(t *testing.T) {
	db := storetest.SQLite(t) // which stores together what waits together
	b := newBench(t, db, db)
	n := b.node(0, 0)
	c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
	c.subscribe(b.ep)
	want := 1
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var out <-chan hookglass.TunnelOutcome
		beside := make(chan error, 1)
		must(t, db.Update(t.Context(), hookglass.System, func(*store.Tx) error {
			out = b.send(ctx, n, patience)
			<-time.After(20 * time.Millisecond) // until it waits for this
			go func() {
				beside <- db.Update(t.Context(), hookglass.System, func(*store.Tx) error {
					cancel()
					<-time.After(20 * time.Millisecond) // until it is given up, and not yet on disk
					return nil
				})
			}()
			<-time.After(20 * time.Millisecond)
			return nil
		}))
		must(t, <-beside)
		if got := <-out; got.Blocked == got.MaySent || got.Failure == nil {
			t.Errorf("given up: %+v", got)
		} else if got.MaySent {
			want++
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan hookglass.TunnelOutcome, 1)
	go func() { ended <- n.Send(ctx, b.of(), "rrun_next", request, patience) }()
	c.await("the next request", func() bool { // the oldest is given first
		last := len(c.commands) - 1
		return last >= 0 && *c.commands[last].ReplayCaseRunID == "rrun_next"
	})
	if got := len(c.commands); got != want {
		t.Errorf("the client was given %d requests, want %d", got, want)
	}
	cancel()
	<-ended
}

func TestTheSenderGetsTheAnswerOfTheLocalMachine(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		one, two := b.node(0, 0), b.node(1, 0)
		b.ep.ProviderConfig.ResponseMode = hookglass.ResponseTunnel
		b.save()
		unheard := event(b.ep, "nobody")
		must(t, b.dbs[0].Capture(t.Context(), b.ep.AccountID, unheard))
		if got := one.Answer(t.Context(), unheard); got != nil {
			t.Errorf("with no session: %+v", got)
		}
		c := b.connect(two, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		ask := func() (*hookglass.Event, <-chan *hookglass.TargetResponse) {
			ev := event(b.ep, "x")
			must(t, b.dbs[0].Capture(t.Context(), b.ep.AccountID, ev))
			out := make(chan *hookglass.TargetResponse, 1)
			go func() { out <- one.Answer(t.Context(), ev) }()
			return ev, out
		}
		ev, out := ask()
		c.got(1)
		if !c.messages[0].Respond {
			t.Error("the client is not told that the sender waits")
		}
		report := api.DeliveryReport{EndpointID: string(b.ep.ID), WebhookRequestID: string(ev.ID), TargetURL: "http://localhost:3000", StatusCode: api.Some[int64](500)}
		_, err := two.Report(t.Context(), b.who, report) // of version 1: it has no answer
		must(t, err)
		report.ReportVersion, report.StatusCode, report.Body, report.ContentType = 2, api.Some[int64](202), "later", "text/plain"
		report.SetResponseHeaders(map[string]string{"X-Latin": "caf\xe9", "X-Text": "caf\u00e9"})
		must(t, c.session.Report(string(b.ep.ID), report))
		if got := <-out; got == nil || got.Status != 202 || string(got.Body) != "later" || got.Headers.Get("Content-Type") != "text/plain" ||
			got.Headers.Get("X-Latin") != "caf\xe9" || got.Headers.Get("X-Text") != "caf\u00e9" {
			t.Errorf("%+v", got)
		}
		ev, out = ask()
		report.WebhookRequestID, report.StatusCode, report.FailureCategory = string(ev.ID), api.Some[int64](0), "connection_refused"
		_, err = two.Report(t.Context(), b.who, report)
		must(t, err)
		if got := <-out; got != nil {
			t.Errorf("the local machine gave no answer, and the sender gets %+v", got)
		}
		_, out = ask()
		c.close(true)
		if got := <-out; got != nil {
			t.Errorf("the client went away, and the sender gets %+v", got)
		}
	})
}

// Of the answers of a local machine those are given to the sender that can end a request.
func TestAnAnswerEndsARequest(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		for status, given := range map[int64]bool{0: false, 100: false, 199: false, 200: true, 304: true, 599: true} {
			ev := event(b.ep, "x")
			must(t, b.dbs[0].Capture(t.Context(), b.ep.AccountID, ev))
			report := api.DeliveryReport{EndpointID: string(b.ep.ID), WebhookRequestID: string(ev.ID), TargetURL: "http://localhost:3000", StatusCode: api.Some(status), ReportVersion: 2}
			_, err := n.Report(t.Context(), b.who, report)
			must(t, err)
			if got := n.Answer(t.Context(), ev); (got != nil) != given || given && int64(got.Status) != status {
				t.Errorf("of the answer %d the sender gets %+v", status, got)
			}
		}
	})
}

// A client is named in a report by whoever holds its credential and could have opened it: its account, or the key of its
// temporary endpoint.
func TestAReportNamesAClientByItsOwnCredential(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		type side struct {
			name  string
			who   hookglass.Principal
			ep    hookglass.Endpoint
			event string
			grant tunnel.Grant
		}
		sides := []side{{name: "an account", who: b.who, ep: b.ep, event: b.capture(0, b.ep, 1)[0]}}
		other, err := b.accounts.Register(t.Context(), account.Registration{Email: "bob@example.com"})
		must(t, err)
		bob, theirs := hookglass.Principal{Account: other.Account.ID, User: other.User.ID, Scopes: hookglass.System.Scopes}, "Theirs"
		e, err := b.endpoints.Create(t.Context(), bob, endpoint.Draft{Name: &theirs})
		must(t, err)
		sides = append(sides, side{name: "another account", who: bob, ep: e, event: b.capture(0, e, 1)[0]})
		for _, name := range []string{"a temporary endpoint", "another temporary endpoint"} {
			e, key, err := b.endpoints.CreateTemporary(t.Context())
			must(t, err)
			who, err := b.accounts.Authenticate(t.Context(), key)
			must(t, err)
			sides = append(sides, side{name: name, who: who, ep: e, event: b.capture(0, e, 1)[0]})
		}
		for i := range sides {
			var err error
			sides[i].grant, err = n.Connect(t.Context(), sides[i].who, string(sides[i].ep.ID), hookglass.TunnelClient{})
			must(t, err)
		}
		for i, who := range sides {
			for j, client := range sides {
				for k, secret := range sides {
					_, err := n.Report(t.Context(), who.who, api.DeliveryReport{
						EndpointID: string(who.ep.ID), WebhookRequestID: who.event, TargetURL: "http://localhost:3000", StatusCode: api.Some[int64](200),
						TunnelClientID: client.grant.ClientID, TunnelClientCredential: secret.grant.Credential,
					})
					if own := i == j && j == k; own && err != nil || !own && !hookglass.Is(err, hookglass.CodeForbidden) {
						t.Errorf("%s names the client of %s by the credential of %s: %v", who.name, client.name, secret.name, err)
					}
				}
			}
		}
	})
}

// A report that says too much is not lost: the event was delivered, and its sender waits.
func TestOfALongAnswerTheBeginningIsKept(t *testing.T) {
	const most, longest = hookglass.EvidenceLimit, hookglass.MessageLimit
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		b.ep.ProviderConfig.ResponseMode = hookglass.ResponseTunnel
		b.save()
		for _, size := range []int{most, most + 1} {
			text := strings.Repeat("x", size)
			for name, in := range map[string]api.TunnelEvidence{
				"alone":            {Body: text},
				"in base64":        {Body: base64.StdEncoding.EncodeToString([]byte(text)), BodyEncoding: "base64"},
				"called the whole": {Body: text, RetainedBytes: new(int64(size)), DecodedBytesObserved: new(int64(size)), CaptureComplete: new(true)},
			} {
				ev := event(b.ep, "x")
				must(t, b.dbs[0].Capture(t.Context(), b.ep.AccountID, ev))
				r, err := n.Report(t.Context(), b.who, api.DeliveryReport{
					EndpointID: string(b.ep.ID), WebhookRequestID: string(ev.ID), TargetURL: "http://localhost:3000", StatusCode: api.Some[int64](200), ReportVersion: 2,
					ResponseMessage: strings.Repeat("x", longest-1) + "é", TunnelEvidence: in,
				})
				must(t, err)
				whole := size <= most
				if e := r.Evidence; string(e.Body) != text[:most] || e.Complete != whole || (e.TruncationReason == "") != whole || e.RetainedBytes != most || e.ObservedBytes != int64(size) {
					t.Errorf("%d bytes %s: %d bytes, %+v", size, name, len(e.Body), r)
				}
				if r.Message != strings.Repeat("x", longest-1) {
					t.Errorf("the message is %q", r.Message)
				}
				if got := n.Answer(t.Context(), ev); got == nil || string(got.Body) != text[:most] || got.Truncated == whole {
					t.Errorf("%d bytes %s: the sender gets %+v", size, name, got)
				}
			}
		}
		out := b.send(t.Context(), n, patience)
		c.await("the command", func() bool { return len(c.commands) == 1 })
		must(t, n.Finish(t.Context(), api.TunnelReplayResult{
			CommandID: c.commands[0].CommandID, ResultToken: c.commands[0].ResultToken, StatusCode: api.Some[int64](200), Error: strings.Repeat("x", longest+1),
			ResponseMessage: strings.Repeat("x", longest+1), TunnelEvidence: api.TunnelEvidence{Body: strings.Repeat("x", most+1)},
		}))
		if got := <-out; got.Response == nil || len(got.Response.Body) != most || !got.Response.Truncated {
			t.Errorf("of a replay %+v", got)
		}
	})
}

func TestTheSenderOfADeletedEventWaitsForNoAnswer(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		one, two := b.node(0, 0), b.node(1, 0)
		other := b.endpoint("other")
		b.ep.ProviderConfig.ResponseMode = hookglass.ResponseTunnel
		b.save()
		c := b.connect(two, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		c.subscribe(other)
		all := 0
		ask := func(ep hookglass.Endpoint) (*hookglass.Event, <-chan bool) {
			ev := event(ep, "x")
			must(t, b.dbs[0].Capture(t.Context(), ep.AccountID, ev))
			all++
			c.got(all)
			out := make(chan bool, 1)
			go func() {
				elapsed := storetest.Watch(t)
				got := one.Answer(t.Context(), ev)
				out <- got == nil && elapsed() < 10*time.Second // of 25
			}()
			return ev, out
		}
		_, stays := ask(other)
		for name, remove := range map[string]func(tx *store.Tx, ev *hookglass.Event) error{
			"the event": func(tx *store.Tx, ev *hookglass.Event) error { return tx.DeleteEvent(string(b.ep.ID), string(ev.ID)) },
			"all events": func(tx *store.Tx, ev *hookglass.Event) error {
				_, err := tx.DeleteAllEvents(string(b.ep.ID))
				return err
			},
		} {
			ev, out := ask(b.ep)
			must(t, b.dbs[1].Update(t.Context(), b.who, func(tx *store.Tx) error { return remove(tx, ev) }))
			if !<-out {
				t.Errorf("%s: deleted, and its sender waits", name)
			}
		}
		_, out := ask(b.ep)
		must(t, b.dbs[1].Update(t.Context(), b.who, func(tx *store.Tx) error { return tx.DeleteEndpoint(&b.ep) }))
		if !<-out {
			t.Error("the endpoint: deleted, and its sender waits")
		}
		select {
		case <-stays:
			t.Error("the sender of an event that is kept waits no more")
		default:
		}
		must(t, b.dbs[1].Update(t.Context(), b.who, func(tx *store.Tx) error { _, err := tx.DeleteAllEvents(string(other.ID)); return err }))
		<-stays
	})
}

// A path is captured as its sender spelled it, and what became of it can be told.
func TestAReportSaysWhereARequestWentHoweverThatIsSpelled(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		ids := b.capture(0, b.ep, 1)
		for resolved, ok := range map[string]bool{
			"": true, "http://localhost:3000/in/%zz?a=%": true, "https://[::1]:3000?%zz": true, "http://localhost/caf\u00e9 x": true, "mailto:x@example.com": true,
			"/in/%zz": false, "http:///%zz": false, "http://local host/%zz": false, "ftp//x/%zz": false, "http://localhost:port/%zz": false, "http://localhost/%zz\n": false,
		} {
			r, err := n.Report(t.Context(), b.who, api.DeliveryReport{
				EndpointID: string(b.ep.ID), WebhookRequestID: ids[0], TargetURL: "http://localhost:3000/in", StatusCode: api.Some[int64](200),
				TunnelEvidence: api.TunnelEvidence{ResolvedURL: resolved},
			})
			if (err == nil) != ok || ok && r.ResolvedURL != resolved {
				t.Errorf("%.60q: %+v, %v", resolved, r, err)
			}
		}
	})
}

// A client need not know these bounds: what goes beyond them is the sender's or the handler's choice.
func TestAnEventIsDeliveredHoweverLongItsAddressAndTheTypeOfTheAnswer(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		id := b.capture(0, b.ep, 1)[0]
		const most, word = hookglass.AddressLimit, hookglass.EvidenceWordLimit
		for _, more := range []int{0, 1} {
			resolved := "http://localhost/" + strings.Repeat("z", most-len("http://localhost/")+more)
			r, err := n.Report(t.Context(), b.who, api.DeliveryReport{
				EndpointID: string(b.ep.ID), WebhookRequestID: id, TargetURL: "http://localhost", StatusCode: api.Some[int64](200), ReportVersion: 2,
				TunnelEvidence: api.TunnelEvidence{ResolvedURL: resolved, ContentType: strings.Repeat("t", word+more)},
			})
			must(t, err)
			if kept := more == 0; !r.Delivered() || (r.ResolvedURL == resolved) != kept || (r.ResolvedURL == "") == kept || r.Evidence.ContentType != strings.Repeat("t", word) {
				t.Errorf("%d more: %d bytes of the address, %+v", more, len(r.ResolvedURL), r.Evidence)
			}
		}
	})
}

func TestWhereARequestGoesBelowTheTarget(t *testing.T) {
	for _, c := range []struct{ target, requested, want string }{
		{"http://localhost:3000", "/orders?a=1", "http://localhost:3000/orders?a=1"},
		{"http://localhost:3000/", "/orders", "http://localhost:3000/orders"},
		{"http://localhost:3000/in/", "/a%2Fb", "http://localhost:3000/in/a%2Fb"},
		{"http://localhost:3000/in", "/", "http://localhost:3000/in"},
		{"http://localhost:3000/in", "/?a=1", "http://localhost:3000/in?a=1"},
		{"http://localhost:3000/in?k=v", "/orders?a=1", "http://localhost:3000/in/orders?k=v&a=1"},
		{"http://localhost:3000/in?k=v", "/orders", "http://localhost:3000/in/orders?k=v"},
		{"http://localhost:3000?k=v#top", "/?a=1?2", "http://localhost:3000?k=v&a=1?2"},
		{"", "/orders", "/orders"},
		{"3000", "/orders", "/orders"},
	} {
		if got := tunnel.Local(c.target, c.requested); got != c.want {
			t.Errorf("%q and %q: %q, want %q", c.target, c.requested, got, c.want)
		}
	}
}
