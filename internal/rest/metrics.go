package rest

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

type metricsQuery struct {
	InEndpoint
	Window string `query:"window" default:"24h" doc:"How far back: a number and m, h or d; 1m to 90d, a whole number of steps." example:"24h"`
	Step   string `query:"step" doc:"The length of a step: a number and m, h or d; at most 2,000 steps. Steps that are not whole hours divide the hour, and reach back 24 hours at most. Default is one that gives about 24." example:"1h"`
}

// Bounds of a window: figures by hours are kept longer than any retention that is usual, those by minutes for two days.
const (
	maxWindow       = 90 * 24 * time.Hour
	maxMinuteWindow = 24 * time.Hour
	maxSteps        = 2_000
)

func (s *service) metrics(t *table) {
	handle(t, operation{
		id: "get-endpoint-metrics", method: http.MethodGet, path: "/endpoints/{endpoint_id}/metrics", tag: "Metrics", summary: "Read figures of an endpoint",
		text: "What was received in the window, by time, provider, event type, status and signature status, also what was deleted since; deliveries and how long they took; totals of " +
			"actions. Steps begin at whole multiples of their length in UTC; the last one goes on. Ignored events count in the volume, and in no figure of health or of deliveries.",
		access: access{scope: hookglass.ScopeRead},
	}, s.endpointMetrics)
}

func (s *service) endpointMetrics(ctx context.Context, in *metricsQuery) (out api.One[api.Metrics], err error) {
	window, step, err := span(in.Window, in.Step)
	if err != nil {
		return out, err
	}
	to := time.Now().UTC().Truncate(step).Add(step)
	from := to.Add(-window)
	shown := in.Step
	if shown == "" {
		shown = spelled(step)
	}
	err = s.view(ctx, func(v *store.View) error {
		e, err := v.Endpoint(in.EndpointID)
		if err != nil {
			return err
		}
		steps, err := v.FiguresByStep(e.Num, from, to, step)
		if err != nil {
			return err
		}
		actions, err := v.ActionTotals(in.EndpointID, from, to.Add(-time.Second))
		out.Data = api.FromFigures(e, in.Window, shown, from, to, step, steps, actions)
		return err
	})
	return out, err
}

// span reads a window and its step.
func span(window, step string) (w, each time.Duration, err error) {
	w, err = length("window", window)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case w > maxWindow:
		return 0, 0, hookglass.Invalid("window", "may be 90d at most")
	case w > maxMinuteWindow && w%time.Hour != 0:
		return 0, 0, hookglass.Invalid("window", "must be whole hours beyond 24h")
	}
	if step == "" {
		return w, usualStep(w), nil
	}
	if each, err = length("step", step); err != nil {
		return 0, 0, err
	}
	switch {
	case each > w:
		return 0, 0, hookglass.Invalid("step", "may not be longer than the window")
	case w%each != 0:
		return 0, 0, hookglass.Invalid("step", "must divide the window")
	case w/each > maxSteps:
		return 0, 0, hookglass.Invalid("step", "is too short: a window has %d steps at most", maxSteps)
	case each%time.Hour != 0 && time.Hour%each != 0:
		return 0, 0, hookglass.Invalid("step", "must be whole hours, or divide the hour")
	case each%time.Hour != 0 && w > maxMinuteWindow:
		return 0, 0, hookglass.Invalid("step", "must be whole hours for a window of more than 24h")
	}
	return w, each, nil
}

// usualStep is the shortest step that divides a window into 30 or fewer.
func usualStep(w time.Duration) time.Duration {
	for _, minutes := range []time.Duration{1, 2, 3, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440} {
		each := minutes * time.Minute
		if w%each == 0 && w/each <= 30 && (each%time.Hour == 0 || w <= maxMinuteWindow) {
			return each
		}
	}
	switch {
	case w%(24*time.Hour) == 0:
		return 24 * time.Hour
	case w > maxMinuteWindow && w/time.Hour <= maxSteps:
		return time.Hour
	case w > maxMinuteWindow:
		return w
	}
	return time.Minute
}

// length reads a whole number of minutes, hours or days.
func length(field, text string) (time.Duration, error) {
	fault := hookglass.Invalid(field, "must be a number and m, h or d, such as 30m, 24h or 7d")
	if len(text) < 2 || len(text) > 6 {
		return 0, fault
	}
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	if err != nil || n == 0 || text[0] == '+' {
		return 0, fault
	}
	switch text[len(text)-1] {
	case 'm':
		return time.Duration(n) * time.Minute, nil
	case 'h':
		return time.Duration(n) * time.Hour, nil
	case 'd':
		return time.Duration(n) * 24 * time.Hour, nil
	}
	return 0, fault
}

func spelled(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	case d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	}
	return strconv.Itoa(int(d/time.Minute)) + "m"
}
