package job

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// A task of an event that this node captured begins at once, without a look into the table: the capture asks for a place before it stores the event, and
// then the task is the node's own from the start (see [store.Taker]).

// handedBehind is how many tasks of an endpoint are handed over at a time while others of it wait in the table: the rest of the places is theirs.
const handedBehind = 16

// taskDesk is where captures hand tasks over.
type taskDesk struct{ w *Tasks }

// Offer takes a place.
func (d taskDesk) Offer(account int64, ev *hookglass.Event) (lease time.Duration) {
	w := d.w
	if ev.Size > loadedBody {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.behind[ev.EndpointNum] && w.direct[ev.EndpointNum] >= handedBehind || !w.places.Take(tenantOf(account, ev.EndpointNum), ev.EndpointNum) {
		return 0
	}
	w.promised.Add(1)
	w.direct[ev.EndpointNum]++
	return taskLease
}

// Take has the task begin, or gives its place back when there is none.
func (d taskDesk) Take(account int64, ev *hookglass.Event, tasks []store.Task) {
	w := d.w
	defer w.promised.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	tenant := tenantOf(account, ev.EndpointNum)
	for _, t := range tasks { // one of a kind
		w.held[t.Num] = struct{}{}
		t.Event = ev
		w.handed.Put(endedTask{Task: t, tenant: tenant, direct: true})
	}
	if len(tasks) == 0 {
		w.countDirect(ev.EndpointNum)
		w.places.Give(tenant, ev.EndpointNum)
		if w.starved {
			w.lookAgain()
		}
	}
}

// countDirect counts that a task of an endpoint that was handed over has ended.
func (w *Tasks) countDirect(endpointNum int64) {
	if w.direct[endpointNum]--; w.direct[endpointNum] == 0 {
		delete(w.direct, endpointNum)
	}
}

// beginHanded begins what is handed over until stop is closed and nothing of it is left.
func (w *Tasks) beginHanded(working context.Context, stop <-chan struct{}) {
	for open := true; open; {
		select {
		case <-w.handed.Came:
		case <-stop:
			open = false
		}
		for _, e := range w.handed.Take() {
			fair.Begin(&w.working, func() { w.work(working, e) })
		}
	}
}
