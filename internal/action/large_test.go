package action_test

import (
	"strings"
	"testing"

	"hookglass"
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
