package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/account"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/capture"
	"hookglass/internal/endpoint"
	"hookglass/internal/httpd"
	"hookglass/internal/rest"
	"hookglass/internal/share"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// site is a server with an account, and a client of it.
type site struct {
	*client.Client
	t        *testing.T
	server   *httptest.Server
	captures *capture.Service
}

func each(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, open(t, db)) })
}

func open(t *testing.T, db *store.DB) *site {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	accounts := account.New(db, log)
	endpoints := endpoint.New(db, nil) // nothing here seals a secret
	s := &site{t: t, captures: capture.New(db, capture.Config{Verifiers: endpoints}, log)}
	handler := rest.New(rest.Deps{
		DB: db, Accounts: accounts, Endpoints: endpoints, Captures: s.captures, Shares: share.New(db, endpoints, s.captures),
		Alerts: alert.New(db, alert.Config{Log: log}), Actions: action.New(db, action.Config{Hold: s.captures.Hold, Log: log}), TemporaryEndpoints: true, Draining: make(chan struct{}),
		Addresses: api.Addresses{PublicURL: "https://hooks.example.com", MailDomain: "mail.example.com"},
	})
	s.server = httptest.NewServer(httpd.New(httpd.Config{Log: log}).Wrap(handler))
	t.Cleanup(s.server.Close)
	t.Cleanup(s.server.CloseClientConnections)
	registered, err := accounts.Register(t.Context(), account.Registration{Email: "ada@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := accounts.CreateToken(t.Context(), hookglass.System, account.TokenRequest{
		User: registered.User.ID, Level: hookglass.LevelAccount, Scopes: []hookglass.Scope{hookglass.ScopeRead, hookglass.ScopeWrite},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Client = s.as(token)
	return s
}

func (s *site) as(token string) *client.Client {
	s.t.Helper()
	c, err := client.New(s.server.URL+"/", token)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *site) arrive(ref, path string) { s.bring(ref, path, "", "\xff!") }

// bring captures a request with a body of a type.
func (s *site) bring(ref, path, contentType, body string) {
	s.t.Helper()
	target, err := s.captures.Admit(s.t.Context(), ref)
	if err == nil {
		a := &capture.Arrival{Method: "POST", Path: path, Proto: "HTTP/1.1", Host: "h", Scheme: "http", Client: netip.MustParseAddr("203.0.113.7"), At: time.Now(), Body: []byte(body)}
		if contentType != "" {
			a.Headers = hookglass.Headers{{Name: "Content-Type", Value: contentType}}
		}
		_, err = s.captures.Capture(s.t.Context(), target, a)
	}
	if err != nil {
		s.t.Error(err)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestWhatTakesLongIsWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := must[api.Endpoint](t)(s.CreateEndpoint(t.Context(), api.NewEndpoint{Name: api.Some("Payments")}))
		s.arrive(e.ID, "/")
		pages := s.server.Config.Handler
		s.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				<-r.Context().Done() // until the caller has gone
				return
			}
			pages.ServeHTTP(w, r)
		})
		s.Hurry(time.Nanosecond)
		if _, err := s.Endpoints(t.Context()); err == nil || !strings.Contains(err.Error(), "timeout") {
			t.Errorf("a call waits on: %v", err)
		}
		if n, err := s.DeleteRequests(t.Context(), e.ID, time.Time{}, time.Time{}); err != nil || n != 1 {
			t.Errorf("a deletion: %d %v", n, err)
		}
	})
}

