package store

import (
	"slices"
	"strings"
	"time"

	"hookglass"
)

// Names of totals. After the slash stands a status, a type or a code, never text that people wrote.
const (
	totalRuns      = "run/"     // run/<status>
	totalSteps     = "step/"    // step/<type>/<status>
	totalFailures  = "failure/" // failure/<code>
	totalFalse     = "condition_false"
	totalTruncated = "truncated"
	totalTimed     = "timed_steps"
	totalTime      = "step_time" // microseconds
)

// ActionCount is an addition to the totals of an endpoint, in the hour of At.
type ActionCount struct {
	EndpointNum int64
	At          time.Time
	hookglass.ActionTotals
}

// CountActionRuns adds ended runs to the totals of their endpoints. It belongs in the transaction that stores the runs,
// so that each is counted exactly once. Call it before anything that locks counters.
func (tx *Tx) CountActionRuns(runs ...*hookglass.ActionRun) error {
	type of struct{ endpointNum, hour int64 }
	places := make(map[of]int)
	var counts []ActionCount
	for _, r := range runs {
		hour := of{r.EndpointNum, r.FinishedAt.Unix() / 3600}
		i, ok := places[hour]
		if !ok {
			i = len(counts)
			places[hour] = i
			counts = append(counts, ActionCount{EndpointNum: r.EndpointNum, At: r.FinishedAt})
		}
		counts[i].Add(r)
	}
	return tx.AddActionTotals(counts...)
}

// AddActionTotals adds to the totals of endpoints.
func (tx *Tx) AddActionTotals(counts ...ActionCount) error {
	in := input{columns: []inputColumn{{"endpoint", inputInteger}, {"hour", inputInteger}, {"name", inputText}, {"n", inputInteger}}}
	for _, c := range counts {
		named := namedTotals(c.ActionTotals)
		for _, name := range sortedNames(named) {
			in.rows = append(in.rows, []any{c.EndpointNum, c.At.Unix() / 3600, name, named[name]})
		}
	}
	// A fixed lock order, so that transactions do not deadlock.
	return tx.insert("action_totals", in, " WHERE true ORDER BY endpoint, hour, name ON CONFLICT (endpoint, hour, name) DO UPDATE SET n = action_totals.n + excluded.n")
}

func namedTotals(t hookglass.ActionTotals) map[string]int64 {
	named := map[string]int64{totalFalse: t.ConditionFalse, totalTruncated: t.TruncatedTraces, totalTimed: t.TimedSteps, totalTime: t.StepTime.Microseconds()}
	for status, n := range t.Runs {
		named[totalRuns+string(status)] = n
	}
	for kind, statuses := range t.Steps {
		for status, n := range statuses {
			named[totalSteps+string(kind)+"/"+string(status)] = n
		}
	}
	for code, n := range t.Failures {
		named[totalFailures+code] = n
	}
	return named
}

// WindowFigures returns the figures of an endpoint in a window that ends now, as [hookglass.ParseWindow] reads it and
// its step. It answers validation_failed and not_found.
func (v *View) WindowFigures(ref, window, step string) (f hookglass.WindowFigures, err error) {
	w, err := hookglass.ParseWindow(window, step, v.Now)
	if err != nil {
		return f, err
	}
	e, err := v.Endpoint(ref)
	if err != nil {
		return f, err
	}
	f.Window, f.Endpoint = w, e.ID
	if f.Steps, err = v.FiguresByStep(e.Num, w.From, w.To, w.Each); err != nil {
		return f, err
	}
	f.Actions, err = v.actionTotals(e.Num, w.From, w.To.Add(-time.Second)) // a second before To: the last hour of the window
	return f, err
}

// actionTotals returns the totals of an endpoint's action runs that ended in the hours of from to to, both included.
func (v *View) actionTotals(endpointNum int64, from, to time.Time) (t hookglass.ActionTotals, err error) {
	t.Runs, t.Steps, t.Failures = map[hookglass.RunStatus]int64{}, map[hookglass.StepType]map[hookglass.StepStatus]int64{}, map[string]int64{}
	type row struct {
		name string
		n    int64
	}
	rows, err := queryAll(v, func(scan func(...any) error) (r row, err error) {
		err = scan(&r.name, &r.n)
		return r, err
	}, "SELECT name, cast(sum(n) AS bigint) FROM action_totals WHERE endpoint = $1 AND hour BETWEEN $2 AND $3 GROUP BY name", endpointNum, from.Unix()/3600, to.Unix()/3600)
	for _, r := range rows {
		kind, rest, _ := strings.Cut(r.name, "/")
		switch kind + "/" {
		case totalRuns:
			t.Runs[hookglass.RunStatus(rest)] = r.n
		case totalFailures:
			t.Failures[rest] = r.n
		case totalSteps:
			of, status, _ := strings.Cut(rest, "/")
			if t.Steps[hookglass.StepType(of)] == nil {
				t.Steps[hookglass.StepType(of)] = map[hookglass.StepStatus]int64{}
			}
			t.Steps[hookglass.StepType(of)][hookglass.StepStatus(status)] = r.n
		}
		switch r.name {
		case totalFalse:
			t.ConditionFalse = r.n
		case totalTruncated:
			t.TruncatedTraces = r.n
		case totalTimed:
			t.TimedSteps = r.n
		case totalTime:
			t.StepTime = time.Duration(r.n) * time.Microsecond
		}
	}
	return t, err
}

// sortedNames returns the sorted names whose count is not zero.
func sortedNames(counts map[string]int64) []string {
	names := make([]string, 0, len(counts))
	for name, n := range counts {
		if n != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
