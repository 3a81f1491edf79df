package rest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/capture"
	"hookglass/internal/declare"
	"hookglass/internal/delivery"
	"hookglass/internal/diagnosis"
	"hookglass/internal/drift"
	"hookglass/internal/endpoint"
	"hookglass/internal/flow"
	"hookglass/internal/httpd"
	"hookglass/internal/release"
	"hookglass/internal/replay"
	"hookglass/internal/rest"
	"hookglass/internal/retries"
	"hookglass/internal/seal"
	"hookglass/internal/share"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
	"hookglass/internal/tunnel"
)

// site is a running API with one account and its tokens.
type site struct {
	t         *testing.T
	db        *store.DB
	url       string // {base_url}
	accounts  *account.Service
	captures  *capture.Service
	endpoints *endpoint.Service
	replays   *replay.Service
	actions   *action.Service
	alerts    *alert.Service
	deps      rest.Deps
	relay     *relay
	owner     account.Registered
	token     string // of the owner's account, with every scope
	drain     func()
	log       *notes
}

// notes is a log that can be read while it is written.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// each runs the test against an API on each database.
func each(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, open(t, db)) })
}

func open(t *testing.T, db *store.DB) *site {
	t.Helper()
	s := &site{t: t, db: db, log: new(notes), relay: new(relay)}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.accounts = account.New(db, log)
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	s.endpoints = endpoint.New(db, keys)
	s.captures = capture.New(db, capture.Config{Verifiers: s.endpoints}, log)
	s.replays = replay.New(db, replay.Config{Client: network{}, Verifiers: s.endpoints, Sealer: keys, Reads: s.captures, Log: log})
	s.alerts = alert.New(db, alert.Config{Client: network{}, Sealer: keys, Log: log})
	s.actions = action.New(db, action.Config{Client: network{}, Sealer: keys, Hold: s.captures.Hold, Log: log})
	allowed, err := release.ParseRecipients([]string{"dev@example.com", "@team.example"}, "mail.example.com")
	if err != nil {
		t.Fatal(err)
	}
	draining := make(chan struct{})
	tunnels := tunnel.New(db, tunnel.Config{Mail: delivery.MailJSON, HoldAll: s.captures.HoldAll, Retention: 720 * time.Hour, Draining: draining, Log: log})
	s.deps = rest.Deps{
		DB: db, Accounts: s.accounts, Endpoints: s.endpoints, Captures: s.captures, Replays: s.replays, Actions: s.actions, Alerts: s.alerts, Tunnels: tunnels, Flows: flow.New(db, log), Diagnoses: diagnosis.New(db, s.captures.Judge, s.captures.HoldAll), Retries: retries.New(db), Drift: drift.New(db),
		Declarations:       declare.New(db, s.endpoints, s.actions, s.alerts),
		Addresses:          api.Addresses{PublicURL: "https://hooks.example.com", MailDomain: "mail.example.com"},
		Shares:             share.New(db, s.endpoints, s.captures),
		Releases:           release.New(db, release.Config{Relay: s.relay, Recipients: allowed, Log: log}),
		TemporaryEndpoints: true, Draining: draining,
	}
	handler := rest.New(s.deps)
	server := httptest.NewUnstartedServer(httpd.New(httpd.Config{Log: log}).Wrap(handler))
	server.Config.RegisterOnShutdown(func() { close(draining) })
	server.Start()
	s.drain = func() { _ = server.Config.Shutdown(t.Context()) }
	t.Cleanup(server.Close)
	s.url = server.URL + rest.Base
	s.owner = s.register("ada@example.com")
	s.token = s.newToken(s.owner, hookglass.LevelAccount, 0, hookglass.ScopeRead, hookglass.ScopeWrite, hookglass.ScopeTunnel)
	return s
}

func (s *site) register(email string) account.Registered {
	s.t.Helper()
	r, err := s.accounts.Register(s.t.Context(), account.Registration{Email: email})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *site) newToken(r account.Registered, level hookglass.TokenLevel, workspace int64, scopes ...hookglass.Scope) string {
	s.t.Helper()
	ask := account.TokenRequest{User: r.User.ID, Account: r.Account.ID, Level: level, Scopes: scopes}
	if workspace != 0 {
		ask.Workspace = &workspace
	}
	token, _, err := s.accounts.CreateToken(s.t.Context(), hookglass.System, ask)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// tokenFor makes a token of the owner with every scope; life 0 is for ever.
func (s *site) tokenFor(life time.Duration) (string, hookglass.Token) {
	s.t.Helper()
	token, record, err := s.accounts.CreateToken(s.t.Context(), hookglass.System, account.TokenRequest{
		User: s.owner.User.ID, Account: s.owner.Account.ID, Level: hookglass.LevelAccount, ExpiresIn: life,
		Scopes: []hookglass.Scope{hookglass.ScopeRead, hookglass.ScopeWrite, hookglass.ScopeTunnel},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return token, record
}

// call makes a request and returns status, header and body. body is JSON text, "" for none.
func (s *site) call(token, method, path, body string) (*http.Response, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return s.do(req)
}

func (s *site) do(req *http.Request) (*http.Response, string) {
	s.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.wantDescribed(req, res)
	return res, string(text)
}

// want makes a request with the owner's token, checks the status, and reads the answer's JSON into out unless it is
// nil.
func (s *site) want(status int, method, path, body string, out any) *http.Response {
	s.t.Helper()
	return s.wantAs(s.token, status, method, path, body, out)
}

func (s *site) wantAs(token string, status int, method, path, body string, out any) *http.Response {
	s.t.Helper()
	res, text := s.call(token, method, path, body)
	if res.StatusCode != status {
		s.t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, res.StatusCode, text, status)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return res
}

// newEndpoint creates one with the owner's token; members are added to the endpoint's JSON.
func (s *site) newEndpoint(members string) api.Endpoint {
	s.t.Helper()
	var made api.One[api.Endpoint]
	s.want(201, "POST", "/endpoints", `{"endpoint":{"name":"Payments"`+members+`}}`, &made)
	return made.Data
}

// stored returns the ids of an endpoint's events, oldest first, whoever owns it.
func (s *site) stored(ref string) (all []string) {
	s.t.Helper()
	err := s.db.View(s.t.Context(), hookglass.System, func(v *store.View) error {
		events, err := v.EventsAfter(ref, 0, 1_000)
		for _, e := range events {
			all = append(all, string(e.ID))
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}
