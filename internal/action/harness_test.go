package action_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/action"
	endpoints "hookglass/internal/endpoint"
	"hookglass/internal/outbound"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// bench is a service with an account, an endpoint, and a network that the test makes up.
type bench struct {
	t         testing.TB
	db        *store.DB
	keys      *seal.Keys
	accounts  *account.Service
	endpoints *endpoints.Service
	actions   *action.Service
	owner     account.Registered
	who       hookglass.Principal
	ep        hookglass.Endpoint
	net       *network
	log       *notes
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, newBench(t, db)) })
}

func newBench(t testing.TB, db *store.DB) *bench {
	t.Helper()
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	must(t, err)
	b := &bench{t: t, db: db, keys: keys, accounts: account.New(db, slog.New(slog.DiscardHandler)), endpoints: endpoints.New(db, keys), net: &network{}, log: &notes{}}
	b.owner, err = b.accounts.Register(t.Context(), account.Registration{Email: "ada@example.com"})
	must(t, err)
	b.who = hookglass.Principal{Account: b.owner.Account.ID, User: b.owner.User.ID, Scopes: hookglass.System.Scopes}
	name := "Payments"
	b.ep, err = b.endpoints.Create(t.Context(), b.who, endpoints.Draft{Name: &name})
	must(t, err)
	b.actions = b.node(b.net)
	return b
}

// node is another node on the same database. Retries come at once.
func (b *bench) node(net *network) *action.Service {
	return action.New(b.db, action.Config{
		Client: net, Sealer: b.keys, Log: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Delay: func(time.Duration) time.Duration { return 0 },
	})
}

// network answers requests as a test says.
type network struct {
	mu      sync.Mutex
	seen    []outbound.Request
	respond func(n int, r outbound.Request) (*outbound.Response, error) // n counts from 1
	turn    func(line int64) error
}

func (n *network) Check(field, rawURL string) error {
	return outbound.New(outbound.Config{}).Check(field, rawURL)
}

func (n *network) Do(_ context.Context, r outbound.Request) (*outbound.Response, error) {
	n.mu.Lock()
	n.seen = append(n.seen, r)
	count, respond := len(n.seen), n.respond
	n.mu.Unlock()
	if respond == nil {
		return answer(200, `{"ok":true}`), nil
	}
	return respond(count, r)
}

func (n *network) Turn(_ context.Context, _ string, line int64) (*outbound.Turn, error) {
	if n.turn == nil {
		return nil, nil
	}
	return nil, n.turn(line)
}

func (n *network) requests() []outbound.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]outbound.Request(nil), n.seen...)
}

func answer(status int, body string) *outbound.Response {
	return &outbound.Response{Status: status, Body: []byte(body), Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}}
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

// step is a step of a type with a configuration.
func step(kind, name, config string, conditions ...action.StepConditionDraft) action.StepDraft {
	return action.StepDraft{Type: kind, Name: &name, Config: []byte(config), Conditions: conditions}
}

func stopping(d action.StepDraft) action.StepDraft {
	stop := "stop"
	d.FailurePolicy = &stop
	return d
}

func on(source, path, operator, value string) action.StepConditionDraft {
	c := action.StepConditionDraft{Source: source, Path: &path, Operator: operator}
	if value != "" {
		c.Value = []byte(value)
	}
	return c
}

func draft(name string, steps ...action.StepDraft) action.Draft {
	return action.Draft{Name: &name, Steps: &steps}
}

func (b *bench) create(d action.Draft) hookglass.Action {
	b.t.Helper()
	a, err := b.actions.Create(b.t.Context(), b.who, string(b.ep.ID), d)
	must(b.t, err)
	return a
}

func (b *bench) secret(name, value string) hookglass.ActionSecret {
	b.t.Helper()
	s, err := b.actions.CreateSecret(b.t.Context(), b.who, b.owner.Workspace.ID, action.SecretDraft{Name: &name, Value: &value})
	must(b.t, err)
	return s
}

