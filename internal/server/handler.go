package server

import (
	"net/http"
	"strings"

	"hookglass/api"
	"hookglass/internal/cable"
	"hookglass/internal/httpd"
	"hookglass/internal/mcp"
	"hookglass/internal/rest"
	"hookglass/internal/web"
)

// handler combines the edges. It is behind the gate: the database is open.
func (s *Server) handler() http.Handler {
	addresses := api.Addresses{PublicURL: s.URL(), MailDomain: s.cfg.MailDomain}
	temporary := s.cfg.TemporaryEndpoints == "on"
	machines := rest.New(rest.Deps{
		DB: s.db, Accounts: s.accounts, Endpoints: s.endpoints, Captures: s.captures, Replays: s.replays, Alerts: s.alerts, Actions: s.actions, Tunnels: s.tunnels, Flows: s.flows, Diagnoses: s.diagnoses, Addresses: addresses,
		Declarations: s.declares, Retries: s.retries, Drift: s.drift, Shares: s.shares, Releases: s.releases, TemporaryEndpoints: temporary, Draining: s.draining,
	})
	people := web.New(web.Deps{
		DB: s.db, Accounts: s.accounts, Endpoints: s.endpoints, Captures: s.captures, Replays: s.replays, Actions: s.actions, Alerts: s.alerts, Tunnels: s.tunnels, Retries: s.retries, Drift: s.drift, Flows: s.flows, Addresses: addresses, SMTP: web.SMTP{Address: s.smtpAddr(), SignIn: s.cfg.SMTPAuth == smtpAuthInbox, TLS: s.cfg.certificate != nil},
		Shares: s.shares, Releases: s.releases, Retention: s.cfg.Retention, Temporary: temporary, Signup: s.cfg.Signup == "open", Draining: s.draining,
	})
	socket := cable.New(cable.Deps{Tunnels: s.tunnels, PublicURL: s.URL(), Log: s.log.With("part", "cable")})
	agents := mcp.New(mcp.Deps{
		DB: s.db, Accounts: s.accounts, Endpoints: s.endpoints, Captures: s.captures, Replays: s.replays, Alerts: s.alerts, Actions: s.actions, Diagnoses: s.diagnoses,
		Addresses: addresses, Draining: s.draining, Log: s.log.With("part", "mcp"),
	})
	stack := httpd.New(httpd.Config{Log: s.log.With("part", "http"), Proxies: httpd.Proxies(s.cfg.proxies)})
	return stack.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Paths that the web app's mux would redirect go to the API's, which does not: nobody may redirect a webhook.
		if description := r.URL.Path; description == "/openapi.json" || description == "/openapi.yaml" {
			r = r.Clone(r.Context()) // the description's URL without a version (spec: decisions, section 13)
			r.URL.Path = rest.Base + description
		}
		if cable.Claims(r) {
			socket.ServeHTTP(w, r)
		} else if r.URL.Path == mcp.Path {
			agents.ServeHTTP(w, r)
		} else if forMachines(r.URL.Path) || !httpd.Clean(r.URL.EscapedPath()) {
			machines.ServeHTTP(w, r)
		} else {
			people.ServeHTTP(w, r)
		}
	}))
}

// forMachines reports whether a path belongs to the API, whose errors are JSON, rather than to the web app.
func forMachines(path string) bool {
	for _, part := range []string{"/api", "/docs", "/hooks"} {
		if rest, ok := strings.CutPrefix(path, part); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}
