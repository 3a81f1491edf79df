package listen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Chaos delivers events in the ways that at-least-once delivery allows: twice, late, out of order, or not at all. What
// happens to the n-th event depends on the seed and n only.
type Chaos struct {
	Duplicate float64       // share of events that are delivered a second time
	Drop      float64       // share that is not delivered; the server keeps them as undelivered
	Reorder   time.Duration // each event is held for up to this long, so that others overtake it
	MinDelay  time.Duration // each event is delayed by at least this
	MaxDelay  time.Duration // and at most this, keeping the order
	Seed      uint64
}

// maxChaos bounds the delay of an event.
const maxChaos = time.Hour

// ParseChaos reads a list such as duplicate=20%,reorder=5s,drop=5%,delay=0-3s,seed=7. Without a seed it is 1.
func ParseChaos(s string) (Chaos, error) {
	c := Chaos{Seed: 1}
	given := make(map[string]bool)
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return c, fmt.Errorf("chaos: %q is not of the form name=value", part)
		}
		if given[name] {
			return c, fmt.Errorf("chaos: %s is given twice", name)
		}
		given[name] = true
		var err error
		switch name {
		case "duplicate":
			c.Duplicate, err = share(value)
		case "drop":
			c.Drop, err = share(value)
		case "reorder":
			c.Reorder, err = lateness(value)
		case "delay":
			from, to, span := strings.Cut(value, "-")
			if !span {
				from, to = value, value
			}
			if c.MaxDelay, err = lateness(to); err == nil {
				if from == "0" {
					from = "0s"
				} else if _, bad := strconv.Atoi(from); bad == nil { // 1-3s: the unit stands once
					from += strings.TrimLeft(to, "0123456789.")
				}
				c.MinDelay, err = lateness(from)
			}
			if err == nil && c.MinDelay > c.MaxDelay {
				err = fmt.Errorf("%s ends before it begins", value)
			}
		case "seed":
			if c.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
				err = fmt.Errorf("%q is no whole number", value)
			}
		default:
			return c, fmt.Errorf("chaos: there is no %q; there are duplicate, drop, reorder, delay and seed", name)
		}
		if err != nil {
			return c, fmt.Errorf("chaos: %s: %w", name, err)
		}
	}
	return c, nil
}

func share(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, fmt.Errorf("%q is no share such as 20%%", s)
	}
	return f, nil
}

func lateness(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > maxChaos {
		return 0, fmt.Errorf("%q is no time between 0s and %s, such as 3s", s, maxChaos)
	}
	return d, nil
}

// earliestRepeat is the least time before a second delivery, so that a handler with a thread for each request begins
// with the first.
const earliestRepeat = 20 * time.Millisecond

// fate is what happens to one event.
type fate struct {
	drop   bool
	twice  bool
	hold   time.Duration // delay in which others may overtake it
	delay  time.Duration // delay in which they may not
	second time.Duration // from the first delivery to the second
}

// fate returns what happens to the n-th event.
func (c Chaos) fate(n uint64) fate {
	r := rand.New(rand.NewPCG(c.Seed, n))
	// Draw all values in any case, so that changing one setting does not change the draws of the others.
	drop, twice, hold, delay, second := r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64()
	f := fate{drop: drop < c.Drop, twice: twice < c.Duplicate}
	f.hold = time.Duration(hold * float64(c.Reorder))
	f.delay = c.MinDelay + time.Duration(delay*float64(c.MaxDelay-c.MinDelay))
	f.second = earliestRepeat + time.Duration(second*float64(max(c.Reorder, c.MaxDelay, time.Second)-earliestRepeat))
	return f
}

// ChaosReport says how a handler coped with chaos.
type ChaosReport struct {
	Seed       uint64 `json:"seed"`
	Events     int    `json:"events"`
	Dropped    int    `json:"dropped"`
	Duplicated int    `json:"duplicated"`
	Overtaken  int    `json:"overtaken"` // delivered after a later event
	// Differing are the events whose two deliveries were answered differently, and RefusedAgain those with a 2xx for
	// the first and not for the second delivery: the handler expects each event only once.
	Differing    []string `json:"differing"`
	RefusedAgain []string `json:"refused_again"`
}

// trial collects the figures of a ChaosReport.
type trial struct {
	mu     sync.Mutex
	report ChaosReport
	latest uint64
	first  map[string]int // of events delivered twice: the status of the first delivery
}

func newTrial(seed uint64) *trial {
	return &trial{report: ChaosReport{Seed: seed}, first: make(map[string]int)}
}

// met records the fate of an event.
func (t *trial) met(f fate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Events++
	if f.drop {
		t.report.Dropped++
	}
}

// begin records that the n-th event is being sent to the handler.
func (t *trial) begin(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n < t.latest {
		t.report.Overtaken++
	}
	t.latest = max(t.latest, n)
}

// answered records an answer to an event that is delivered twice.
func (t *trial) answered(id string, a answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, again := t.first[id]
	if !again {
		t.first[id] = a.status
		return
	}
	t.report.Duplicated++
	if before != a.status {
		t.report.Differing = append(t.report.Differing, id)
	}
	if taken(before) && !taken(a.status) {
		t.report.RefusedAgain = append(t.report.RefusedAgain, id)
	}
}

func (t *trial) result() *ChaosReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.report
	r.Differing, r.RefusedAgain = append([]string{}, r.Differing...), append([]string{}, r.RefusedAgain...)
	slices.Sort(r.Differing)
	slices.Sort(r.RefusedAgain)
	return &r
}
