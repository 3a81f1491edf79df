package capture

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
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
		o.told, o.refused = time.Time{}, 0
	}
}
