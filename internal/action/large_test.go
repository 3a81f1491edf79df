package action_test

import (
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/account"
	endpoints "hookglass/internal/endpoint"
	"hookglass/internal/outbound"
)

// Hundreds of runs may wait for their targets, and each holds its event: what does not fit is given back until it does,
// reruns too, and small events go on beside it.
func TestRunsHoldFewLargeEventsAtATime(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("On", step("forward", "Send", `{"url":"https://a.example.com/"}`)))
		under, let := make(chan error), make(chan struct{})
		slow := &network{respond: func(int, outbound.Request) (*outbound.Response, error) {
			under <- nil
			<-let
			return answer(200, "{}"), nil
		}}
		node := b.node(slow)
		large := strings.Repeat("x", 20<<20)
		var events []*hookglass.Event
		ended := make(chan error, 3)
		for i := range 3 {
			e := b.capture(large)
			light := *e
			light.Payload = nil // as a task has it
			events = append(events, e)
			go func() {
				err := node.Work(t.Context(), task(&light, 1))
				if hookglass.Is(err, hookglass.CodeRateLimited) {
					under <- err
					err = nil
				}
				ended <- err
			}()
			if err := <-under; (err != nil) != (i == 2) {
				close(let)
				t.Fatalf("event %d of 20 MiB: %v", i+1, err)
			}
		}
		again, err := node.Rerun(t.Context(), b.who, string(b.ep.ID), a.ID, string(events[2].ID), "")
		must(t, err)
		if err := node.ExecuteRun(t.Context(), again.ID); !hookglass.Is(err, hookglass.CodeRateLimited) {
			t.Errorf("a rerun on the third: %v", err)
		}
		small := b.capture(`{"action":"opened"}`)
		go func() { ended <- node.Work(t.Context(), task(small, 1)) }()
		<-under
		close(let)
		for range 4 {
			must(t, <-ended)
		}
		slow.respond = nil
		must(t, node.Work(t.Context(), task(events[2], 2)))
		must(t, node.ExecuteRun(t.Context(), again.ID))
		runs := b.runs(a)
		if len(runs) != 5 {
			t.Errorf("there are %d runs on 4 events, one of them twice", len(runs))
		}
		for _, r := range runs {
			wantOutcome(t, r, "completed send=completed")
		}
		for i, r := range slow.requests() {
			if n := len(r.Body); n != len(large) && n != len(small.Body) {
				t.Errorf("request %d has a body of %d bytes", i, n)
			}
		}
	})
}

// A worker is with a rerun for as long as its target takes, and another tenant's would stand behind all of them.
func TestRerunsOfOneTenantLeavePlacesToOthers(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		under, let := make(chan struct{}), make(chan struct{})
		slow := &network{respond: func(int, outbound.Request) (*outbound.Response, error) {
			under <- struct{}{}
			<-let
			return answer(200, "{}"), nil
		}}
		node := b.node(slow)
		// at makes what queues reruns of an action at an endpoint.
		at := func(who hookglass.Principal, ep hookglass.Endpoint) (rerun func() string) {
			b.who, b.ep = who, ep
			a := b.create(draft("On", step("forward", "Send", `{"url":"https://a.example.com/"}`)))
			e := b.capture(`{"action":"opened"}`)
			return func() string {
				t.Helper()
				r, err := node.Rerun(t.Context(), who, string(ep.ID), a.ID, string(e.ID), "")
				must(t, err)
				return r.ID
			}
		}
		endpoint := func(who hookglass.Principal, name string) hookglass.Endpoint {
			t.Helper()
			ep, err := b.endpoints.Create(t.Context(), who, endpoints.Draft{Name: &name})
			must(t, err)
			return ep
		}
		ended := make(chan error, 100)
		begun := 0
		// begin begins as many reruns as there are places for, at most so many.
		begin := func(rerun func() string, most int) (n int) {
			t.Helper()
			for ; n < most; n++ {
				id, refused := rerun(), make(chan error, 1)
				go func() {
					err := node.ExecuteRun(t.Context(), id)
					if hookglass.Is(err, hookglass.CodeRateLimited) {
						refused <- err
						return
					}
					ended <- err
				}()
				select {
				case <-under:
					begun++
				case <-refused:
					return n
				}
			}
			return n
		}
		one := b.who
		first, second := at(one, b.ep), at(one, endpoint(one, "Second"))
		registered, err := b.accounts.Register(t.Context(), account.Registration{Email: "grace@example.com"})
		must(t, err)
		other := hookglass.Principal{Account: registered.Account.ID, User: registered.User.ID, Scopes: hookglass.System.Scopes}
		b.owner = registered
		others := at(other, endpoint(other, "Other"))
		if n := begin(first, 40); n != 16 {
			t.Errorf("an endpoint has %d reruns under way at a time, want 16", n)
		}
		if n := begin(second, 1); n != 1 {
			t.Error("another endpoint of the same account has no place")
		}
		if n := begin(others, 8); n != 8 {
			t.Errorf("another account has %d places, want as many as it needs", n)
		}
		close(let)
		for range begun {
			must(t, <-ended)
		}
		if n := begin(first, 1); n != 1 {
			t.Error("places are not given back")
		}
		must(t, <-ended)
	})
}
