package capture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/provider"
	"hookglass/internal/store"
)

// target is what is known of one reference.
type target struct {
	missing  bool // there is no such endpoint
	endpoint hookglass.Endpoint
	configs  []provider.Config
	work     store.Work // what follows each event, but for conditions
	choosers []chooser  // targets to which not all go
	script   *script    // nil: none
	rules    []rule
	underWay *atomic.Int64 // arrivals, shared by all references to the endpoint
	heard    uint64        // announcements when it was read
	until    time.Time
}

const (
	// targetLife bounds how stale an endpoint may be where an announcement of another node was lost.
	targetLife = 2 * time.Second
	// maxTargets bounds the memory of what is known, unknown references included.
	maxTargets = 10_000
)

// targets remembers endpoints by reference, so that an arrival costs no query. What this process changes is seen by
// the next look-up.
type targets struct {
	db        *store.DB
	verifiers Verifiers
	changed   *store.Subscription

	mu       sync.RWMutex
	known    map[string]*target
	underWay map[int64]*atomic.Int64
}

func newTargets(db *store.DB, verifiers Verifiers) *targets {
	return &targets{
		db: db, verifiers: verifiers, changed: db.Listen(store.TopicEndpoints),
		known: make(map[string]*target), underWay: make(map[int64]*atomic.Int64),
	}
}

// mailbox is the reference to the endpoint with a local part. No other reference has an at sign.
func mailbox(localPart string) string { return localPart + "@" }

// find returns what a reference means, not_found where it means nothing.
func (ts *targets) find(ctx context.Context, ref string) (*target, error) {
	localPart, byAddress := strings.CutSuffix(ref, "@")
	if byAddress && !hookglass.ValidLocalPart(localPart) || !byAddress && !hookglass.IsEndpointID(ref) && !hookglass.ValidCustomID(ref) {
		return nil, hookglass.NotFound("endpoint") // and is not remembered: it may be long
	}
	now, heard := time.Now(), ts.changed.Heard()
	ts.mu.RLock()
	known := ts.known[ref]
	ts.mu.RUnlock()
	if known == nil || known.heard != heard || !now.Before(known.until) {
		fresh, err := ts.read(ctx, ref)
		switch {
		case err == nil:
			fresh.heard, fresh.until = heard, now.Add(targetLife)
			known = ts.keep(ref, fresh)
		case known == nil || errors.Is(err, errSecrets): // what was known would judge by secrets that were replaced
			return nil, err
		}
		// Otherwise the storage is in trouble: what was known serves until it recovers.
	}
	if known.missing {
		return nil, hookglass.NotFound("endpoint")
	}
	return known, nil
}

func (ts *targets) read(ctx context.Context, ref string) (*target, error) {
	t := new(target)
	err := ts.db.Ahead(ctx, func(v *store.View) (err error) {
		if localPart, ok := strings.CutSuffix(ref, "@"); ok {
			t.endpoint, err = v.EndpointByAddress(localPart)
		} else {
			t.endpoint, err = v.Endpoint(ref)
		}
		if err != nil {
			return err
		}
		if t.configs, err = ts.verifiers.Verifiers(v, t.endpoint.Num); err != nil {
			return unverifiable(err)
		}
		targets, err := v.TargetConditions(t.endpoint.Num)
		if err != nil {
			return err
		}
		t.work.Forward, t.choosers = len(targets) > 0, choosers(targets)
		acts, err := v.HasActions(t.endpoint.Num)
		if acts {
			t.work.Tasks = append(t.work.Tasks, store.TaskActions)
		}
		if t.endpoint.SchemaTracking {
			t.work.Tasks = append(t.work.Tasks, store.TaskSchema)
		}
		t.script, t.rules = readScript(&t.endpoint), readRules(t.endpoint.ResponseRules)
		return err
	})
	if hookglass.Is(err, hookglass.CodeNotFound) {
		t.missing, err = true, nil
	}
	return t, err
}

// errSecrets is in what unverifiable makes, and in no error of the storage.
var errSecrets = errors.New("secrets can not be read")

// unverifiable is told where an endpoint's secrets can not be read: this node may not have the key yet that another
// seals with, and the sender is to try again.
func unverifiable(err error) error {
	if !hookglass.Is(err, hookglass.CodeInternal) {
		return err
	}
	return &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "The endpoint's secrets can not be read now. Try again shortly.", RetryAfter: 5 * time.Second, Err: fmt.Errorf("%w: %w", errSecrets, err)}
}

func (ts *targets) keep(ref string, t *target) *target {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.known) >= maxTargets {
		clear(ts.known)
		for num, n := range ts.underWay {
			if n.Load() == 0 {
				delete(ts.underWay, num)
			}
		}
	}
	if !t.missing {
		num := t.endpoint.Num
		if ts.underWay[num] == nil {
			ts.underWay[num] = new(atomic.Int64)
		}
		t.underWay = ts.underWay[num]
	}
	ts.known[strings.Clone(ref)] = t
	return t
}
