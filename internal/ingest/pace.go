package ingest

import "time"

// pace tells when a body that comes too slowly is given up: a bucket of BodyGrace that empties as time
// passes and fills as bytes come, never beyond full, so that no early burst pays for a long stall.
type pace struct {
	due   time.Time
	grace time.Duration
	rate  int64 // bytes a second
}

func (f *Front) newPace(now time.Time) pace {
	return pace{now.Add(f.cfg.BodyGrace), f.cfg.BodyGrace, f.cfg.MinBodyRate}
}

// came counts bytes that came and returns the new deadline.
func (p *pace) came(n int, now time.Time) time.Time {
	p.due = p.due.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	if full := now.Add(p.grace); p.due.After(full) {
		p.due = full
	}
	return p.due
}

// stood excuses time in which the body was not read, and demands more of one that holds a share of the budget.
func (p *pace) stood(d time.Duration, fastest int64) {
	p.due = p.due.Add(d)
	p.rate = fastest
}
