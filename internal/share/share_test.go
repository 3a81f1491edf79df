package share_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/bundle"
	"hookglass/internal/endpoint"
	"hookglass/internal/share"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// owned is an endpoint with its owner.
func owned(t *testing.T, db *store.DB) (hookglass.Principal, hookglass.Endpoint) {
	t.Helper()
	owner, err := account.New(db, slog.New(slog.DiscardHandler)).Register(t.Context(), account.Registration{Email: "ada@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	who, name := hookglass.Principal{Account: owner.Account.ID, User: owner.User.ID}, "Shared"
	e, err := endpoint.New(db, nil).Create(t.Context(), who, endpoint.Draft{Name: &name})
	if err != nil {
		t.Fatal(err)
	}
	return who, e
}

// full has no room for anything, and remembers what it was asked for.
type full struct{ asked int64 }

func (f *full) RoomFor(_ context.Context, _ hookglass.Principal, bytes int64) error {
	f.asked = bytes
	return hookglass.Errorf(hookglass.CodeUnavailable, "There is no room.")
}

func (f *full) Hold(ctx context.Context, who hookglass.Principal, _ int64, _ func(*store.View) (*hookglass.Event, error)) (*hookglass.Event, error) {
	return nil, f.RoomFor(ctx, who, 0)
}

// A bundle is made where there is room for it, and none is asked for what is larger than a bundle may be. A request
// that is named twice counts once.
func TestABundleIsMadeWhereThereIsRoom(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		who, e := owned(t, db)
		var ids []string
		for range 2 {
			event := &hookglass.Event{
				ID: hookglass.NewEventID(hookglass.EventWebhook, time.Now()), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook, ReceivedAt: time.Now(), Method: "POST",
				Path: "/", Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked, Size: bundle.MaxBytes/2 + 1, Payload: &hookglass.Payload{},
			}
			if err := db.Capture(t.Context(), 0, event); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, string(event.ID))
		}
		for _, c := range []struct {
			ids  []string
			want hookglass.Code
			room int64
		}{
			{[]string{ids[0], ids[0], ids[0]}, hookglass.CodeUnavailable, 4 * bundle.MaxBytes}, {ids, hookglass.CodePayloadTooLarge, 0},
		} {
			var room full
			_, err := share.New(db, nil, &room).Bundle(t.Context(), who, string(e.ID), share.Wanted{Events: c.ids})
			if !hookglass.Is(err, c.want) || room.asked != c.room {
				t.Errorf("%d: %v, and room was asked for %d bytes", len(c.ids), err, room.asked)
			}
		}
	})
}

// roomy has room for everything.
type roomy struct{ db *store.DB }

func (roomy) RoomFor(context.Context, hookglass.Principal, int64) error { return nil }

func (r roomy) Hold(ctx context.Context, who hookglass.Principal, _ int64, read func(*store.View) (*hookglass.Event, error)) (*hookglass.Event, error) {
	return store.Read(ctx, r.db, who, read)
}

