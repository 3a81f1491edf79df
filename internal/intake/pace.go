package intake

import "time"

// Pace tells when a body that comes too slowly is given up: a bucket of grace that empties as time
// passes and fills as bytes come, never beyond full, so that no early burst pays for a long stall.
type Pace struct {
	due   time.Time
	grace time.Duration
	rate  int64 // bytes a second
}

// NewPace returns the pace of a body that begins now, may stay behind the rate in bytes a second for as long as the
// grace.
func NewPace(now time.Time, grace time.Duration, rate int64) Pace {
	return Pace{now.Add(grace), grace, rate}
}

// Due is when the body is given up unless more of it comes.
func (p *Pace) Due() time.Time { return p.due }

// Came counts bytes that came and returns the new deadline.
func (p *Pace) Came(n int, now time.Time) time.Time {
	p.due = p.due.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	if full := now.Add(p.grace); p.due.After(full) {
		p.due = full
	}
	return p.due
}

// Stood excuses time in which the body was not read, and demands more of one that holds a share of the budget.
func (p *Pace) Stood(d time.Duration, fastest int64) {
	p.due = p.due.Add(d)
	p.rate = fastest
}

// Rested excuses time that the sender was free to take.
func (p *Pace) Rested(d time.Duration) { p.due = p.due.Add(d) }