func TestTheClientSpeaksOfEndpoints(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		if who := must[api.Identity](t)(s.Verify(ctx)); who.User.Email != "ada@example.com" {
			t.Errorf("the token is of %+v", who)
		}
		one := must[api.Endpoint](t)
		accepted := 202
		e := one(s.CreateEndpoint(ctx, api.NewEndpoint{Name: api.Some("Payments"), CustomID: api.Some("payments"), Provider: api.Null[string](),
			Response: api.Some(api.Response{Status: &accepted, Body: "ok"})}))
		if e.Name != "Payments" || *e.CustomID != "payments" || *e.Response.Status != 202 {
			t.Errorf("created %+v", e)
		}
		e = one(s.UpdateEndpoint(ctx, "payments", api.EndpointChange{Enabled: api.Some(false), Response: api.Null[api.Response]()}))
		if got := one(s.Endpoint(ctx, e.ID)); got.Enabled || got.Response != nil || got.Name != "Payments" {
			t.Errorf("changed to %+v", got)
		}
		if all := must[[]api.Endpoint](t)(s.Endpoints(ctx)); len(all) != 1 || all[0].ID != e.ID {
			t.Errorf("listed %+v", all)
		}
		if gone := must[api.Deleted](t)(s.DeleteEndpoint(ctx, e.ID)); gone.ID != e.ID || !gone.Deleted {
			t.Errorf("deleted %+v", gone)
		}
		temporary := one(s.as("").CreateTemporaryEndpoint(ctx))
		if got := one(s.as(temporary.TunnelKey).Endpoint(ctx, temporary.ID)); got.ID != temporary.ID {
			t.Errorf("by its key: %+v", got)
		}
	})
}

// On the way to the server a proxy may take dots for another address, which is that of the endpoint here.
func TestAnIDThatIsNoneIsSentToNobody(t *testing.T) {
	asked := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) }))
	t.Cleanup(asked.Close)
	c := must[*client.Client](t)(client.New(asked.URL, "hg_x"))
	for _, id := range []string{"", ".", ".."} {
		if err := c.DeleteAction(t.Context(), "payments", id); err == nil || !strings.Contains(err.Error(), strconv.Quote(id)) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestTheClientSpeaksOfRequests(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		e := must[api.Endpoint](t)(s.CreateEndpoint(ctx, api.NewEndpoint{Name: api.Some("a")}))
		for _, path := range []string{"/1", "/2", "/3"} {
			s.arrive(e.ID, path)
		}
		list := must[api.EventList](t)
		first := list(s.Requests(ctx, e.ID, client.Filter{}, client.Page{Limit: 2}))
		rest := list(s.Requests(ctx, e.ID, client.Filter{}, client.Page{Cursor: *first.Meta.NextCursor}))
		if len(first.Data) != 2 || len(rest.Data) != 1 || rest.Data[0].Path != "/1" || first.Meta.Total != 3 {
			t.Errorf("pages are %+v and %+v", first, rest)
		}
		one := list(s.Requests(ctx, e.ID, client.Filter{Query: "path:/2", After: time.Now().Add(-time.Hour)}, client.Page{}))
		if len(one.Data) != 1 || one.Data[0].Path != "/2" {
			t.Fatalf("found %+v", one)
		}
		id := one.Data[0].ID
		if detail := must[api.EventDetail](t)(s.Request(ctx, e.ID, id)); detail.BodyEncoding != "base64" || detail.ID != id {
			t.Errorf("the detail is %+v", detail)
		}
		var body, file bytes.Buffer
		if err := s.RequestBody(ctx, e.ID, id, &body); err != nil || body.String() != "\xff!" {
			t.Errorf("the body is %q, %v", &body, err)
		}
		if got := must[api.Signature](t)(s.Signature(ctx, e.ID, id)); got.Status != "unchecked" || got.Now.Status != "unchecked" {
			t.Errorf("the signature is %+v", got)
		}
		s.bring(e.ID, "/form", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nfirst\r\n--b--\r\n")
		form := list(s.Requests(ctx, e.ID, client.Filter{Query: "path:/form"}, client.Page{})).Data[0].ID
		var part bytes.Buffer
		if err := s.Part(ctx, e.ID, form, 0, &part); err != nil || part.String() != "first" {
			t.Errorf("the part is %q, %v", &part, err)
		}
		if gone := must[api.Deleted](t)(s.DeleteRequest(ctx, e.ID, form)); gone.ID != form {
			t.Errorf("deleted %+v", gone)
		}
		if err := s.Export(ctx, e.ID, "ndjson", client.Filter{Query: "path:/2"}, &file); err != nil || strings.Count(file.String(), "\n") != 1 || !strings.Contains(file.String(), id) {
			t.Errorf("the export is %q, %v", &file, err)
		}
		if tags := must[[]string](t)(s.Tag(ctx, e.ID, id, "needs a/look?")); !slices.Equal(tags, []string{"needs a/look?"}) {
			t.Errorf("tags are %v", tags)
		}
		if tags := must[[]string](t)(s.Untag(ctx, e.ID, id, "needs a/look?")); len(tags) != 0 {
			t.Errorf("tags are %v", tags)
		}
		if got := must[api.Event](t)(s.Ignore(ctx, e.ID, id, "test")); !got.Ignored {
			t.Errorf("ignored: %+v", got)
		}
		if got := must[api.Event](t)(s.Unignore(ctx, e.ID, id)); got.Ignored {
			t.Errorf("not ignored: %+v", got)
		}
		if feed := must[[]api.Activity](t)(s.Activity(ctx, time.Time{}, 2)); len(feed) != 2 || feed[0].Type != "webhook.received" {
			t.Errorf("the feed is %+v", feed)
		}
		for _, word := range []string{"destroy_all", "export", "", ".."} { // none names a request, and the first all of them
			_, got := s.Request(ctx, e.ID, word)
			_, deleted := s.DeleteRequest(ctx, e.ID, word)
			for _, err := range []error{got, deleted} {
				if refused := (*client.Error)(nil); !errors.As(err, &refused) || refused.Status != 404 || refused.Code != hookglass.CodeNotFound {
					t.Errorf("request %q: %v", word, err)
				}
			}
		}
		if gone := must[api.Deleted](t)(s.DeleteRequest(ctx, e.ID, id)); gone.ID != id || !gone.Deleted {
			t.Errorf("deleted %+v", gone)
		}
		if n := must[int64](t)(s.DeleteRequests(ctx, e.ID, time.Time{}, time.Now().Add(-time.Minute))); n != 2 {
			t.Errorf("%d were deleted, want 2", n)
		}
	})
}