// opened returns what the link to an event shows.
func opened(t *testing.T, shares *share.Service, who hookglass.Principal, event *hookglass.Event) *hookglass.Event {
	t.Helper()
	secret, _, err := shares.Create(t.Context(), who, string(event.EndpointID), string(event.ID), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	shown, _, err := shares.Open(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// Nothing that a stranger must not see is left in any part of a shared request.
func TestALinkShowsNoCredentialAndNoNote(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		who, e := owned(t, db)
		credential := hookglass.Headers{
			{Name: "Authorization", Value: "Bearer swordfish"}, {Name: "X-Sum", Value: "1"},
			{Name: "X-Session-Id", Value: "swordfish"}, {Name: "Link", Value: `<https://h/?token=swordfish>; a="b"`},
		}
		const query = "a=b;token=swordfish&next=%2F%3Ftoken%3Dswordfish&code=of-the-swordfish&key=swordfish&code=GB"
		event := &hookglass.Event{
			ID: hookglass.NewEventID(hookglass.EventWebhook, time.Now()), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook, ReceivedAt: time.Now(), Method: "POST",
			Path: "/a;token=swordfish", RawQuery: query, Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked,
			EventRef: "evt_1",
			Payload: &hookglass.Payload{
				Headers: credential, Trailers: credential, Body: []byte("a: b\nPASSWORD: swordfish\n"),
				Reply: &hookglass.Reply{
					Status: 200, Headers: credential, Source: hookglass.SourceCustom, Rule: &hookglass.ReplyRule{When: "header.x-key:swordfish"},
				},
			},
		}
		if err := db.Capture(t.Context(), e.AccountID, event); err != nil {
			t.Fatal(err)
		}
		if err := db.Update(t.Context(), who, func(tx *store.Tx) error { return tx.SetNote(string(e.ID), string(event.ID), "swordfish") }); err != nil {
			t.Fatal(err)
		}
		shares := share.New(db, endpoint.New(db, nil), roomy{db})
		shown := opened(t, shares, who, event)
		for place, h := range map[string]hookglass.Headers{"headers": shown.Headers, "trailers": shown.Trailers, "reply": shown.Reply.Headers} {
			if h.Get("X-Sum") != "1" || h.Get("Authorization") == "" || strings.Contains(fmt.Sprint(h), "swordfish") {
				t.Errorf("the %s are %v", place, h)
			}
		}
		const left = "a=b;token=[redacted]&next=%2F%3Ftoken%3D%5Bredacted%5D&code=[redacted]&key=[redacted]&code=GB"
		if got := shown.RawQuery; got != left {
			t.Errorf("shown is the query %s, want %s", got, left)
		}
		if got := shown.Path + " " + string(shown.Body); got != "/a;token=[redacted] a: b\nPASSWORD: [redacted]\n" {
			t.Errorf("shown is %s", got)
		}
		if shown.Note != "" || shown.Reply.Rule != nil || shown.EventRef != "evt_1" {
			t.Errorf("shown is the note %q, the rule %+v, the id %q", shown.Note, shown.Reply.Rule, shown.EventRef)
		}
	})
}

// An answer made of the request, as a custom response is, shows no credential that the request does not show.
func TestALinkShowsNoCredentialThatTheAnswerRepeats(t *testing.T) {
	const basic = "Basic dXNlcjpzd29yZGZpc2g="
	post := func(contentType, body string) hookglass.Event {
		return hookglass.Event{ContentType: contentType, Payload: &hookglass.Payload{Body: []byte(body)}}
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		who, e := owned(t, db)
		shares := share.New(db, endpoint.New(db, nil), roomy{db})
		for name, c := range map[string]struct {
			sent  hookglass.Event
			value string // of the credential, as a template gives it
		}{
			"a header":           {hookglass.Event{Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "Authorization", Value: basic}}}}, basic},
			"the query":          {hookglass.Event{RawQuery: "a=b?c&token=sword%20fish", Payload: &hookglass.Payload{}}, "sword fish"},
			"a key in the query": {hookglass.Event{RawQuery: "a=b&key=sword%20fish", Payload: &hookglass.Payload{}}, "sword fish"},
			"JSON":               {post("application/json", `{"auth": {"password": "sword\"fish"}}`), `sword"fish`},
			"a form":             {post("application/x-www-form-urlencoded", "a=b&password=sword%20fish"), "sword fish"},
			"JSON in a form":     {post("application/x-www-form-urlencoded", "payload=%7B%22token%22%3A%22sword+fish%22%7D"), "sword fish"},
		} {
			event := c.sent
			event.ID, event.EndpointNum, event.EndpointID, event.Type = hookglass.NewEventID(hookglass.EventWebhook, time.Now()), e.Num, e.ID, hookglass.EventWebhook
			event.Method, event.Path, event.Provider, event.SignatureStatus = "POST", "/", hookglass.UnknownProvider, hookglass.SignatureUnchecked
			event.ReceivedAt = time.Now()
			event.Payload.Reply = &hookglass.Reply{
				Status: 200, Headers: hookglass.Headers{{Name: "X-Got", Value: c.value}}, Body: []byte("You sent " + c.value + "."), Source: hookglass.SourceCustom,
			}
			if err := db.Capture(t.Context(), e.AccountID, &event); err != nil {
				t.Fatal(err)
			}
			shown := opened(t, shares, who, &event).Reply
			if got := shown.Headers.Get("X-Got"); got != hookglass.Redacted {
				t.Errorf("%s: the answer's header is %q", name, got)
			}
			if got := string(shown.Body); got != "You sent "+hookglass.Redacted+"." {
				t.Errorf("%s: the answer's body is %q", name, got)
			}
		}
	})
}

