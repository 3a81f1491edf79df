package web

import (
	"cmp"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/metrics"
)

func (a *app) registerMetrics() {
	a.page("GET /endpoints/{endpoint}/metrics", a.showMetrics)
	a.part("GET /endpoints/{endpoint}/metrics/figures", ofEndpoint(a, a.figuresOf, metrics.Figures))
}

func (a *app) showMetrics(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	m := metrics.Model{Asked: window(r)}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Metrics, fresh.Script); err != nil {
		return err
	}
	status := http.StatusOK
	m.Part, err = a.figuresOf(r, v, e)
	if faults := faultsOf(err); faults != nil {
		status, m.Fault = http.StatusUnprocessableEntity, "The "+faults[0].Field+" "+faults[0].Message+"."
	} else if err != nil {
		return err
	}
	return render(w, r, status, metrics.Page(m))
}

// window is the window that is asked for.
func window(r *http.Request) string {
	return cmp.Or(r.URL.Query().Get("window"), metrics.DefaultWindow)
}

func (a *app) figuresOf(r *http.Request, v visitor, e hookglass.Endpoint) (p metrics.Part, err error) {
	asked, step := window(r), r.URL.Query().Get("step")
	p.Mail = e.Kind == hookglass.KindEmail
	p.Self = "/endpoints/" + string(e.ID) + "/metrics/figures?window=" + escape(asked)
	if step != "" {
		p.Self += "&step=" + escape(step)
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		f, err := view.WindowFigures(string(e.ID), asked, step)
		p.Metrics = api.FromFigures(f)
		return err
	})
	return p, err
}