func TestErrorsSayWhatTheServerSaid(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	var refused *client.Error
	if _, err := s.Endpoint(t.Context(), "none"); !errors.As(err, &refused) || refused.Status != 404 || refused.Code != hookglass.CodeNotFound || refused.RequestID == "" {
		t.Errorf("got %+v, %v", refused, err)
	}
	if _, err := s.CreateEndpoint(t.Context(), api.NewEndpoint{}); !errors.As(err, &refused) || len(refused.Details) != 1 || refused.Details[0].Field != "endpoint.name" {
		t.Errorf("got %+v, %v", refused, err)
	}
	for range 10 {
		if _, err := s.as("").CreateTemporaryEndpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.as("").CreateTemporaryEndpoint(t.Context()); !errors.As(err, &refused) || refused.Code != hookglass.CodeRateLimited || refused.RetryAfter < time.Second {
		t.Errorf("got %+v, %v", refused, err)
	}
}

// Something else that speaks JSON counts neither as an empty list nor as a deletion.
func TestAnswersOfAnotherAPIAreToldApart(t *testing.T) {
	for _, text := range []string{`{}`, `null`, `"x"`, `[]`, `{"data":null}`, `{"data":{}}`, `{"data":[1]}`, `{"data":"x"}`, `{"status":"ok"}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
		c, err := client.New(server.URL, "hg_x")
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		for what, call := range map[string]func() error{
			"endpoints": func() error { _, err := c.Endpoints(ctx); return err },
			"endpoint":  func() error { _, err := c.Endpoint(ctx, "ep_x"); return err },
			"deletion":  func() error { _, err := c.DeleteEndpoint(ctx, "ep_x"); return err },
			"tags":      func() error { _, err := c.Tags(ctx); return err },
			"cases":     func() error { _, err := c.ReplayCases(ctx, "ep_x", client.Page{}); return err },
			"replay":    func() error { _, err := c.Replay(ctx, "ep_x", "req_x", api.ReplayRequest{}); return err },
			"test":      func() error { _, err := c.SendTestRequest(ctx, "ep_x", api.SendTestRequest{}); return err },
			"gaps":      func() error { _, err := c.Gaps(ctx, []string{"ep_x"}); return err },
			"missed":    func() error { _, err := c.Missed(ctx, []string{"ep_x"}, time.Now()); return err },
			"ticket":    func() error { _, err := c.ConnectTunnel(ctx, api.ConnectTunnel{}); return err },
			"activity":  func() error { _, err := c.Activity(ctx, time.Time{}, 0); return err },
		} {
			var refused *client.Error
			if err := call(); !errors.As(err, &refused) || refused.Code != "" || !strings.Contains(err.Error(), "not like a hookglass server") {
				t.Errorf("%s, %s: %v", text, what, err)
			}
		}
		server.Close()
	}
}

func TestWhatIsNoServerIsToldApart(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"a page": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502); _, _ = w.Write([]byte("<html>")) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		},
		"a page of success": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<!doctype html>")) },
		"silence":           func(http.ResponseWriter, *http.Request) {},
		"another's answer":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"status":"ok"}`)) },
		"nothing":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
	} {
		server := httptest.NewServer(handler)
		c, err := client.New(server.URL, "hg_x")
		if err != nil {
			t.Fatal(err)
		}
		var refused *client.Error
		if _, err := c.Verify(t.Context()); !errors.As(err, &refused) || refused.Code != "" || !strings.Contains(err.Error(), "not like a hookglass server") {
			t.Errorf("%s: %v", name, err)
		}
		for what, err := range map[string]error{
			"a report": c.ReportDelivery(t.Context(), api.DeliveryReport{}), "a result": c.ReportReplay(t.Context(), api.TunnelReplayResult{}),
		} {
			if !errors.As(err, &refused) || refused.Code != "" {
				t.Errorf("%s: %s counts as taken: %v", name, what, err)
			}
		}
		var file bytes.Buffer
		for what, err := range map[string]error{
			"an export": c.Export(t.Context(), "ep_1", "har", client.Filter{}, &file), "a body": c.RequestBody(t.Context(), "ep_1", "req_1", &file),
			"a bundle": c.ShareBundle(t.Context(), "ep_1", api.CreateShareBundle{}, &file),
		} {
			if !errors.As(err, &refused) || refused.Code != "" || file.Len() > 0 {
				t.Errorf("%s: it counts as %s: %v %q", name, what, err, &file)
			}
		}
		if name == "a page" { // that of a proxy whose server is away is waited for
			server.Close()
			continue
		}
		for _, err := range c.Stream(t.Context(), "ep_1", client.Filter{}, "", nil) {
			if !errors.As(err, &refused) || refused.Code != "" {
				t.Errorf("%s: a stream has %v", name, err)
			}
		}
		server.Close()
	}
	for _, address := range []string{"", "localhost:8080", "ftp://x", "http://", "http://user:secret@x", "http://x?a=1", "http://x#a", "http://x/api/v1", "http://x/api/v1/"} {
		if _, err := client.New(address, ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// The server gives the oldest gaps first, so that the newest are on the last page.
func TestGapsAreReadToTheLastPage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"data":[{"id":"tgap_1"},{"id":"tgap_2"}],"meta":{"next_cursor":"behind 2"}}`
		if q := r.URL.Query(); q.Get("cursor") == "behind 2" && q.Get("endpoint_ids[]") == "ep_a" {
			answer = `{"data":[{"id":"tgap_3"}],"meta":{"next_cursor":null}}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	c, err := client.New(server.URL, "hg_x")
	if err != nil {
		t.Fatal(err)
	}
	if gaps, err := c.Gaps(t.Context(), []string{"ep_a"}); err != nil || len(gaps) != 3 || gaps[2].ID != "tgap_3" {
		t.Errorf("%+v, %v", gaps, err)
	}
}

