package hookglass

import "time"

// Rate bounds how fast a forwarding target is sent to: Limit requests in Period. The zero Rate is no bound.
//
// Each request takes a turn, and there is a turn every Period/Limit. A turn that nothing used can be taken for a while
// longer, so that a node that looks a little late does not lose it. Together with the time between a turn and its
// request, that allows a burst of the requests of one second, or of one request when the rate is below one a second.
type Rate struct {
	Limit  int
	Period time.Duration
}

// What a bound may be counted in, as people write it.
const (
	PeriodSecond = "second"
	PeriodMinute = "minute"
)

// PeriodName is Period as people write it; empty: there is no bound.
func (r Rate) PeriodName() string {
	switch {
	case !r.Bounded():
		return ""
	case r.Period == time.Minute:
		return PeriodMinute
	}
	return PeriodSecond
}

// MaxRateLimit is the most requests that a bound can allow in its period. A higher bound would never slow anything.
const MaxRateLimit = 1000

const (
	// rateBurst is how much a target may get at once: the turns of this time.
	rateBurst = time.Second
	// rateLook is what is worth a look: turns that come closer together are used together.
	rateLook = 50 * time.Millisecond
	// rateClocks is by how much clocks may differ before a time that is too far ahead is taken for a clock's that went
	// back since.
	rateClocks = 5 * time.Second
)

// Bounded reports whether there is a bound.
func (r Rate) Bounded() bool { return r.Limit > 0 && r.Period > 0 }

// Every is the time from one turn to the next. It is in whole microseconds, as times are stored, and never short.
func (r Rate) Every() time.Duration {
	limit := time.Duration(r.Limit)
	return ((r.Period/time.Microsecond + limit - 1) / limit) * time.Microsecond
}

// Slack is for how long a turn that nothing used is good, and how late its request may go.
func (r Rate) Slack() time.Duration { return max(0, (rateBurst-r.Every())/2) }

// Turns is how many requests may go now, where next is the next turn as After said it.
func (r Rate) Turns(next, now time.Time) int {
	if next = r.from(next, now); next.After(now) {
		return 0
	}
	return 1 + int(now.Sub(next)/r.Every())
}

// After is the next turn when n requests go now.
func (r Rate) After(next, now time.Time, n int) time.Time {
	return r.from(next, now).Add(time.Duration(n) * r.Every())
}

// Last is when the last of n requests goes that wait now for one turn each.
func (r Rate) Last(next, now time.Time, n int) time.Time {
	if last := r.After(next, now, n-1); last.After(now) {
		return last
	}
	return now
}

// Ready is when to look for what waits: when the turns of rateLook can be used together.
func (r Rate) Ready(next, now time.Time) time.Time {
	if next.After(r.furthest(now)) {
		return now
	}
	return next.Add(min(rateLook, r.Slack()) / r.Every() * r.Every())
}

// furthest is how far ahead a turn can be, but after a clock went back.
func (r Rate) furthest(now time.Time) time.Time { return now.Add(r.Every() + rateClocks) }

// from is the first turn that can still be used.
func (r Rate) from(next, now time.Time) time.Time {
	if next.After(r.furthest(now)) {
		return now
	}
	if oldest := now.Add(-r.Slack()); next.Before(oldest) {
		return oldest
	}
	return next
}
