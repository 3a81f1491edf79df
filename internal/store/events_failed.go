package store

import "hookglass"

// LoadFailed fills for events how many of their deliveries and action runs ended badly. Of the reports of local
// machines only the newest counts.
func (v *View) LoadFailed(events []*hookglass.Event) error {
	index, seqs := bySeq(events)
	for _, e := range events {
		e.Failed = 0
	}
	these := v.dialect.among("event", "$1")
	// The condition is that of an index by event. A plan for state = 'failed' may go by the target and read all that
	// ever failed.
	return v.queryEach(func(scan func(...any) error) error {
		var seq int64
		var n int
		err := scan(&seq, &n)
		if err == nil {
			index[seq].Failed += n
		}
		return err
	}, "SELECT event, count(*) FILTER (WHERE state = 'failed') FROM forwards WHERE "+these+" AND due_at IS NULL AND state <> 'delivered' GROUP BY event"+
		" UNION ALL SELECT event, count(*) FROM action_runs WHERE "+these+" AND status IN ('failed', 'stopped') GROUP BY event"+
		" UNION ALL SELECT event, 1 FROM tunnel_reports WHERE "+v.dialect.picked("num", "SELECT max(num) FROM tunnel_reports WHERE "+these+" GROUP BY event")+" AND status NOT BETWEEN 200 AND 299",
		v.dialect.list(seqs))
}