func TestAStreamGoesOnWhenItsConnectionIsLost(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		e := must[api.Endpoint](t)(s.CreateEndpoint(ctx, api.NewEndpoint{Name: api.Some("a")}))
		s.arrive(e.ID, "/0")
		first := must[api.EventList](t)(s.Requests(ctx, e.ID, client.Filter{}, client.Page{})).Data[0].ID
		s.arrive(e.ID, "/1")
		var got []string
		for event, err := range s.Stream(ctx, e.ID, client.Filter{}, first, nil) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, event.Path)
			if len(got) == 4 {
				break
			}
			s.server.CloseClientConnections()
			s.arrive(e.ID, "/"+string(rune('1'+len(got))))
		}
		if !slices.Equal(got, []string{"/1", "/2", "/3", "/4"}) {
			t.Errorf("the stream had %v", got)
		}
	})
}

// What comes between the look at what came and the beginning of the stream is left out by neither.
func TestAStreamBeginsWithWhatCameShortlyBefore(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		e := must[api.Endpoint](t)(s.CreateEndpoint(ctx, api.NewEndpoint{Name: api.Some("a")}))
		s.arrive(e.ID, "/0")
		s.arrive(e.ID, "/other")
		s.arrive(e.ID, "/1")
		var got []string
		for event, err := range s.Since(ctx, e.ID, client.Filter{Query: "-path:other"}, "1h", nil) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, event.Path); len(got) == 3 {
				break
			}
			if len(got) == 1 {
				s.arrive(e.ID, "/2")
			}
			s.server.CloseClientConnections()
		}
		if !slices.Equal(got, []string{"/1", "/0", "/2"}) {
			t.Errorf("it had %v", got)
		}
	})
}