func (b *bench) plan(p hookglass.Plan, s hookglass.Subscription) {
	b.t.Helper()
	_, err := b.accounts.SetAccount(b.t.Context(), b.owner.Account.ID, account.Change{Plan: &p, Subscription: &s})
	must(b.t, err)
}

// capture stores an event of the endpoint with a task for its actions.
func (b *bench) capture(body string, change ...func(*hookglass.Event)) *hookglass.Event {
	b.t.Helper()
	now := time.Now().UTC().Truncate(time.Microsecond)
	e := &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, now), EndpointNum: b.ep.Num, EndpointID: b.ep.ID, Type: hookglass.EventWebhook, ReceivedAt: now,
		Method: "POST", Path: "/in", RawQuery: "a=1", URL: "https://hooks.example.com/in?a=1", Proto: "HTTP/1.1", ContentType: "application/json",
		Provider: "github", EventType: "push", EventRef: "evt_1", DeliveryID: "d-1", SignatureStatus: hookglass.SignatureVerified,
		Payload: &hookglass.Payload{
			Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Github-Event", Value: "push"}}, Body: []byte(body),
			Reply: &hookglass.Reply{Status: 200, Source: hookglass.SourceDefault},
		},
	}
	for _, c := range change {
		c(e)
	}
	e.Size = int64(len(e.Body))
	must(b.t, b.db.CaptureWith(b.t.Context(), b.owner.Account.ID, e, store.Work{Tasks: []store.TaskKind{store.TaskActions}}))
	return e
}

// task is what a worker is given for an event.
func task(e *hookglass.Event, claim int64) store.Task {
	return store.Task{Kind: store.TaskActions, EndpointNum: e.EndpointNum, EventSeq: e.Seq, Claim: claim, Lost: int(claim - 1), Event: e}
}

// work works an event's task until nothing of it is left.
func (b *bench) work(e *hookglass.Event) {
	b.t.Helper()
	for claim := int64(1); claim < 20; claim++ {
		err := b.actions.Work(b.t.Context(), task(e, claim))
		if err == nil {
			return
		}
		if !hookglass.Is(err, hookglass.CodeRateLimited) {
			b.t.Fatal(err)
		}
	}
	b.t.Fatal("the task does not end")
}

// runs lists an action's runs, newest first.
func (b *bench) runs(a hookglass.Action) (runs []hookglass.ActionRun) {
	b.t.Helper()
	must(b.t, b.db.View(b.t.Context(), b.who, func(v *store.View) (err error) {
		runs, err = v.ActionRuns(string(b.ep.ID), a.ID, "", 100)
		return err
	}))
	return runs
}

// ran captures an event, works it, and returns the only run of the action.
func (b *bench) ran(a hookglass.Action, body string) hookglass.ActionRun {
	b.t.Helper()
	b.work(b.capture(body))
	runs := b.runs(a)
	if len(runs) == 0 {
		b.t.Fatal("there is no run")
	}
	return runs[0]
}

func (b *bench) event(e *hookglass.Event) (now *hookglass.Event) {
	b.t.Helper()
	must(b.t, b.db.View(b.t.Context(), b.who, func(v *store.View) (err error) {
		now, err = v.Event(string(b.ep.ID), string(e.ID))
		return err
	}))
	return now
}

// outcome writes a run in one line: its status, and of each step its status, reason and failure.
func outcome(r hookglass.ActionRun) string {
	s := string(r.Status)
	for _, st := range r.Steps {
		s += " " + st.ReferenceKey + "=" + string(st.Status)
		if st.Reason != "" {
			s += "(" + st.Reason + ")"
		}
		if st.Failure != nil {
			s += "(" + st.Failure.Code + ")"
		}
	}
	return s
}

func summaryOf(t testing.TB, r hookglass.ActionRun, i int) (m map[string]any) {
	t.Helper()
	must(t, json.Unmarshal(r.Steps[i].Summary, &m))
	return m
}

func wantOutcome(t testing.TB, r hookglass.ActionRun, want string) {
	t.Helper()
	if got := outcome(r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}
