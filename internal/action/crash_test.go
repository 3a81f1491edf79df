package action_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/outbound"
)

// A job that is repeated, and two nodes with one task, make one run and send one request.
func TestAnActionRunsOnceOnAnEvent(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Once", step("http_request", "Send", `{"url":"https://a.example.com/"}`), step("tag", "Mark", `{"tag":"t"}`)))
		other := b.node(b.net)
		for range 5 {
			e := b.capture(body)
			before := len(b.net.requests())
			var both sync.WaitGroup
			for _, s := range []*action.Service{b.actions, other} {
				both.Go(func() {
					for claim := int64(1); claim < 50; claim++ {
						if err := s.Work(t.Context(), task(e, claim)); err == nil {
							return
						} else if !hookglass.Is(err, hookglass.CodeRateLimited) {
							t.Error(err)
							return
						}
					}
				})
			}
			both.Wait()
			b.work(e)
			if n := len(b.net.requests()) - before; n != 1 {
				t.Errorf("%d requests were sent for one event", n)
			}
		}
		if runs := b.runs(a); len(runs) != 5 {
			t.Errorf("there are %d runs on 5 events", len(runs))
		}
	})
}

// died makes a worker stop for good while it has a request under way, as kill -9 does: what it does later is never
// written.
func died(t *testing.T, b *bench, e *hookglass.Event) (release func()) {
	t.Helper()
	under, gone := make(chan struct{}), make(chan struct{})
	dying := &network{respond: func(int, outbound.Request) (*outbound.Response, error) {
		close(under)
		<-gone
		return answer(200, "{}"), nil
	}}
	node := b.node(dying)
	var ended sync.WaitGroup
	ended.Go(func() { _ = node.Work(t.Context(), task(e, 1)) })
	<-under
	return func() { close(gone); ended.Wait() }
}

func TestARequestThatMayHaveBeenSentIsNotSentAgain(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Crash",
			step("transform", "Shape", `{"source":"request","operations":[{"op":"select","path":"/body/action"}]}`),
			step("http_request", "Send", `{"url":"https://a.example.com/"}`),
			step("http_request", "Then", `{"url":"https://b.example.com/","body":"{{steps.shape.output}}"}`),
		))
		e := b.capture(body)
		release := died(t, b, e)
		if runs := b.runs(a); len(runs) != 1 || runs[0].Status != hookglass.ActionRunRunning {
			t.Fatalf("while it is under way there is %+v", runs)
		}
		must(t, b.actions.Work(t.Context(), task(e, 2)))
		const want = "failed shape=completed send=failed(outcome_unknown) then=completed"
		wantOutcome(t, b.runs(a)[0], want)
		if sent := b.net.requests(); len(sent) != 1 || string(sent[0].Body) != "opened" {
			t.Errorf("the node that took over sent %+v", sent)
		}
		release()
		wantOutcome(t, b.runs(a)[0], want)
		if n := len(b.runs(a)); n != 1 {
			t.Errorf("there are %d runs", n)
		}
	})
}

// A node that stops withholds what it has not begun to send, and it is sent later.
func TestARequestThatNeverLeftIsSentLater(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Stop", step("http_request", "Send", `{"url":"https://a.example.com/"}`)))
		b.net.respond = func(n int, _ outbound.Request) (*outbound.Response, error) {
			if n == 1 {
				return nil, &outbound.Failure{Code: outbound.CodeCanceled, Message: "The node stops.", Sent: outbound.NotSent}
			}
			return answer(200, "ok"), nil
		}
		e := b.capture(body)
		if err := b.actions.Work(t.Context(), task(e, 1)); !hookglass.Is(err, hookglass.CodeRateLimited) {
			t.Fatal(err)
		}
		must(t, b.node(b.net).Work(t.Context(), task(e, 2)))
		wantOutcome(t, b.runs(a)[0], "completed send=completed")
	})
}

// pausingSealer lets a test do something in the moment in which a value is opened.
type pausingSealer struct {
	action.Sealer
	opens func(where string)
}

func (s pausingSealer) Open(sealed []byte, where string) ([]byte, error) {
	s.opens(where)
	return s.Sealer.Open(sealed, where)
}

// A run has two jobs where one was given up for lost: the later one goes on from where the run is by then, and not from
// where it was when it was looked at. What was sent is not sent again.
func TestARunGoesOnFromWhereItIs(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.secret("TOKEN", "a secret of some length")
		a := b.create(draft("Three",
			step("forward", "First", `{"url":"https://app.example.com/first","retry_count":5}`),
			step("http_request", "Once", `{"method":"POST","url":"https://app.example.com/once"}`),
			step("forward", "Last", `{"url":"https://app.example.com/last","retry_count":5}`),
		))
		e := b.capture(body)
		r, err := b.actions.Rerun(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID), "")
		must(t, err)
		down := map[string]bool{"/first": true, "/last": true}
		b.net.respond = func(_ int, r outbound.Request) (*outbound.Response, error) {
			if down[strings.TrimPrefix(r.URL, "https://app.example.com")] {
				return answer(503, "later"), nil
			}
			return answer(200, "{}"), nil
		}
		goOn := func(node *action.Service) {
			t.Helper()
			if err := node.ExecuteRun(t.Context(), r.ID); !hookglass.Is(err, hookglass.CodeRateLimited) {
				t.Fatal("the run does not wait:", err)
			}
			<-time.After(2 * time.Millisecond) // it is due again in one
		}
		goOn(b.actions)
		down["/first"] = false
		meanwhile := sync.OnceFunc(func() { goOn(b.actions) })
		late := action.New(b.db, action.Config{
			Client: b.net, Log: slog.New(slog.DiscardHandler), Delay: func(time.Duration) time.Duration { return 0 },
			Sealer: pausingSealer{b.keys, func(where string) {
				if strings.HasPrefix(where, "action_secrets:") { // it has looked at the run, and not taken it
					meanwhile()
				}
			}},
		})
		goOn(late)
		down["/last"] = false
		must(t, b.actions.ExecuteRun(t.Context(), r.ID))
		var sent []string
		for _, r := range b.net.requests() {
			sent = append(sent, strings.TrimPrefix(r.URL, "https://app.example.com"))
		}
		if got := strings.Join(sent, " "); got != "/first /first /once /last /last /last" {
			t.Errorf("sent: %s", got)
		}
		wantOutcome(t, b.runs(a)[0], "completed first=completed once=completed last=completed")
	})
}
