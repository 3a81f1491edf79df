package job

import (
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// A task of an event that this node captured starts at once, without polling the table: the capture asks for a place
// before it stores the event, and the task is then leased to this node from the start (see [store.Taker]).

// taskDesk receives tasks from captures.
type taskDesk struct{ w *Tasks }

// Offer takes a place.
func (d taskDesk) Offer(account int64, ev *hookglass.Event) (until time.Time) {
	w := d.w
	if ev.Size > loadedBody {
		return until
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.direct.Offer(w.places, fair.Tenant(account, ev.EndpointNum), ev.EndpointNum, ev.EndpointNum) {
		return until
	}
	return w.db.Now().Add(taskLease)
}

// Take starts the task, or returns its place if there is none.
func (d taskDesk) Take(account int64, ev *hookglass.Event, tasks []store.Task) {
	w, tenant := d.w, fair.Tenant(account, ev.EndpointNum)
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.direct.Kept(ev.EndpointNum, len(tasks))
	for _, t := range tasks { // one of a kind
		w.held[t.Num] = struct{}{}
		t.Event = ev
		w.handed.Put(endedTask{Task: t, tenant: tenant, direct: true})
	}
	if len(tasks) == 0 {
		w.places.Give(tenant, ev.EndpointNum)
		if w.starved {
			w.lookAgain()
		}
	}
}
