package replay_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/capture"
	"hookglass/internal/endpoint"
	"hookglass/internal/outbound"
	"hookglass/internal/replay"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// bench is a replay service with an account, an endpoint and a target.
type bench struct {
	t         testing.TB
	db        *store.DB
	keys      *seal.Keys
	accounts  *account.Service
	endpoints *endpoint.Service
	replays   *replay.Service
	owner     account.Registered
	who       hookglass.Principal
	ep        hookglass.Endpoint
	sink      *sink
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, newBench(t, db)) })
}

func newBench(t testing.TB, db *store.DB) *bench {
	t.Helper()
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	must(t, err)
	b := &bench{t: t, db: db, keys: keys, accounts: account.New(db, slog.New(slog.DiscardHandler)), endpoints: endpoint.New(db, keys), sink: newSink(t)}
	b.owner, err = b.accounts.Register(t.Context(), account.Registration{Email: "ada@example.com"})
	must(t, err)
	b.who = hookglass.Principal{Account: b.owner.Account.ID, User: b.owner.User.ID, Scopes: hookglass.System.Scopes}
	name := "Payments"
	b.ep, err = b.endpoints.Create(t.Context(), b.who, endpoint.Draft{Name: &name})
	must(t, err)
	b.replays = b.node()
	return b
}

// node is another node on the same database.
func (b *bench) node() *replay.Service { return replay.New(b.db, b.config()) }

func (b *bench) config() replay.Config {
	rule, err := outbound.ParseRule("127.0.0.1/32:1-65535")
	must(b.t, err)
	return replay.Config{
		Client: outbound.New(outbound.Config{Allow: []outbound.Rule{rule}, Resolver: names{}}), Verifiers: b.endpoints, Sealer: b.keys,
		Reads: capture.New(b.db, capture.Config{Verifiers: b.endpoints}, slog.New(slog.DiscardHandler)), Log: slog.New(slog.DiscardHandler),
	}
}

// names knows one name, which leads inside.
type names struct{}

func (names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
}

// capture stores an event of the endpoint.
func (b *bench) capture(method, headers, body string) *hookglass.Event {
	b.t.Helper()
	e := b.prepared(method, headers, body)
	must(b.t, b.db.Capture(b.t.Context(), b.owner.Account.ID, e))
	return e
}

// prepared is an event of the endpoint that is not stored yet.
func (b *bench) prepared(method, headers, body string) *hookglass.Event {
	now := time.Now().UTC()
	return &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, now), EndpointNum: b.ep.Num, EndpointID: b.ep.ID, Type: hookglass.EventWebhook, ReceivedAt: now,
		Method: method, Path: "/", URL: "https://hooks.example.com/", Proto: "HTTP/1.1", Provider: hookglass.UnknownProvider,
		SignatureStatus: hookglass.SignatureUnchecked, Size: int64(len(body)), Status: 200,
		Payload: &hookglass.Payload{Headers: hookglass.ParseWire([]byte(headers)), Body: []byte(body), Reply: &hookglass.Reply{Status: 200, Source: hookglass.SourceDefault}},
	}
}

// makeMailEndpoint makes the endpoint of the bench one of mail.
func (b *bench) makeMailEndpoint() {
	b.t.Helper()
	var err error
	b.ep, err = b.endpoints.Create(b.t.Context(), b.who, endpoint.Draft{Name: new("Mail"), Kind: new(hookglass.KindEmail)})
	must(b.t, err)
}

// captureMail stores a mail of the endpoint.
func (b *bench) captureMail() *hookglass.Event {
	b.t.Helper()
	e := b.prepared("EMAIL", "Subject: Hi\r\n", "Subject: Hi\r\n\r\nx")
	e.Type, e.ID = hookglass.EventEmail, hookglass.NewEventID(hookglass.EventEmail, e.ReceivedAt)
	e.Reply, e.Envelope = nil, &hookglass.Envelope{From: "ada@example.com"}
	must(b.t, b.db.Capture(b.t.Context(), b.owner.Account.ID, e))
	return e
}

func (b *bench) setPayment(has bool) {
	b.t.Helper()
	_, err := b.accounts.SetAccount(b.t.Context(), b.owner.Account.ID, account.Change{PaymentMethod: &has})
	must(b.t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code hookglass.Code) {
	t.Helper()
	if !hookglass.Is(err, code) {
		t.Errorf("%v, want %s", err, code)
	}
}

// sink is a target on loopback that keeps what it gets, byte for byte, and answers as it is told.
type sink struct {
	url string

	mu     sync.Mutex
	heads  []string
	bodies []string
	script func(n int) string // the raw answer to the nth request, from 1; "" closes without one
	got    chan struct{}      // one for each request that has arrived
	hold   chan struct{}      // when set, an answer waits for it to be closed
}

func newSink(t testing.TB) *sink {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	s := &sink{url: "http://" + l.Addr().String(), got: make(chan struct{}, 10_000)}
	s.answer("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"ok\":true}")
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.release()
		serving.Wait()
	})
	return s
}

func (s *sink) serve(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	r := bufio.NewReader(c)
	var head bytes.Buffer
	length := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		head.WriteString(line)
		if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(name, "Content-Length") {
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		}
		if line == "\r\n" {
			break
		}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return
	}
	s.mu.Lock()
	s.heads, s.bodies = append(s.heads, head.String()), append(s.bodies, string(body))
	answer, hold := s.script(len(s.heads)), s.hold
	s.mu.Unlock()
	s.got <- struct{}{}
	if hold != nil {
		<-hold
	}
	_, _ = io.WriteString(c, answer)
}

func (s *sink) answer(raw string) { s.play(func(int) string { return raw }) }

func (s *sink) status(code int) {
	s.answer(fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n", code))
}

func (s *sink) json(body string) {
	s.answer(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
}

func (s *sink) play(script func(n int) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

func (s *sink) block() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = make(chan struct{})
}

func (s *sink) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold != nil {
		close(s.hold)
		s.hold = nil
	}
}

func (s *sink) hits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.heads)
}

func (s *sink) last() (head, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heads[len(s.heads)-1], s.bodies[len(s.bodies)-1]
}

// nobody is an address where nobody listens, and which nobody is given.
const nobody = "http://127.0.0.1:1"

func background(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
