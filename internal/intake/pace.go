package intake

import "time"

// Pace determines when a slow body is given up. It is a bucket of grace time that drains as time passes and is refilled
// by arriving bytes, but never above full, so that an early burst does not pay for a long stall.
type Pace struct {
	due        time.Time
	grace      time.Duration
	rate, held int64 // bytes a second, and those of a body for which others may have to wait
}

// heldFactor is how many times faster a body must arrive for which others may have to wait.
const heldFactor = 16

// NewPace returns the pace of a body that begins now and may lag behind rate, in bytes per second, for up to grace.
func NewPace(now time.Time, grace time.Duration, rate int64) Pace {
	return Pace{due: now.Add(grace), grace: grace, rate: rate, held: heldFactor * rate}
}

// Due returns when the body is given up unless more of it arrives.
func (p *Pace) Due() time.Time { return p.due }

// Came counts bytes that arrived.
func (p *Pace) Came(n int, now time.Time) {
	p.due = p.due.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	if full := now.Add(p.grace); p.due.After(full) {
		p.due = full
	}
}

// Stood excuses time in which the body was not read, and raises the rate, because the body now holds a share of the
// budget.
func (p *Pace) Stood(d time.Duration) {
	p.due = p.due.Add(d)
	p.rate = p.held
}

// Rested excuses time that the sender was entitled to.
func (p *Pace) Rested(d time.Duration) { p.due = p.due.Add(d) }
