package action

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

const (
	// planLife bounds how stale an endpoint's actions may be where an announcement of another node was lost.
	planLife = 2 * time.Second
	// maxPlans bounds the number of plans in memory.
	maxPlans = 10_000
)

// plan is what the runs on an endpoint's events need, whatever the event.
type plan struct {
	endpoint hookglass.Endpoint
	rights   hookglass.Entitlements
	actions  []*program // enabled, by position
	heard    uint64     // the count of announcements when it was read
	until    time.Time
}

// plans caches plans by endpoint, so that a run of local steps costs no query. The next look-up sees what this process
// changed.
type plans struct {
	db      *store.DB
	log     *slog.Logger
	changed *store.Subscription

	mu    sync.Mutex
	known map[int64]*plan
}

func newPlans(db *store.DB, log *slog.Logger) *plans {
	return &plans{db: db, log: log, changed: db.Listen(store.TopicEndpoints), known: make(map[int64]*plan)}
}

// find answers not_found for an endpoint that is gone.
func (ps *plans) find(ctx context.Context, endpointNum int64) (*plan, error) {
	now, heard := time.Now(), ps.changed.Heard()
	ps.mu.Lock()
	known := ps.known[endpointNum]
	ps.mu.Unlock()
	if known != nil && known.heard == heard && now.Before(known.until) {
		return known, nil
	}
	fresh := &plan{heard: heard, until: now.Add(planLife)}
	var actions []hookglass.Action
	err := ps.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		if fresh.endpoint, fresh.rights, err = rightsAt(v, endpointNum); err != nil {
			return err
		}
		actions, err = v.EnabledActions(endpointNum)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, a := range actions {
		p, err := compile(a)
		if err != nil {
			ps.log.Error("an action cannot be run", "error", err)
			continue
		}
		fresh.actions = append(fresh.actions, p)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.known) >= maxPlans {
		clear(ps.known)
	}
	ps.known[endpointNum] = fresh
	return fresh, nil
}

// rightsAt reads an endpoint and what its account is entitled to.
func rightsAt(v *store.View, endpointNum int64) (e hookglass.Endpoint, rights hookglass.Entitlements, err error) {
	if e, err = v.EndpointByNum(endpointNum); err != nil {
		return e, rights, err
	}
	rights, err = v.Entitlements(e)
	return e, rights, err
}
