package capture

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// outageGrain is how often a continuing outage is logged. A line per arrival would help nobody, and fill the disk that
// may be the problem.
const outageGrain = 10 * time.Second

// outage logs that the storage refuses arrivals: when that begins, at intervals while it continues, and when it ends.
type outage struct {
	log  *slog.Logger
	open atomic.Bool

	mu      sync.Mutex
	latest  time.Time // last refusal
	told    time.Time // last log message
	refused int       // since told
	noRoom  time.Time // last refusal for lack of room
	reason  error     // of noRoom
}

// roomGrain is how long one lack of room counts as lasting: as long as the sender was told to wait. If nothing arrives
// afterwards, because we said so, the next arrival shows how things are.
const roomGrain = 5 * time.Second

// room returns why there is no room, or nil if there is. It complements the health check, whose small row may fit where
// arrivals do not.
func (o *outage) room() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason == nil || time.Since(o.noRoom) >= roomGrain {
		return nil
	}
	return o.reason
}

// refusal records the error of an arrival that was not stored.
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
		o.log.Warn("webhooks are refused: they cannot be stored now", "refused", o.refused, "error", err)
		o.told, o.refused = o.latest, 0
	}
}

// stored records that an arrival was stored. It costs next to nothing without an outage.
func (o *outage) stored() {
	if !o.open.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open.Load() && time.Since(o.latest) >= time.Second { // small arrivals may succeed where large ones fail
		o.open.Store(false)
		o.log.Info("webhooks are stored again", "refused", o.refused)
		o.told, o.refused, o.reason = time.Time{}, 0, nil
	}
}
