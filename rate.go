package hookglass

import "time"

// Rate bounds how fast a forwarding target is sent to: Limit requests per Period. The zero Rate is no bound.
//
// A request needs a turn; a new turn comes every Period/Limit. An unused turn stays valid for a while (see Slack), so
// that a node that looks a little late does not lose it. Together with the time between a turn and its request, this
// allows bursts: of as many requests as one second has turns, or of one request at rates below one a second.
type Rate struct {
	Limit  int
	Period time.Duration
}

// The periods of a bound, as people write them.
const (
	PeriodSecond = "second"
	PeriodMinute = "minute"
)

// PeriodName returns Period as people write it, or "" if there is no bound.
func (r Rate) PeriodName() string {
	switch {
	case !r.Bounded():
		return ""
	case r.Period == time.Minute:
		return PeriodMinute
	}
	return PeriodSecond
}

// MaxRateLimit is the highest Limit. Anything above it would never slow a delivery down.
const MaxRateLimit = 1000

const (
	// rateBurst bounds a burst: a target gets at most the turns of this time at once.
	rateBurst = time.Second
	// rateLook is how long turns are collected to be used together, so that the queue is not read for each of them.
	rateLook = 50 * time.Millisecond
	// rateClocks is the tolerated clock skew between nodes. A turn further ahead than this was written before a clock
	// was set back.
	rateClocks = 5 * time.Second
)

// Bounded reports whether there is a bound.
func (r Rate) Bounded() bool { return r.Limit > 0 && r.Period > 0 }

// Every returns the interval between turns. It is rounded up to whole microseconds, the precision of stored times.
func (r Rate) Every() time.Duration {
	limit := time.Duration(r.Limit)
	return ((r.Period/time.Microsecond + limit - 1) / limit) * time.Microsecond
}

// Slack returns how long an unused turn stays valid, and how late its request may go.
func (r Rate) Slack() time.Duration { return max(0, (rateBurst-r.Every())/2) }

// Turns returns how many requests may go now. next is the next turn, as returned by After.
func (r Rate) Turns(next, now time.Time) int {
	if next = r.from(next, now); next.After(now) {
		return 0
	}
	return 1 + int(now.Sub(next)/r.Every())
}

// After returns the next turn once n requests go now.
func (r Rate) After(next, now time.Time, n int) time.Time {
	return r.from(next, now).Add(time.Duration(n) * r.Every())
}

// Last returns when the last of n requests that wait now goes.
func (r Rate) Last(next, now time.Time, n int) time.Time {
	if last := r.After(next, now, n-1); last.After(now) {
		return last
	}
	return now
}

// Ready returns when to look for waiting requests: when the turns of rateLook can be used together.
func (r Rate) Ready(next, now time.Time) time.Time {
	if next.After(r.furthest(now)) {
		return now
	}
	return next.Add(min(rateLook, r.Slack()) / r.Every() * r.Every())
}

// furthest returns how far ahead a turn can be unless a clock was set back.
func (r Rate) furthest(now time.Time) time.Time { return now.Add(r.Every() + rateClocks) }

// from returns the first turn that is still valid.
func (r Rate) from(next, now time.Time) time.Time {
	if next.After(r.furthest(now)) {
		return now
	}
	if oldest := now.Add(-r.Slack()); next.Before(oldest) {
		return oldest
	}
	return next
}