// A custom id is often a word of the events themselves, so it is hidden only where one can send to it.
func TestALinkHidesACustomIDOnlyWhereItIsAnAddress(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		who, _ := owned(t, db)
		endpoints := endpoint.New(db, nil)
		name, custom := "Orders", "subscriptions"
		e, err := endpoints.Create(t.Context(), who, endpoint.Draft{Name: &name, CustomID: &custom})
		if err != nil {
			t.Fatal(err)
		}
		event := &hookglass.Event{
			ID: hookglass.NewEventID(hookglass.EventWebhook, time.Now()), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook, ReceivedAt: time.Now(), Method: "POST",
			Path: "/subscriptions", Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked, ContentType: "application/json",
			Payload: &hookglass.Payload{
				Headers: hookglass.Headers{{Name: "X-Forwarded-Uri", Value: "/hooks/subscriptions/a"}, {Name: "X-Topic", Value: "subscriptions/new"}},
				Body:    []byte(`{"type": "subscription.new", "subscriptions": 1, "to": "https:\/\/example.com\/hooks\/subscriptions?a", "by": "/?u=%2Fhooks%2Fsubscriptions", "of": "/hooks/subscriptions-2"}`),
			},
		}
		if err := db.Capture(t.Context(), e.AccountID, event); err != nil {
			t.Fatal(err)
		}
		shown := opened(t, share.New(db, endpoints, roomy{db}), who, event)
		const body = `{"type":"subscription.new","subscriptions":1,"to":"https://example.com/hooks/[redacted]?a","by":"/?u=/hooks/[redacted]","of":"/hooks/subscriptions-2"}`
		if got := string(shown.Body); got != body {
			t.Errorf("the body is\n%s\nwant\n%s", got, body)
		}
		if got := fmt.Sprint(shown.Path, shown.Headers); got != "/subscriptions[{X-Forwarded-Uri /hooks/[redacted]/a} {X-Topic subscriptions/new}]" {
			t.Errorf("the path and the headers are %s", got)
		}
	})
}

// Whoever knows the address of a mail endpoint can send there: no part of a shared mail has it, shown or not.
func TestALinkGivesTheAddressOfAMailEndpointToNobody(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		who, _ := owned(t, db)
		endpoints := endpoint.New(db, nil)
		name, local, kind := "Mail", "swordfish", hookglass.KindEmail
		e, err := endpoints.Create(t.Context(), who, endpoint.Draft{Name: &name, EmailLocalPart: &local, Kind: &kind})
		if err != nil {
			t.Fatal(err)
		}
		const address = "swordfish@example.com"
		event := &hookglass.Event{
			ID: hookglass.NewEventID(hookglass.EventEmail, time.Now()), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventEmail, ReceivedAt: time.Now(), Method: "EMAIL",
			Path: address, Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked, From: "ada@example.org", To: address, Subject: "For " + address,
			Payload: &hookglass.Payload{
				Headers: hookglass.Headers{{Name: "To", Value: address}}, Body: []byte("To: " + address + "\r\n\r\n" + address),
				Envelope: &hookglass.Envelope{From: "ada@example.org", To: []string{address}, Helo: "localhost", Protocol: "ESMTP"},
			},
		}
		if err := db.Capture(t.Context(), e.AccountID, event); err != nil {
			t.Fatal(err)
		}
		shares := share.New(db, endpoints, roomy{db})
		shown := opened(t, shares, who, event)
		all := fmt.Sprintf("%+v %+v %+v %s", *shown, *shown.Payload, shown.Envelope, shown.Body)
		if !strings.Contains(all, "ada@example.org") || strings.Contains(all, local) {
			t.Errorf("what is shown is %s", all)
		}
	})
}

