package web

import (
	"net/http"

	"hookglass"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/setup"
)

func (a *app) registerSetup() {
	a.page("GET /setup", a.showSetup)
}

// mcpPath is where the interface for agents is (spec: decisions, section 2).
const mcpPath = "/mcp"

func (a *app) showSetup(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	m := setup.Model{URL: a.Addresses.PublicURL, MCP: a.Addresses.PublicURL + mcpPath}
	if m.Frame, err = a.globalFrame(r.Context(), v, layout.Setup, "Setup"); err != nil {
		return err
	}
	for _, e := range m.Frame.Endpoints {
		if e.Kind == hookglass.KindWebhook {
			m.Endpoint, m.Webhook = e, a.address(e)
			break
		}
	}
	return render(w, r, http.StatusOK, setup.Page(m))
}
