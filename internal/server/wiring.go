package server

import (
	"context"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/capture"
	"hookglass/internal/declare"
	"hookglass/internal/delivery"
	"hookglass/internal/diagnosis"
	"hookglass/internal/drift"
	"hookglass/internal/endpoint"
	"hookglass/internal/flow"
	"hookglass/internal/httpd"
	"hookglass/internal/job"
	"hookglass/internal/outbound"
	"hookglass/internal/release"
	"hookglass/internal/replay"
	"hookglass/internal/retries"
	"hookglass/internal/seal"
	"hookglass/internal/share"
	"hookglass/internal/store"
	"hookglass/internal/tunnel"
)

// build creates the parts of the service.
func (s *Server) build(keys *seal.Keys, out *outbound.Client) {
	db := s.db
	s.accounts = account.New(db, httpd.Knowing(s.log).With("part", "account"))
	s.endpoints = endpoint.New(db, keys).Through(out)
	mailer := s.cfg.mailer()
	s.alerts = alert.New(db, alert.Config{Client: out, Sealer: keys, Mailer: mailer, Log: s.log.With("part", "alert")})
	releases := release.Config{Recipients: s.cfg.releaseTo, Stopping: s.draining, Log: s.log.With("part", "release")}
	if mailer != nil {
		releases.Relay = mailer
	}
	s.releases = release.New(db, releases)
	s.tunnels = tunnel.New(db, tunnel.Config{
		Mail: delivery.MailJSON, HoldAll: func(ctx context.Context, who hookglass.Principal, times int64, read func(*store.View) ([]*hookglass.Event, error)) ([]*hookglass.Event, error) {
			return s.captures.HoldAll(ctx, who, times, read) // captures depend on the tunnel and are created later
		},
		Retention: s.cfg.Retention, Draining: s.draining, Log: s.log.With("part", "tunnel"),
	})
	s.captures = capture.New(db, capture.Config{
		Retention: s.cfg.Retention, Verifiers: s.endpoints, Tunnel: s.tunnels, MailDomain: s.cfg.MailDomain, Resolver: s.cfg.mailDNS,
		Keys: out, PublicURL: s.public, MaxBody: s.cfg.MaxBodyBytes,
	}, s.log.With("part", "capture"))
	s.replays = replay.New(db, replay.Config{
		Client: out, Verifiers: s.endpoints, Sealer: keys, Tunnel: s.tunnels, Reads: s.captures, Proxied: s.proxied(), Log: s.log.With("part", "replay"), Retention: s.cfg.Retention,
	})
	s.shares = share.New(db, s.endpoints, s.captures)
	s.actions = action.New(db, action.Config{Client: out, Sealer: keys, Proxied: s.proxied(), Hold: s.captures.Hold, Log: s.log.With("part", "action")})
	s.diagnoses = diagnosis.New(db, s.captures.Judge, s.captures.HoldAll)
	s.declares = declare.New(db, s.endpoints, s.actions, s.alerts)
	s.retries = retries.New(db)
	s.drift = drift.New(db)
	s.flows = flow.New(db, s.log.With("part", "flow"))
}

// work starts the background work.
func (s *Server) work(background func(string, func(context.Context) error), out *outbound.Client) error {
	db := s.db
	workers, err := job.New(db, job.Capabilities{
		Captures: s.captures, Accounts: s.accounts, Alerts: s.alerts, Tags: s.endpoints, Replays: s.replays, Shares: s.shares, Actions: s.actions,
	}, s.log)
	if err != nil {
		return err
	}
	background("account", s.accounts.Run)
	background("alert", s.alerts.Run)
	background("capture", s.captures.Run)
	background("ranges", s.captures.Tend)
	background("replay", s.replays.Run)
	background("flow", s.flows.Run)
	background("tunnel", s.tunnels.Run)
	background("forward", delivery.NewForwarder(db, delivery.ForwardConfig{
		Client: out, Proxied: s.proxied(), Headers: s.endpoints.TargetHeaders, Log: s.log.With("part", "forward"), Observe: s.metrics.forwarded, InLine: s.metrics.inLine,
		Skipped: s.metrics.duplicates.Inc,
	}).Run)
	background("signatures", job.NewTasks(db, job.TaskConfig{
		Kind: store.TaskSignature, Places: 8, PerTenant: 2, Work: s.captures.JudgeSignature, Log: s.log.With("part", "signatures"),
	}).Run)
	background("verdicts", job.NewTasks(db, job.TaskConfig{
		Kind: store.TaskVerdict, Places: 64, PerTenant: 32, Work: s.captures.Authenticate, Log: s.log.With("part", "mail"),
	}).Run)
	background("action", s.actions.Run)
	background("actions", job.NewTasks(db, job.TaskConfig{
		Kind: store.TaskActions, Places: 512, PerTenant: 256, Work: s.actions.Work, Log: s.log.With("part", "action"),
	}).Run)
	background("job", workers.Run)
	background("schemas", job.NewTasks(db, job.TaskConfig{
		Kind: store.TaskSchema, Places: 4, PerTenant: 2, Work: s.drift.Work, Log: s.log.With("part", "schemas"),
	}).Run)
	background("memory", returnMemory)
	return nil
}

// proxied reports whether requests come through proxies of this installation.
func (s *Server) proxied() bool { return len(s.cfg.proxies) > 0 }
