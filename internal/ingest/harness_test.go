package ingest_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/ingest"
)

const knownRef = "ep_0123456789abcdefghjkmnpqrs"

// stub is a capturer that knows one endpoint and keeps what it is given.
type stub struct {
	admit   func(ctx context.Context, ref string) (capture.Target, error)
	capture func(ctx context.Context, t capture.Target, a *capture.Arrival) (*hookglass.Reply, error)
	answer  func(ctx context.Context, r *hookglass.Reply) *hookglass.Reply

	mu       sync.Mutex
	arrivals []*capture.Arrival
	refused  int
}

func (s *stub) Admit(ctx context.Context, ref string) (capture.Target, error) {
	if s.admit != nil {
		return s.admit(ctx, ref)
	}
	if ref != knownRef {
		return capture.Target{}, hookglass.NotFound("endpoint with the id " + ref)
	}
	return capture.Target{}, nil
}

func (s *stub) Capture(ctx context.Context, t capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
	if s.capture != nil {
		if r, err := s.capture(ctx, t, a); r != nil || err != nil {
			return r, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrivals = append(s.arrivals, a)
	return jsonReply(fmt.Sprintf(`{"received":true,"id":"req_%d"}`, len(s.arrivals))), nil
}

// mailRef is a mailbox; its mail is what was posted.
const mailRef = "ep_mmmmmmmmmmmmmmmmmmmmmmmmmm"

func (s *stub) AdmitMailbox(_ context.Context, ref string) (capture.Target, error) {
	if ref != mailRef {
		return capture.Target{}, hookglass.NotFound("endpoint with the id " + ref)
	}
	return capture.Target{}, nil
}

func (s *stub) CapturePosted(_ context.Context, _ capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
	switch a.Headers.Get("Content-Type") {
	case "message/rfc822":
	case "application/json":
		return nil, hookglass.Errorf(hookglass.CodeInvalidJSON, "The body is not JSON.")
	case "multipart/form-data":
		return nil, hookglass.Errorf(hookglass.CodeValidationFailed, "The form cannot be read.")
	default:
		return nil, hookglass.Errorf(hookglass.CodeUnsupportedMediaType, "This is no mail.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrivals = append(s.arrivals, a)
	return jsonReply(fmt.Sprintf(`{"received":true,"id":"eml_%d"}`, len(s.arrivals))), nil
}

func (s *stub) Answer(ctx context.Context, r *hookglass.Reply) *hookglass.Reply {
	return s.answer(ctx, r)
}

func (s *stub) Refuse(context.Context, capture.Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
}

func (s *stub) all() []*capture.Arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*capture.Arrival(nil), s.arrivals...)
}

func (s *stub) one(t *testing.T) *capture.Arrival {
	t.Helper()
	all := s.all()
	if len(all) != 1 {
		t.Fatalf("%d arrivals were captured, want 1", len(all))
	}
	return all[0]
}

func (s *stub) refusals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func jsonReply(body string) *hookglass.Reply {
	return &hookglass.Reply{Status: 200, Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}, Body: []byte(body)}
}

// service is a front with a server behind it, on a loopback port.
type service struct {
	t     testing.TB
	addr  string
	front *ingest.Front
	stub  *stub
	log   *syncBuffer
	done  chan error
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func start(t testing.TB, cfg ingest.Config, s *stub, next http.Handler) *service {
	t.Helper()
	return startOn(t, nil, cfg, s, next)
}

// startOn is start, under TLS where there is a configuration of it.
func startOn(t testing.TB, tlsConfig *tls.Config, cfg ingest.Config, s *stub, next http.Handler) *service {
	t.Helper()
	ln, err := ingest.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, ln, tlsConfig, cfg, s, next)
}

// startWith is startOn with a listener of the test's own.
func startWith(t testing.TB, ln net.Listener, tlsConfig *tls.Config, cfg ingest.Config, s *stub, next http.Handler) *service {
	t.Helper()
	if next == nil {
		next = http.HandlerFunc(echo)
	}
	log := new(syncBuffer)
	sv := &service{t: t, addr: ln.Addr().String(), stub: s, log: log, done: make(chan error, 1)}
	sv.front = ingest.New(cfg, s, slog.New(slog.NewTextHandler(log, nil)))
	rest := &http.Server{Handler: sv.front.Handler(next), ReadHeaderTimeout: patience}
	go func() { sv.done <- sv.front.Serve(ln, tlsConfig, rest) }()
	t.Cleanup(func() { ending.Go(func() { sv.end(t.Name()) }) })
	return sv
}

// ending are the services of tests that are over. Each takes a tenth of a second for it, which the next test does not
// wait for; neverEnded are the errors.
var (
	ending     sync.WaitGroup
	neverEnded syncBuffer
)

func (sv *service) end(test string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := sv.front.Shutdown(ctx); err != nil {
		fmt.Fprintf(&neverEnded, "%s: shutdown: %v\n", test, err)
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	ending.Wait()
	if said := neverEnded.String(); said != "" {
		fmt.Fprint(os.Stderr, said)
		code = max(code, 1)
	}
	os.Exit(code)
}

// echo answers what net/http saw of the request.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, body)
}

// patience is how long a test waits for what comes: a busy machine takes its time.
const patience = 2 * time.Minute

// sender is a client that writes exact bytes.
type sender struct {
	t  testing.TB
	nc *net.TCPConn
	r  *bufio.Reader
}

func (sv *service) dial() *sender {
	sv.t.Helper()
	nc, err := net.Dial("tcp", sv.addr)
	if err != nil {
		sv.t.Fatal(err)
	}
	sv.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return &sender{sv.t, nc.(*net.TCPConn), bufio.NewReader(nc)}
}

func (s *sender) send(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.nc, text); err != nil {
		s.t.Fatal(err)
	}
}

type answer struct {
	*http.Response
	body string
}

func (s *sender) read(method string) answer {
	s.t.Helper()
	resp, err := http.ReadResponse(s.r, &http.Request{Method: method})
	if err != nil {
		s.t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("the answer's body: %v", err)
	}
	return answer{resp, string(body)}
}

// want reads an answer and checks its status.
func (s *sender) want(status int) answer {
	s.t.Helper()
	a := s.read("POST")
	if a.StatusCode != status {
		s.t.Fatalf("answered %d %s, want %d", a.StatusCode, a.body, status)
	}
	return a
}

// wantEnd checks that the service closes the connection in an orderly way, saying nothing more.
func (s *sender) wantEnd() {
	s.t.Helper()
	rest, err := io.ReadAll(s.r)
	if err != nil || len(rest) > 0 {
		s.t.Fatalf("the connection went on with %q, %v; want its end", rest, err)
	}
}

// post is a request with a body, keeping the connection.
func post(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

func hook(sub string) string { return "/hooks/" + knownRef + sub }

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

func wire(h hookglass.Headers) string { return string(h.AppendWire(nil)) }

func lines(s ...string) string { return strings.Join(s, "\r\n") + "\r\n" }
