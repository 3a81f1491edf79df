package store

import (
	"slices"
	"strings"
	"time"

	"hookglass"
)

// Names of totals. What stands behind the first word is a status, a type or a code: never text of people.
const (
	totalRuns      = "run/"     // run/<status>
	totalSteps     = "step/"    // step/<type>/<status>
	totalFailures  = "failure/" // failure/<code>
	totalFalse     = "condition_false"
	totalTruncated = "truncated"
	totalTimed     = "timed_steps"
	totalTime      = "step_time" // microseconds
)

// AddActionTotals adds figures to those of an endpoint for the hour of a time.
func (tx *Tx) AddActionTotals(endpointNum int64, at time.Time, t hookglass.ActionTotals) error {
	counts := map[string]int64{totalFalse: t.ConditionFalse, totalTruncated: t.TruncatedTraces, totalTimed: t.TimedSteps, totalTime: t.StepTime.Microseconds()}
	for status, n := range t.Runs {
		counts[totalRuns+string(status)] = n
	}
	for kind, statuses := range t.Steps {
		for status, n := range statuses {
			counts[totalSteps+string(kind)+"/"+string(status)] = n
		}
	}
	for code, n := range t.Failures {
		counts[totalFailures+code] = n
	}
	names := sortedNames(counts) // in one order, so that no two transactions wait for each other
	a := &args{}
	var rows []string
	endpoint, hour := a.add(endpointNum), a.add(at.Unix()/3600)
	for _, name := range names {
		rows = append(rows, "(cast("+endpoint+" AS bigint), cast("+hour+" AS bigint), "+a.add(name)+", cast("+a.add(counts[name])+" AS bigint))")
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.exec("INSERT INTO action_totals (endpoint, hour, name, n) VALUES "+strings.Join(rows, ", ")+
		" ON CONFLICT (endpoint, hour, name) DO UPDATE SET n = action_totals.n + excluded.n", a.values...)
	return err
}

// WindowFigures returns what is known of an endpoint in a window. It answers not_found.
func (v *View) WindowFigures(ref string, w hookglass.Window) (f hookglass.WindowFigures, err error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return f, err
	}
	f.Window, f.Endpoint = w, e.ID
	if f.Steps, err = v.FiguresByStep(e.Num, w.From, w.To, w.Each); err != nil {
		return f, err
	}
	f.Actions, err = v.actionTotals(e.Num, w.From, w.To.Add(-time.Second)) // whose hour is the last of the window
	return f, err
}

// actionTotals returns the figures on the runs of an endpoint's actions that ended from the hour of one time to that of
// another. They are those of about a second ago.
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

// sortedNames are the names of counts that are not zero.
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
