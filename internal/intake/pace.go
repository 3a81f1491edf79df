package intake

import "time"

// Pace determines when a slow body is given up. It is a bucket of grace time that drains as time passes and is refilled
// by arriving bytes, but never above full, so that an early burst does not pay for a long stall.
type Pace struct {
	due   time.Time
	grace time.Duration
	rate  int64 // bytes a second
}

// NewPace returns the pace of a body that begins now and may lag behind rate, in bytes per second, for up to grace.
func NewPace(now time.Time, grace time.Duration, rate int64) Pace {
	return Pace{now.Add(grace), grace, rate}
}

// Due returns when the body is given up unless more of it arrives.
func (p *Pace) Due() time.Time { return p.due }

// Came counts bytes that arrived and returns the new deadline.
func (p *Pace) Came(n int, now time.Time) time.Time {
	p.due = p.due.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	if full := now.Add(p.grace); p.due.After(full) {
		p.due = full
	}
	return p.due
}

// Stood excuses time in which the body was not read, and raises the rate, because the body now holds a share of the
// budget.
func (p *Pace) Stood(d time.Duration, fastest int64) {
	p.due = p.due.Add(d)
	p.rate = fastest
}

// Rested excuses time that the sender was entitled to.
func (p *Pace) Rested(d time.Duration) { p.due = p.due.Add(d) }
