package web_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/capture"
	"hookglass/internal/drift"
	"hookglass/internal/endpoint"
	"hookglass/internal/flow"
	"hookglass/internal/httpd"
	"hookglass/internal/release"
	"hookglass/internal/replay"
	"hookglass/internal/retries"
	"hookglass/internal/seal"
	"hookglass/internal/share"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
	"hookglass/internal/web"
)

// site is a running web app with one user who has one endpoint.
type site struct {
	t         *testing.T
	db        *store.DB
	accounts  *account.Service
	endpoints *endpoint.Service
	captures  *capture.Service
	url       string
	host      string // that senders use
	drain     chan struct{}
	server    *httptest.Server
	away      atomic.Bool // requests end without an answer
	user      hookglass.User
	who       hookglass.Principal
	endpoint  hookglass.Endpoint
}

func newSite(t *testing.T) *site { return newSiteWith(t, func(*web.Deps) {}) }

func newSiteWith(t *testing.T, change func(*web.Deps)) *site {
	t.Helper()
	return newSiteOn(t, storetest.SQLite(t), change)
}

func newSiteOn(t *testing.T, db *store.DB, change func(*web.Deps)) *site {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{
		t: t, db: db, accounts: account.New(db, log),
		endpoints: endpoint.New(db, keys), drain: make(chan struct{}),
	}
	s.captures = capture.New(db, capture.Config{Retention: time.Hour, Verifiers: s.endpoints}, log)
	server := httptest.NewUnstartedServer(nil)
	s.host = server.Listener.Addr().String()
	s.url = "http://" + s.host
	deps := web.Deps{
		DB: db, Accounts: s.accounts, Endpoints: s.endpoints, Captures: s.captures,
		Replays: replay.New(db, replay.Config{Client: echo{}, Verifiers: s.endpoints, Sealer: keys, Reads: s.captures, Log: log}),
		Shares:  share.New(db, s.endpoints, s.captures), Retention: time.Hour, Addresses: api.Addresses{PublicURL: s.url, MailDomain: "mail.test"}, SMTP: web.SMTP{Address: "127.0.0.1:2525"}, Temporary: true, Draining: s.drain,
		Releases: release.New(db, release.Config{Log: log}), Retries: retries.New(db), Drift: drift.New(db), Flows: flow.New(db, log),
	}
	change(&deps)
	pages := httpd.New(httpd.Config{Log: log}).Wrap(web.New(deps))
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.away.Load() {
			panic(http.ErrAbortHandler)
		}
		pages.ServeHTTP(w, r)
	})
	server.Start()
	s.server = server
	t.Cleanup(func() {
		server.Config.Close() // Close would wait for the stream of a tab that was not closed
		server.Close()
	})

	made, err := s.accounts.Register(t.Context(), account.Registration{Email: "ada@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	s.user = made.User
	s.who = hookglass.Principal{Account: made.Account.ID, User: made.User.ID, Scopes: []hookglass.Scope{hookglass.ScopeRead, hookglass.ScopeWrite}}
	s.endpoint = s.create("default", hookglass.KindWebhook)
	return s
}

// password gives the user a password, which most tests have no use for and whose hash takes longer than the rest of
// making a site.
func (s *site) password() string {
	s.t.Helper()
	const password = "correct horse battery"
	if err := s.accounts.SetPassword(s.t.Context(), s.user.ID, password); err != nil {
		s.t.Fatal(err)
	}
	return password
}

func (s *site) create(name string, kind hookglass.EndpointKind) hookglass.Endpoint {
	s.t.Helper()
	e, err := s.endpoints.Create(s.t.Context(), s.who, endpoint.Draft{Name: &name, Kind: &kind})
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// link is a link that signs the user in once.
func (s *site) link() string {
	s.t.Helper()
	secret, err := s.accounts.LoginLink(s.t.Context(), s.user.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.url + "/auth/link/" + secret
}

func (s *site) page(below string) string {
	return s.url + "/endpoints/" + string(s.endpoint.ID) + below
}

// github is what GitHub would send, signed with the secret.
func (s *site) github(event, delivery, body, secret string) sent {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return sent{body: body, headers: hookglass.Headers{
		{Name: "Host", Value: "hooks.example.com"}, {Name: "Accept", Value: "*/*"}, {Name: "Content-Type", Value: "application/json"},
		{Name: "User-Agent", Value: "GitHub-Hookshot/760256b"}, {Name: "X-GitHub-Delivery", Value: delivery}, {Name: "X-GitHub-Event", Value: event},
		{Name: "X-GitHub-Hook-ID", Value: "457211842"}, {Name: "X-Hub-Signature-256", Value: "sha256=" + hex.EncodeToString(mac.Sum(nil))},
	}}
}

// secret configures what a provider's signatures at the user's endpoint are checked with.
func (s *site) secret(provider, secret string) {
	s.t.Helper()
	draft := endpoint.SignatureDraft{Provider: &provider, Secret: &secret}
	if _, err := s.endpoints.CreateSignatureConfig(s.t.Context(), s.who, string(s.endpoint.ID), draft, false); err != nil {
		s.t.Fatal(err)
	}
}

// sent is a request to the endpoint.
type sent struct {
	method, target, body string
	headers              hookglass.Headers
	ago                  time.Duration // sent so long ago
}

func (r sent) before(ago time.Duration) sent {
	r.ago = ago
	return r
}

// capture stores what reception would have read, and returns the event's id.
func (s *site) capture(e hookglass.Endpoint, r sent) hookglass.EventID {
	s.t.Helper()
	target, err := s.captures.Admit(s.t.Context(), string(e.ID))
	if err != nil {
		s.t.Fatal(err)
	}
	path, query, _ := strings.Cut(r.target, "?")
	if r.method == "" {
		r.method = "POST"
	}
	if path == "" {
		path = "/"
	}
	_, err = s.captures.Capture(s.t.Context(), target, &capture.Arrival{
		Method: r.method, Path: path, RawQuery: query, Target: "/hooks/" + string(e.ID) + r.target, Proto: "HTTP/1.1",
		Host: s.host, Scheme: "http", Client: netip.MustParseAddr("203.0.113.7"),
		Headers: r.headers, Body: []byte(r.body), At: time.Now().Add(-r.ago),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var id hookglass.EventID
	err = s.db.View(s.t.Context(), hookglass.System, func(v *store.View) error {
		page, err := v.Events(string(e.ID), store.EventList{Limit: 1})
		if err == nil {
			id = page.Events[0].ID
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// hook captures at the user's endpoint.
func (s *site) hook(r sent) hookglass.EventID { return s.capture(s.endpoint, r) }

func json(body string) sent {
	return sent{body: body, headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}}
}

// browser is a client with cookies that follows no redirect.
type browser struct {
	*site
	http *http.Client
}

// seq returns the number of a request.
func (s *site) seq(e hookglass.Endpoint, id hookglass.EventID) (seq int64) {
	s.t.Helper()
	err := s.db.View(s.t.Context(), hookglass.System, func(view *store.View) error {
		event, err := view.ListedEvent(string(e.ID), string(id))
		if err == nil {
			seq = event.Seq
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return seq
}

func (s *site) visitor() *browser {
	jar, _ := cookiejar.New(nil)
	return &browser{s, &http.Client{Jar: jar, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
}

func (s *site) signedIn() *browser {
	s.t.Helper()
	b := s.visitor()
	b.want(303, "GET", s.link(), nil)
	return b
}

// answer is a response with its body read.
type answer struct {
	*http.Response
	body string
}

func (b *browser) do(method, address string, form url.Values, header ...string) answer {
	b.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.url + address
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{res, string(body)}
}

// want is do, with the status that must come.
func (b *browser) want(status int, method, address string, form url.Values, header ...string) answer {
	b.t.Helper()
	a := b.do(method, address, form, header...)
	if a.StatusCode != status {
		b.t.Fatalf("%s %s: %d, want %d\n%s", method, address, a.StatusCode, status, a.body)
	}
	return a
}

func (a answer) holds(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("the page lacks %q:\n%s", text, a.body)
		}
	}
}
