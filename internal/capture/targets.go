package capture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/provider"
	"hookglass/internal/store"
)

// target is what is known of one reference to an endpoint.
type target struct {
	missing  bool // the endpoint does not exist
	endpoint hookglass.Endpoint
	configs  []provider.Config
	work     store.Work  // the work for each event, conditions aside
	choosers []chooser   // targets with conditions
	keyers   []keyer     // targets that get a webhook only once
	script   *script     // nil: none
	mail     *mailScript // the script of an email endpoint; nil: none
	rules    []rule
	underWay *atomic.Int64 // arrivals in progress, shared by all references to the endpoint
	heard    uint64        // the announcement count when it was read
	until    time.Time
}

const (
	// targetLife bounds how stale an endpoint can be if an announcement of another node is lost.
	targetLife = 2 * time.Second
	// maxTargets bounds the entries in memory, including those of unknown references.
	maxTargets = 10_000
)

// targets caches endpoints by reference, so that an arrival needs no query. A look-up sees all earlier changes of this
// process.
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

// mailbox returns the reference to the endpoint with a local part. Other references contain no at sign.
func mailbox(localPart string) string { return localPart + "@" }

// find returns the endpoint of a reference. It answers not_found.
func (ts *targets) find(ctx context.Context, ref string) (*target, error) {
	localPart, byAddress := strings.CutSuffix(ref, "@")
	if byAddress && !hookglass.ValidLocalPart(localPart) || !byAddress && !hookglass.IsEndpointID(ref) && !hookglass.ValidCustomID(ref) {
		return nil, hookglass.NotFound("endpoint") // not cached: it may be long
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
		case known == nil || known.missing || errors.Is(err, errSecrets): // it may be made by now, its secrets replaced
			return nil, err
		}
		// Otherwise the storage is in trouble: the cached entry serves until it recovers.
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
		targets, err := v.TargetChoices(t.endpoint.Num)
		if err != nil {
			return err
		}
		t.work.Forward, t.choosers, t.keyers = len(targets) > 0, choosers(targets), keyers(targets)
		acts, err := v.HasActions(t.endpoint.Num)
		if acts {
			t.work.Tasks = append(t.work.Tasks, store.TaskActions)
		}
		if t.endpoint.SchemaTracking {
			t.work.Tasks = append(t.work.Tasks, store.TaskSchema)
		}
		t.script, t.mail, t.rules = readScript(&t.endpoint), readMailScript(&t.endpoint), readRules(t.endpoint.ResponseRules)
		return err
	})
	if hookglass.Is(err, hookglass.CodeNotFound) {
		t.missing, err = true, nil
	}
	return t, err
}

// errSecrets marks the errors of unverifiable; no error of the storage has it.
var errSecrets = errors.New("secrets cannot be read")

// unverifiable turns the failure to open an endpoint's secrets into unavailable: this node may not yet have the key
// with which another one sealed them, and the sender should retry.
func unverifiable(err error) error {
	if !hookglass.Is(err, hookglass.CodeInternal) {
		return err
	}
	return &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "The endpoint's secrets cannot be read now. Try again shortly.", RetryAfter: 5 * time.Second, Err: fmt.Errorf("%w: %w", errSecrets, err)}
}

func (ts *targets) keep(ref string, t *target) *target {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.known) >= maxTargets {
		clear(ts.known)
		maps.DeleteFunc(ts.underWay, func(_ int64, n *atomic.Int64) bool { return n.Load() == 0 })
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
