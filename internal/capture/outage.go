package capture

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// outageGrain is how often an outage is told of while it lasts. A line for each arrival would help nobody, and
// fill the disk that may be the trouble.
const outageGrain = 10 * time.Second

// outage tells the operator that the storage refuses arrivals: when that begins, now and then while it lasts, and
// when it is over.
type outage struct {
	log  *slog.Logger
	open atomic.Bool

	mu      sync.Mutex
	latest  time.Time // refusal
	told    time.Time
	refused int // since told
	noRoom  time.Time
	reason  error // of that
}

// roomGrain is how long after an arrival for which there was no room others are taken to find none: as long as its
// sender is told to wait. Where nothing is sent here meanwhile, because we said so, the next one shows how it is.
const roomGrain = 5 * time.Second

// room answers why there is none, nil where there is. What looks at the storage with a small row finds one where
// arrivals do not.
func (o *outage) room() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason == nil || time.Since(o.noRoom) >= roomGrain {
		return nil
	}
	return o.reason
}

// refusal notes what became of an arrival that was not stored.
func (o *outage) refusal(err error) {
	if !hookglass.Is(err, hookglass.CodeUnavailable) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open.Store(true)
	o.latest = time.Now()
	if store.NoRoom(err) {
		o.noRoom, o.reason = o.latest, err
	}
	o.refused++
	if o.latest.Sub(o.told) >= outageGrain {
		o.log.Warn("webhooks are refused: they can not be stored now", "refused", o.refused, "error", err)
		o.told, o.refused = o.latest, 0
	}
}

// stored notes that an arrival was stored. It costs next to nothing while there is no outage.
func (o *outage) stored() {
	if !o.open.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open.Load() && time.Since(o.latest) >= time.Second { // small arrivals may go where large ones do not
		o.open.Store(false)
		o.log.Info("webhooks are stored again", "refused", o.refused)
		o.told, o.refused, o.reason = time.Time{}, 0, nil
	}
}