func TestAStreamEndsWhereRepeatingIsOfNoUse(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	var last error
	for _, err := range s.Stream(t.Context(), "none", client.Filter{}, "", nil) {
		last = err
	}
	var refused *client.Error
	if !errors.As(last, &refused) || refused.Status != 404 {
		t.Errorf("the stream ended with %v", last)
	}
}

func TestAStreamWaitsAsItIsTold(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
			return
		}
		w.WriteHeader(403)
	}))
	defer server.Close()
	c, err := client.New(server.URL, "hg_x")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range c.Stream(t.Context(), "x", client.Filter{}, "", nil) {
	}
	if took := time.Since(began); took < time.Second || calls.Load() != 2 {
		t.Errorf("%d calls in %v", calls.Load(), took)
	}
}

func TestWhyNoAnswerCameIsToldAlikeEachTime(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}))
	defer server.Close()
	said := make(map[string]bool)
	for range 3 {
		c, err := client.New(server.URL, "hg_x")
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Verify(t.Context())
		var none *client.Unanswered
		if !errors.As(err, &none) || none.Server() != server.URL {
			t.Fatalf("got %v", err)
		}
		said[err.Error()] = true
	}
	if len(said) != 1 {
		t.Errorf("it is told in different ways: %v", said)
	}
}

// A server may answer without an end, and be asked for the next page for ever.
func TestAnAnswerWithoutEndIsGivenUp(t *testing.T) {
	blanks := bytes.Repeat([]byte{' '}, 64<<10)
	pages := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tunnel/gaps") {
			pages++
			_, _ = io.WriteString(w, `{"data":[`+strings.Repeat(`{"id":"tgap_1"},`, 999)+`{"id":"tgap_2"}],"meta":{"next_cursor":"more"}}`)
			return
		}
		for {
			if _, err := w.Write(blanks); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	c, err := client.New(s.URL, "hg_x")
	if err != nil {
		t.Fatal(err)
	}
	c.Limit(4 << 20)
	if _, err := c.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "has more than") {
		t.Errorf("an answer without end: %v", err)
	}
	if gaps, err := c.Gaps(t.Context(), []string{"ep_1"}); err != nil || len(gaps) != 10_000 || pages != 10 {
		t.Errorf("a list without end: %d of %d pages, %v", len(gaps), pages, err)
	}
}
