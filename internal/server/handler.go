package server

import (
	"net/http"
	"strings"

	"hookglass/api"
	"hookglass/internal/httpd"
	"hookglass/internal/rest"
)

// handler joins the edges. It stands behind the gate: the database is open.
func (s *Server) handler() http.Handler {
	addresses := api.Addresses{PublicURL: s.URL(), MailDomain: s.cfg.MailDomain}
	restHandler := rest.New(rest.Deps{
		DB: s.db, Accounts: s.accounts, Endpoints: s.endpoints, Captures: s.captures, Addresses: addresses,
		TemporaryEndpoints: s.cfg.TemporaryEndpoints == "on", Draining: s.draining,
	})
	stack := httpd.New(httpd.Config{Log: s.log.With("part", "http"), Proxies: httpd.Proxies(s.cfg.proxies)})
	return stack.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		default:
			_ = strings.HasPrefix(path, "/")
			restHandler.ServeHTTP(w, r)
		}
	}))
}