// Links that have expired go without anybody making another, a part of them at a time.
func TestLinksThatHaveExpiredArePurged(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		who, e := owned(t, db)
		event := &hookglass.Event{
			ID: hookglass.NewEventID(hookglass.EventWebhook, time.Now()), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook, ReceivedAt: time.Now(),
			Method: "POST", Path: "/", Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked,
			Payload: &hookglass.Payload{Reply: &hookglass.Reply{Status: 200}},
		}
		if err := db.Capture(t.Context(), 0, event); err != nil {
			t.Fatal(err)
		}
		s := share.New(db, nil, nil)
		const expired = 1_200
		err := db.Update(t.Context(), who, func(tx *store.Tx) error {
			for i := range expired {
				link := hookglass.Share{EndpointNum: e.Num, EventSeq: event.Seq, EventID: event.ID, ExpiresAt: tx.Now}
				if err := tx.CreateShare(&link, fmt.Append(nil, "expired ", i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Create(t.Context(), who, string(e.ID), string(event.ID), time.Hour); err != nil {
			t.Fatal(err)
		}
		// Until they are purged, they open nothing.
		found := func(now time.Time) error {
			return db.View(t.Context(), hookglass.System, func(v *store.View) error {
				_, err := v.ShareByHash([]byte("expired 0"), now)
				return err
			})
		}
		if err := found(db.Now()); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("a link that has expired: %v", err)
		}
		if err := found(db.Now().Add(-time.Hour)); err != nil {
			t.Errorf("before it expired: %v", err)
		}
		left := func() (n int) {
			err := db.View(t.Context(), who, func(v *store.View) error {
				all, err := v.Shares(string(e.ID), store.ShareList{}, time.Unix(0, 0))
				n = len(all)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := left(); n != expired+1 {
			t.Fatalf("there are %d links, want %d: to make one purges none", n, expired+1)
		}
		var more bool
		err = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
			more, err = tx.PurgeShares()
			return err
		})
		if n := left(); err != nil || !more || n != expired+1-500 {
			t.Errorf("after one piece %d are left, more %v, %v", n, more, err)
		}
		if err := s.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := left(); n != 1 {
			t.Errorf("%d are left, want the one that is good", n)
		}
	})
}

// A query that is not through in its time, or means very much, is refused as too wide. It is not taken for one that
// means nothing, nor for a fault of the storage.
func TestABundleWhoseQueryTakesTooLongIsRefused(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		who, e := owned(t, db)
		for range 1_000 {
			event := &hookglass.Event{
				ID: hookglass.NewEventID(hookglass.EventWebhook, time.Now()), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook,
				ReceivedAt: time.Now(), Method: "POST", Path: "/", Provider: hookglass.UnknownProvider,
				SignatureStatus: hookglass.SignatureUnchecked, Payload: &hookglass.Payload{Body: []byte("a needle is not here")},
			}
			if err := db.Capture(t.Context(), 0, event); err != nil {
				t.Fatal(err)
			}
		}
		s := share.New(db, nil, nil)
		for _, c := range []struct {
			within         time.Duration
			query, message string
		}{
			{time.Nanosecond, "haystack", "takes too long; narrow it, for example by received times"},
			{time.Minute, "haystack", "means no request"},
			{time.Minute, "needle AND haystack", "means no request. AND, OR and NOT are searched for as words. Terms simply stand beside each other, and all must hold; -term excludes what term finds"},
			{time.Minute, "needle", "means more than 100 requests; narrow it"},
		} {
			s.SearchFor(c.within)
			_, err := s.Bundle(t.Context(), who, string(e.ID), share.Wanted{Query: c.query})
			var refused *hookglass.Error
			if !errors.As(err, &refused) || len(refused.Details) != 1 || refused.Details[0].Message != c.message {
				t.Errorf("%s searched for %v: %v, want %q", c.query, c.within, err, c.message)
			}
		}
	})
}
