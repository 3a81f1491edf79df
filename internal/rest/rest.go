// Package rest is the REST API: one table of operations, one file a resource, and the OpenAPI description and
// the readable pages that are made of that table.
//
// An operation reads through store.View or calls one method of a capability, and answers with structs of
// package api. What all operations share stands in the table's registration: who may call, how often, how a
// body is read, and how an error is answered. A new operation cannot forget any of it.
//
// The framework behind it (huma) parses parameters and derives schemas. Bodies are read by this package,
// because they must be taken strictly: exact names, no duplicates, nothing unknown, numbers as they are.
package rest

import (
	"context"
	"net/http"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/capture"
	"hookglass/internal/declare"
	"hookglass/internal/diagnosis"
	"hookglass/internal/drift"
	"hookglass/internal/endpoint"
	"hookglass/internal/flow"
	"hookglass/internal/httpd"
	"hookglass/internal/release"
	"hookglass/internal/replay"
	"hookglass/internal/retries"
	"hookglass/internal/share"
	"hookglass/internal/store"
	"hookglass/internal/tunnel"
)

// Deps are what the API stands on.
type Deps struct {
	DB           *store.DB
	Accounts     *account.Service
	Endpoints    *endpoint.Service
	Captures     *capture.Service
	Replays      *replay.Service
	Alerts       *alert.Service
	Actions      *action.Service
	Tunnels      *tunnel.Service
	Flows        *flow.Service
	Diagnoses    *diagnosis.Service
	Retries      *retries.Service
	Drift        *drift.Service
	Shares       *share.Service
	Releases     *release.Service
	Declarations *declare.Service
	Addresses    api.Addresses
	// TemporaryEndpoints is whether anyone may make one.
	TemporaryEndpoints bool
	// Draining is closed when the server stops: streams end then.
	Draining <-chan struct{}
}

// Base is the path of {base_url}.
const Base = "/api/v1"

// service holds what operations use.
type service struct {
	Deps
	heartbeat time.Duration // between signs of life on a stream
}

// New returns the handler of everything below [Base] and of /docs. It stands behind [httpd.Stack.Wrap].
func New(deps Deps) http.Handler { return build(deps, heartbeat) }

const (
	heartbeat = 15 * time.Second // between signs of life on a stream; proxies end what is silent for a minute
	poll      = 3 * time.Second  // between looks where no announcement came; a revoked token is refused within 5 s
)

func build(deps Deps, beat time.Duration) http.Handler {
	s := &service{Deps: deps, heartbeat: beat}
	mux := httpd.NewMux()
	t := newTable(mux, deps)
	s.account(t)
	s.endpoints(t)
	s.declarations(t)
	s.requests(t)
	s.marks(t)
	s.signatures(t)
	s.forwarding(t)
	s.replays(t)
	s.releases(t)
	s.replayCases(t)
	s.actions(t)
	s.actionSecrets(t)
	s.export(t)
	s.shareLinks(t)
	s.shareBundles(t)
	s.stream(t)
	s.activity(t)
	s.tags(t)
	s.channels(t)
	s.alerts(t)
	s.metrics(t)
	s.ledger(t)
	s.flows(t)
	s.inspections(t)
	s.retryProfile(t)
	s.schemas(t)
	s.tunnel(t)
	t.publish(mux)
	return mux
}

// view opens a view for the caller.
func (s *service) view(ctx context.Context, fn func(*store.View) error) error {
	return s.DB.View(ctx, asker(ctx), fn)
}

// single answers the one thing that read reads from a view.
func single[T, U any](ctx context.Context, s *service, read func(*store.View) (T, error), write func(T) U) (out api.One[U], err error) {
	found, err := store.Read(ctx, s.DB, asker(ctx), read)
	if err == nil {
		out.Data = write(found)
	}
	return out, err
}

// asker is the caller.
func asker(ctx context.Context) hookglass.Principal { return httpd.From(ctx).Who }
