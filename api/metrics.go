package api

import (
	"cmp"
	"slices"

	"hookglass"
)

// Metrics are figures of an endpoint over a window. They include events that were deleted since.
type Metrics struct {
	EndpointID  string           `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Window      string           `json:"window" example:"24h"`
	Step        string           `json:"step" example:"1h"`
	From        Time             `json:"from" doc:"Where the first step begins." example:"2026-11-19T11:00:00.000000Z"`
	To          Time             `json:"to" doc:"Where the last step ends; it goes on." example:"2026-11-20T11:00:00.000000Z"`
	Total       int64            `json:"total" doc:"Events received, those that are ignored included." example:"1200"`
	Bytes       int64            `json:"bytes" example:"524288"`
	Ignored     int64            `json:"ignored" doc:"Of them, those that are ignored." example:"12"`
	Series      []MetricsPoint   `json:"series" doc:"Every step of the window, the oldest first."`
	ByType      map[string]int64 `json:"by_type" doc:"Events of type webhook and email."`
	ByProvider  map[string]int64 `json:"by_provider" doc:"By detected provider."`
	ByEventType map[string]int64 `json:"by_event_type" doc:"By the provider's event type, where it is known; what there is no room for is (other)."`
	ByStatus    map[string]int64 `json:"by_status" doc:"By the status that the sender was given."`
	BySignature map[string]int64 `json:"by_signature_status" doc:"By signature status."`
	Health      MetricsHealth    `json:"health" doc:"Figures that leave out ignored events."`
	Forwarding  MetricsDelivery  `json:"forwarding" doc:"Deliveries to forwarding targets and by forward steps."`
	Tunnel      MetricsDelivery  `json:"tunnel_deliveries" doc:"Deliveries that tunnel clients reported."`
	Actions     MetricsActions   `json:"actions" doc:"Totals of the actions' runs that ended in the window, by whole hours."`
}

// MetricsPoint is one step of a window.
type MetricsPoint struct {
	Time             Time  `json:"time" doc:"Where the step begins." example:"2026-11-20T10:00:00.000000Z"`
	Count            int64 `json:"count" example:"50"`
	Bytes            int64 `json:"bytes" example:"21845"`
	Ignored          int64 `json:"ignored" example:"1"`
	SignatureFailed  int64 `json:"signature_failed" doc:"Without ignored events." example:"0"`
	Deliveries       int64 `json:"deliveries" doc:"That ended, without ignored events." example:"49"`
	DeliveriesFailed int64 `json:"deliveries_failed" example:"1"`
}

// MetricsHealth are figures that leave out ignored events.
type MetricsHealth struct {
	Events           int64    `json:"events" example:"1188"`
	SignatureFailed  int64    `json:"signature_failed" example:"3"`
	Deliveries       int64    `json:"deliveries" doc:"Forwarded or through the tunnel, that ended." example:"1180"`
	DeliveriesFailed int64    `json:"deliveries_failed" example:"4"`
	SuccessRate      *float64 `json:"success_rate" doc:"Of the deliveries that ended, 0 to 1; null when there are none." example:"0.9966"`
}

// MetricsDelivery are figures of deliveries, without those of ignored events.
type MetricsDelivery struct {
	Attempts  int64    `json:"attempts" example:"1190"`
	Delivered int64    `json:"delivered" example:"1176"`
	Failed    int64    `json:"failed" example:"4"`
	Bad       int64    `json:"error_responses" doc:"Deliveries with an attempt that failed or was answered with 400 or more." example:"9"`
	P50MS     *float64 `json:"p50_ms" doc:"Half of the attempts took no longer; right to 3 %. null when there are none." example:"41.8"`
	P95MS     *float64 `json:"p95_ms" example:"120.4"`
	P99MS     *float64 `json:"p99_ms" example:"310.9"`
}

// MetricsActions are totals of actions (spec, Actions rule 8).
type MetricsActions struct {
	Runs            int64                       `json:"runs_total" example:"300"`
	RunsByStatus    map[string]int64            `json:"runs_by_status" doc:"completed, failed, stopped."`
	Steps           int64                       `json:"steps_total" example:"900"`
	StepsByStatus   map[string]int64            `json:"steps_by_status" doc:"completed, failed, skipped, stopped."`
	StepsByType     map[string]int64            `json:"steps_by_type" doc:"forward, notify, tag, ignore, transform, http_request."`
	StepsByTypes    map[string]map[string]int64 `json:"steps_by_type_and_status"`
	FailuresByCode  map[string]int64            `json:"failures_by_code"`
	ConditionFalse  int64                       `json:"condition_false_skips" example:"20"`
	AverageStepMS   float64                     `json:"average_step_duration_ms" example:"12.5"`
	TruncatedTraces int64                       `json:"truncated_traces" example:"0"`
}

// FromFigures converts the figures of a window.
func FromFigures(w hookglass.WindowFigures) Metrics {
	var all hookglass.Figures
	m := Metrics{EndpointID: string(w.Endpoint), Window: w.Length, Step: w.Step, From: Time{w.From}, To: Time{w.To}, Series: []MetricsPoint{}, Actions: fromActionTotals(w.Actions)}
	for start := w.From; start.Before(w.To); start = start.Add(w.Each) {
		p := MetricsPoint{Time: Time{start}}
		if f := w.Steps[start]; f != nil {
			all.Add(*f)
			p.Count, p.Bytes, p.Ignored, p.SignatureFailed = f.Events, f.Bytes, f.Ignored, f.Forged
			for _, d := range f.Deliveries {
				p.Deliveries += d.Delivered + d.Failed
				p.DeliveriesFailed += d.Failed
			}
		}
		m.Series = append(m.Series, p)
	}
	m.Total, m.Bytes, m.Ignored = all.Events, all.Bytes, all.Ignored
	m.ByType, m.ByProvider, m.ByEventType = counts(all.Types), counts(all.Providers), counts(all.EventTypes)
	m.ByStatus, m.BySignature = counts(all.Statuses), counts(all.Signatures)
	for _, status := range []hookglass.SignatureStatus{hookglass.SignatureVerified, hookglass.SignatureFailed, hookglass.SignatureUnchecked} {
		m.BySignature[string(status)] += 0 // show all statuses
	}
	var forwarded hookglass.Figures
	for _, source := range []hookglass.OutcomeSource{hookglass.OutcomeTarget, hookglass.OutcomeStep} {
		forwarded.Add(hookglass.Figures{Deliveries: map[string]hookglass.Deliveries{"": all.Deliveries[string(source)]}})
	}
	m.Forwarding = fromDeliveries(forwarded.Deliveries[""])
	m.Tunnel = fromDeliveries(all.Deliveries[string(hookglass.OutcomeTunnel)])
	m.Health = MetricsHealth{
		Events: all.Counted(), SignatureFailed: all.Forged,
		Deliveries:       m.Forwarding.Delivered + m.Forwarding.Failed + m.Tunnel.Delivered + m.Tunnel.Failed,
		DeliveriesFailed: m.Forwarding.Failed + m.Tunnel.Failed,
	}
	if n := m.Health.Deliveries; n > 0 {
		m.Health.SuccessRate = new(float64(n-m.Health.DeliveriesFailed) / float64(n))
	}
	return m
}

func fromDeliveries(d hookglass.Deliveries) MetricsDelivery {
	m := MetricsDelivery{Attempts: d.Attempts, Delivered: d.Delivered, Failed: d.Failed, Bad: d.Bad}
	for _, q := range []struct {
		share float64
		to    **float64
	}{{0.5, &m.P50MS}, {0.95, &m.P95MS}, {0.99, &m.P99MS}} {
		if t := d.Quantile(q.share); t > 0 {
			*q.to = new(float64(t.Microseconds()) / 1000)
		}
	}
	return m
}

func fromActionTotals(t hookglass.ActionTotals) MetricsActions {
	m := MetricsActions{
		RunsByStatus:  map[string]int64{string(hookglass.ActionRunCompleted): 0, string(hookglass.ActionRunFailed): 0, string(hookglass.ActionRunStopped): 0},
		StepsByStatus: map[string]int64{string(hookglass.StepCompleted): 0, string(hookglass.StepFailed): 0, string(hookglass.StepSkipped): 0, string(hookglass.StepStopped): 0},
		StepsByType:   map[string]int64{}, StepsByTypes: map[string]map[string]int64{}, FailuresByCode: counts(t.Failures),
		ConditionFalse: t.ConditionFalse, AverageStepMS: float64(t.AverageStep().Microseconds()) / 1000, TruncatedTraces: t.TruncatedTraces,
	}
	for status, n := range t.Runs {
		m.RunsByStatus[string(status)] += n
		m.Runs += n
	}
	for _, kind := range hookglass.StepTypes {
		m.StepsByType[string(kind)] = 0
	}
	for kind, statuses := range t.Steps {
		m.StepsByTypes[string(kind)] = map[string]int64{}
		for status, n := range statuses {
			m.StepsByStatus[string(status)] += n
			m.StepsByType[string(kind)] += n
			m.StepsByTypes[string(kind)][string(status)] += n
			m.Steps += n
		}
	}
	return m
}

// shownNames bounds the names of one kind in an answer, since senders choose some of them.
const shownNames = 200

// counts returns the most frequent counts, and the others as one.
func counts(all map[string]int64) map[string]int64 {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
	shown := make(map[string]int64, len(names))
	for i, name := range names {
		if i >= shownNames {
			name = hookglass.OtherName
		}
		shown[name] += all[names[i]]
	}
	return shown
}
