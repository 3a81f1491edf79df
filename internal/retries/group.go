package retries

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hookglass"
)

// delivery is a group of attempts, with what is needed to read them again.
type delivery struct {
	hookglass.AttemptGroup
	seqs []int64
	mail bool
}

// last returns the latest attempt.
func (d *delivery) last() hookglass.Attempt { return d.Attempts[len(d.Attempts)-1] }

// answered reports whether an attempt was answered with 2xx.
func (d *delivery) answered() bool {
	return slices.ContainsFunc(d.Attempts, hookglass.Attempt.Success)
}

// group groups attempts, given oldest first: by their identity, or by the provider's event if the sender gives each
// attempt an id of its own, until one is answered with 2xx. Until then, too, by method, path and query: a sender that
// was answered and asks the same again, such as a monitor, may mean another delivery. It returns deliveries with
// several attempts first, newest first.
func group(arrivals []arrival, now time.Time) []delivery {
	type event struct{ provider, eventType, ref string }
	byKey := map[hookglass.DeliveryKey]*delivery{}
	byEvent := map[event]*delivery{}
	var all []*delivery
	for _, a := range arrivals {
		of := event{a.provider, a.eventType, a.eventRef}
		g := byKey[a.key]
		if g == nil && a.eventRef != "" {
			if g = byEvent[of]; g != nil && g.answered() {
				g = nil
			}
		}
		name := a.key
		if g != nil && a.kind == hookglass.IdentityRequest && g.answered() {
			g, name = nil, a.own
		}
		if g == nil {
			g = &delivery{AttemptGroup: hookglass.AttemptGroup{Key: name, Kind: a.kind, Provider: a.provider, EventType: a.eventType}, mail: a.mail}
			all = append(all, g)
		}
		byKey[a.key] = g
		if a.eventRef != "" {
			byEvent[of] = g
		}
		if len(g.Attempts) > 0 {
			a.attempt.Gap = a.attempt.At.Sub(g.last().At)
			if g.answered() {
				g.AfterSuccess++
			}
		}
		g.Attempts, g.seqs, g.DeliveryID = append(g.Attempts, a.attempt), append(g.seqs, a.seq), a.deliveryID
	}
	longest := longestGaps(all)
	groups := make([]delivery, len(all))
	for i, g := range all {
		g.State = stateOf(g, longest, now)
		groups[i] = *g
	}
	slices.SortStableFunc(groups, func(a, b delivery) int {
		if one, other := len(a.Attempts) > 1, len(b.Attempts) > 1; one != other {
			if one {
				return -1
			}
			return 1
		}
		return b.last().At.Compare(a.last().At)
	})
	return groups
}

// longestGaps returns the longest wait before each attempt, by its number.
func longestGaps(all []*delivery) map[int]time.Duration {
	longest := map[int]time.Duration{}
	for _, g := range all {
		for i, a := range g.Attempts {
			longest[i+1] = max(longest[i+1], a.Gap)
		}
	}
	return longest
}

// quiet is how long a sender without known habits may be silent before it counts as having given up.
const quiet = time.Hour

func stateOf(g *delivery, longest map[int]time.Duration, now time.Time) hookglass.GroupState {
	if g.answered() {
		return hookglass.GroupDelivered
	}
	wait := longest[len(g.Attempts)+1]
	if wait == 0 { // no delivery had that many attempts
		wait = quiet / 3
		for _, a := range g.Attempts {
			wait = max(wait, a.Gap)
		}
	}
	wait = max(wait, g.last().Held+g.last().RetryAfter) // a sender that was told to wait so long has not given up before
	if (now.Sub(g.last().At)-time.Minute)/3 > wait {    // not multiplied: a date of Retry-After may be far away
		return hookglass.GroupGivenUp
	}
	return hookglass.GroupWaiting
}

// summarize returns what the deliveries have in common.
func summarize(groups []delivery) (s hookglass.RetrySummary) {
	s.Deliveries = len(groups)
	gaps := map[int][]time.Duration{}
	answers := map[string]*hookglass.AnswerFigure{}
	for i := range groups {
		g := &groups[i]
		s.MaxAttempts = max(s.MaxAttempts, len(g.Attempts))
		s.AfterSuccess += g.AfterSuccess
		if len(g.Attempts) > 1 {
			s.Retried++
		}
		switch g.State {
		case hookglass.GroupDelivered:
			s.Delivered++
		case hookglass.GroupWaiting:
			s.Waiting++
		case hookglass.GroupGivenUp:
			s.GivenUp++
			s.GaveUpAfter = append(s.GaveUpAfter, len(g.Attempts))
		}
		for n, a := range g.Attempts {
			answer := a.Answer()
			if answers[answer] == nil {
				answers[answer] = &hookglass.AnswerFigure{Answer: answer}
			}
			answers[answer].Attempts++
			followed := n+1 < len(g.Attempts)
			if followed {
				answers[answer].Retried++
				gaps[n+2] = append(gaps[n+2], g.Attempts[n+1].Gap)
			}
			if a.RetryAfter == 0 || a.Success() { // which asks for no other attempt
				continue
			}
			s.RetryAfter.Given++
			switch {
			case !followed && g.State == hookglass.GroupWaiting: // the retry may still come
			case !followed:
				s.RetryAfter.None++
			case g.Attempts[n+1].Gap-a.Held >= a.RetryAfter-500*time.Millisecond: // the time counts from the answer
				s.RetryAfter.Honoured++
			default:
				s.RetryAfter.Early++
			}
		}
	}
	slices.Sort(s.GaveUpAfter)
	for _, attempt := range sorted(gaps) {
		s.Schedule = append(s.Schedule, step(attempt, gaps[attempt]))
	}
	for _, answer := range sorted(answers) {
		s.Answers = append(s.Answers, *answers[answer])
	}
	return s
}

func step(attempt int, gaps []time.Duration) hookglass.RetryStep {
	slices.Sort(gaps)
	n := len(gaps)
	s := hookglass.RetryStep{Attempt: attempt, N: n, Min: gaps[0], Max: gaps[n-1], Median: gaps[n/2]}
	if n%2 == 0 {
		s.Median = (gaps[n/2-1] + gaps[n/2]) / 2
	}
	if s.Median > 0 {
		s.Jitter = float64(s.Max-s.Min) / float64(s.Median)
	}
	return s
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
