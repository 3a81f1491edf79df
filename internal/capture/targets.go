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
	reading  map[string]*reading
	underWay map[int64]*atomic.Int64
}

// reading is a look-up in the storage that is in progress, for all that want its result.
type reading struct {
	heard uint64 // the announcement count before it
	done  chan struct{}
	found *target // nil if it failed
}

func newTargets(db *store.DB, verifiers Verifiers) *targets {
	return &targets{
		db: db, verifiers: verifiers, changed: db.Listen(store.TopicEndpoints),
		known: make(map[string]*target), reading: make(map[string]*reading), underWay: make(map[int64]*atomic.Int64),
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
	heard := ts.changed.Heard()
	ts.mu.RLock()
	known := ts.known[ref]
	ts.mu.RUnlock()
	if !known.fresh(heard) {
		fresh, err := ts.refresh(ctx, ref, heard)
		switch {
		case err == nil:
			known = fresh
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

// fresh reports whether the entry needs not be read again. heard is the announcement count.
func (t *target) fresh(heard uint64) bool {
	return t != nil && t.heard >= heard && time.Now().Before(t.until)
}

// refresh reads a reference for all that look it up meanwhile. If each of them read it, the senders of a busy endpoint
// would wait for one another whenever it has aged, and on a slow storage find it aged again when they have read it.
func (ts *targets) refresh(ctx context.Context, ref string, heard uint64) (*target, error) {
	for {
		ts.mu.Lock()
		if known := ts.known[ref]; known.fresh(heard) {
			ts.mu.Unlock()
			return known, nil
		}
		r := ts.reading[ref]
		if r == nil || r.heard < heard {
			r = &reading{heard: heard, done: make(chan struct{})}
			ts.reading[ref] = r
			ts.mu.Unlock()
			return ts.readFor(ctx, ref, r)
		}
		ts.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return ts.read(ctx, ref) // says that the time is over
		}
		if r.found != nil {
			return r.found, nil
		} // else it failed, perhaps because only its caller's time was over
	}
}

func (ts *targets) readFor(ctx context.Context, ref string, r *reading) (*target, error) {
	defer func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		if ts.reading[ref] == r {
			delete(ts.reading, ref)
		}
		close(r.done)
	}()
	at := time.Now()
	fresh, err := ts.read(ctx, ref)
	if err != nil {
		return nil, err
	}
	fresh.heard, fresh.until = r.heard, at.Add(targetLife)
	r.found = ts.keep(ref, fresh)
	return r.found, nil
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
		if t.configs, err = ts.verifiers.Verifiers(v, string(t.endpoint.ID)); err != nil {
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
