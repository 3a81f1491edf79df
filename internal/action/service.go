package action

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/delivery"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// Sealer encrypts secrets and checkpoints. where names the row.
type Sealer interface {
	Seal(plaintext []byte, where string) ([]byte, error)
	Open(sealed []byte, where string) ([]byte, error)
}

// Config is what a Service is made of.
type Config struct {
	Client  delivery.Client
	Sealer  Sealer
	Proxied bool // webhooks come through proxies of this installation
	Hold    Hold // nil: there is always room
	Log     *slog.Logger
	Delay   delivery.Delayed // of forward retries; nil: evenly distributed ("full jitter")
}

// Hold reads an event once there is memory for that many times its size, and keeps it reserved until ctx is done. The
// capture capability provides it. It answers unavailable.
type Hold func(ctx context.Context, who hookglass.Principal, times int64, read func(*store.View) (*hookglass.Event, error)) (*hookglass.Event, error)

// Service is the capability.
type Service struct {
	Config
	db     *store.DB
	plans  *plans
	vaults *vaults
	saver  *saver
	bodies *fair.Bodies
	reruns *fair.Workers // that are under way here

	backtestSearch time.Duration // how long a backtest searches for events; 0: as any search. Set in tests.
	backtestTime   time.Duration // backtestFor; set in tests
	deadline       time.Duration // hookglass.ActionDeadline; set in tests

	orphans int64 // the sweep has checked the runs up to here

	stopping atomic.Bool // the node stops: requests under way end, no new one is sent
}

// New returns the service. Without [Service.Run] nobody finishes what a dead process left behind.
func New(db *store.DB, cfg Config) *Service {
	if cfg.Delay == nil {
		cfg.Delay = rand.N[time.Duration]
	}
	if cfg.Hold == nil {
		cfg.Hold = func(ctx context.Context, who hookglass.Principal, _ int64, read func(*store.View) (*hookglass.Event, error)) (*hookglass.Event, error) {
			return store.Read(ctx, db, who, read)
		}
	}
	return &Service{
		Config: cfg, db: db, plans: newPlans(db, cfg.Log), vaults: newVaults(db, cfg.Sealer, cfg.Log), saver: newSaver(db), bodies: fair.NewBodies(largeBytes),
		reruns: fair.NewWorkers(rerunsAtOnce, rerunsOfTenant), backtestTime: backtestFor, deadline: hookglass.ActionDeadline,
	}
}

const (
	sweepEvery = 5 * time.Second // runs that nobody holds
	sweepRuns  = 100
	// orphanRuns are looked at in each sweep, for those that outlived their event: a million takes a bit over an hour.
	orphanRuns = 1000
)

// Run sweeps runs that nobody holds, until ctx ends. From then on runs under way stop before their next request, which
// would be cut short: they resume on another node or after the next start.
func (s *Service) Run(ctx context.Context) error {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-sweep.C:
			if err := s.sweep(ctx); err != nil && ctx.Err() == nil && !hookglass.Is(err, hookglass.CodeUnavailable) {
				s.Log.Warn("runs of actions that nobody holds could not be taken", "error", err)
			}
		case <-ctx.Done():
			s.stopping.Store(true)
			return nil
		}
	}
}
