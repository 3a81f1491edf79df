package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/capture"
	"hookglass/internal/diagnosis"
	"hookglass/internal/endpoint"
	"hookglass/internal/httpd"
	"hookglass/internal/mcp"
	"hookglass/internal/outbound"
	"hookglass/internal/replay"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// site is a running interface with one account and its tokens.
type site struct {
	t         testing.TB
	url       string
	db        *store.DB
	accounts  *account.Service
	endpoints *endpoint.Service
	captures  *capture.Service
	replays   *replay.Service
	actions   *action.Service
	owner     account.Registered
	token     string // of the owner's account, with every scope
	who       hookglass.Principal
	handler   http.Handler
}

// each runs the test against the interface on each database.
func each(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, open(t, db)) })
}

func open(t testing.TB, db *store.DB) *site {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	client := outbound.New(outbound.Config{})
	s := &site{t: t, db: db, accounts: account.New(db, log), endpoints: endpoint.New(db, keys)}
	s.captures = capture.New(db, capture.Config{Verifiers: s.endpoints, MaxBody: 1 << 20}, log)
	s.replays = replay.New(db, replay.Config{Client: client, Verifiers: s.endpoints, Sealer: keys, Reads: s.captures, Log: log})
	s.actions = action.New(db, action.Config{Client: client, Sealer: keys, Log: log})
	handler := mcp.New(mcp.Deps{
		DB: db, Accounts: s.accounts, Endpoints: s.endpoints, Captures: s.captures, Replays: s.replays, Actions: s.actions,
		Alerts:    alert.New(db, alert.Config{Client: client, Sealer: keys, Log: log}),
		Diagnoses: diagnosis.New(db, s.captures.Judge, s.captures.HoldAll),
		Addresses: api.Addresses{PublicURL: "https://hooks.example.com", MailDomain: "mail.example.com"},
		Draining:  make(chan struct{}), Log: log,
	})
	s.handler = handler
	server := httptest.NewServer(httpd.New(httpd.Config{Log: log}).Wrap(handler))
	t.Cleanup(server.Close)
	s.url = server.URL + mcp.Path
	s.owner = s.register("ada@example.com")
	s.token = s.newToken(s.owner, hookglass.ScopeRead, hookglass.ScopeWrite, hookglass.ScopeTunnel)
	if s.who, err = s.accounts.Authenticate(t.Context(), s.token); err != nil {
		t.Fatal(err)
	}
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

func (s *site) newToken(r account.Registered, scopes ...hookglass.Scope) string {
	s.t.Helper()
	token, _, err := s.accounts.CreateToken(s.t.Context(), hookglass.System, account.TokenRequest{
		User: r.User.ID, Account: r.Account.ID, Level: hookglass.LevelAccount, Scopes: scopes,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// endpoint makes an endpoint and returns its id.
func (s *site) endpoint(name string) string {
	s.t.Helper()
	e, err := s.endpoints.Create(s.t.Context(), s.who, endpoint.Draft{Name: &name})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(e.ID)
}

// receive captures a POST at an endpoint as if it came from outside, and returns its id.
func (s *site) receive(ref, path, contentType, body string, headers ...hookglass.Header) string {
	s.t.Helper()
	id, err := s.captures.SendTest(s.t.Context(), s.who, ref, "https://hooks.example.com", capture.TestRequest{
		Method: "POST", Path: path, Headers: append(hookglass.Headers{{Name: "Content-Type", Value: contentType}}, headers...), Body: []byte(body),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(id)
}

// post sends a message as it is and returns the answer.
func (s *site) post(ctx context.Context, token, message string, change func(*http.Request)) (*http.Response, []byte) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(message))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if change != nil {
		change(req)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res, text
}

// answer is a JSON-RPC answer.
type answer struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  struct {
		Content []struct {
			Type, Text string
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
		Tools      []described     `json:"tools"`
	} `json:"result"`
	Error *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// described is a tool as the list has it.
type described struct {
	Name, Title, Description string
	InputSchema              map[string]any `json:"inputSchema"`
	OutputSchema             map[string]any `json:"outputSchema"`
	Annotations              struct {
		Title           string `json:"title"`
		ReadOnlyHint    *bool  `json:"readOnlyHint"`
		DestructiveHint *bool  `json:"destructiveHint"`
		IdempotentHint  *bool  `json:"idempotentHint"`
		OpenWorldHint   *bool  `json:"openWorldHint"`
	} `json:"annotations"`
}

func parse(t testing.TB, text []byte) (a answer) {
	t.Helper()
	if err := json.Unmarshal(text, &a); err != nil || a.JSONRPC != "2.0" {
		t.Fatalf("no JSON-RPC answer: %s", text)
	}
	return a
}

// try calls a tool and returns status and answer.
func (s *site) try(token, tool string, arguments any) (*http.Response, []byte) {
	s.t.Helper()
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments}})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.post(s.t.Context(), token, string(message), nil)
}

type args map[string]any

// call calls a tool that succeeds, and returns the text and the structured content, which must agree.
func (s *site) call(tool string, arguments args) (text string, structured map[string]any) {
	s.t.Helper()
	res, raw := s.try(s.token, tool, arguments)
	a := parse(s.t, raw)
	if res.StatusCode != 200 || a.Error != nil || a.Result.IsError || len(a.Result.Content) != 1 {
		s.t.Fatalf("%s %v: %d %s", tool, arguments, res.StatusCode, raw)
	}
	if err := json.Unmarshal(a.Result.Structured, &structured); err != nil {
		s.t.Fatalf("%s: %v", tool, err)
	}
	shown := a.Result.Content[0].Text
	if block := markers.FindStringSubmatch(shown); block != nil {
		shown = block[2]
	}
	var written map[string]any
	if err := json.Unmarshal([]byte(shown), &written); err != nil || !reflect.DeepEqual(written, structured) {
		s.t.Fatalf("%s: text and structured content differ: %v\n%s\n%s", tool, err, shown, a.Result.Structured)
	}
	return a.Result.Content[0].Text, structured
}

// fails calls a tool that does not succeed, and returns what the agent is told.
func (s *site) fails(token, tool string, arguments args) string {
	s.t.Helper()
	res, raw := s.try(token, tool, arguments)
	a := parse(s.t, raw)
	if res.StatusCode != 200 || a.Error != nil || !a.Result.IsError || len(a.Result.Content) != 1 {
		s.t.Fatalf("%s %v: %d %s, want a result that is an error", tool, arguments, res.StatusCode, raw)
	}
	return a.Result.Content[0].Text
}

// list returns the tools by name.
func (s *site) list() map[string]described {
	s.t.Helper()
	_, raw := s.post(s.t.Context(), s.token, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil)
	all := make(map[string]described)
	for _, d := range parse(s.t, raw).Result.Tools {
		all[d.Name] = d
	}
	return all
}

// at finds what a path of names and indexes means in structured content.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}
