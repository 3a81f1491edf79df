package hookglass

import (
	"math"
	"strconv"
	"time"
)

// OutcomeSource is what delivered an event.
type OutcomeSource string

// The sources.
const (
	OutcomeTarget OutcomeSource = "forwarding_target"
	OutcomeStep   OutcomeSource = "forward_step"
	OutcomeTunnel OutcomeSource = "tunnel"
)

// Outcome is one attempt to deliver an event, for figures and alerts.
type Outcome struct {
	EndpointNum int64
	EventSeq    int64
	Source      OutcomeSource
	At          time.Time
	Took        time.Duration // 0: not known
	StatusCode  int           // 0: no answer came
	Earlier     bool          // an earlier attempt of this delivery was bad, so the delivery is counted as bad already
	Final       OutcomeEnd    // empty: it is tried again
}

// OutcomeEnd is how a delivery ended.
type OutcomeEnd string

// The ends.
const (
	OutcomeDelivered OutcomeEnd = "delivered"
	OutcomeFailed    OutcomeEnd = "failed"
)

// Bad reports whether the attempt failed or was answered with 400 or more (spec: decisions, section 13, "Alerts"). A
// redirect is bad if it ended the delivery.
func (o Outcome) Bad() bool {
	return o.StatusCode == 0 || o.StatusCode >= 400 || o.Final == OutcomeFailed
}

// Figures count what arrived at an endpoint in a period, including events deleted since, and what was delivered.
// Delivery times are counted in buckets (see timeBucket), so that figures can be added up.
type Figures struct {
	Events     int64                 `json:"n,omitempty"` // all that arrived
	Bytes      int64                 `json:"b,omitempty"`
	Ignored    int64                 `json:"i,omitempty"`
	Types      map[string]int64      `json:"t,omitempty"`
	Providers  map[string]int64      `json:"p,omitempty"`
	EventTypes map[string]int64      `json:"e,omitempty"`
	Statuses   map[string]int64      `json:"s,omitempty"` // of the answers to senders
	Signatures map[string]int64      `json:"g,omitempty"`
	Forged     int64                 `json:"f,omitempty"` // events that are not ignored and whose signature failed
	Deliveries map[string]Deliveries `json:"d,omitempty"` // by OutcomeSource, of events that are not ignored
	Erased     int64                 `json:"x,omitempty"` // of Events: rows deleted since, counted by when they arrived
	Expired    int64                 `json:"y,omitempty"` // of Erased: those that a tunnel missed and never delivered
	Refused    map[string]int64      `json:"r,omitempty"` // arrivals answered with an error and not stored, by its code
	Placed     int64                 `json:"k,omitempty"` // of Events: those whose Seqs are known to be in Low..High
	Low        int64                 `json:"l,omitempty"` // 0: none is placed
	High       int64                 `json:"h,omitempty"`
}

// Deliveries count attempts of one source.
type Deliveries struct {
	Attempts  int64           `json:"a,omitempty"`
	Delivered int64           `json:"d,omitempty"` // deliveries that ended well
	Failed    int64           `json:"f,omitempty"` // deliveries that ended badly
	Bad       int64           `json:"b,omitempty"` // deliveries with an attempt that failed or was answered with 400 or more
	Times     map[int16]int64 `json:"t,omitempty"` // attempts with a known duration, by timeBucket
}

// Bounds on how much senders can make figures grow.
const (
	maxFigureNames  = 200 // different names of one kind; further ones count as OtherName
	maxFigureLength = 100 // bytes of a name
)

// OtherName counts the names beyond maxFigureNames.
const OtherName = "(other)"

// AddEvent counts an event in list form; with by -1 it takes the event back.
func (f *Figures) AddEvent(e *Event, by int64) {
	f.AddEvents(e, by, by*e.Size)
	f.Place(by, e.Seq, e.Seq)
}

// Place extends Low..High by the Seqs of counted events. The bounds stay when events are taken back.
func (f *Figures) Place(by, low, high int64) {
	f.Placed += by
	if f.Low == 0 || low > 0 && low < f.Low {
		f.Low = low
	}
	f.High = max(f.High, high)
}

// AddEvents counts by events that differ only in their sizes, which sum up to bytes.
func (f *Figures) AddEvents(e *Event, by, bytes int64) {
	f.Events += by
	f.Bytes += bytes
	bump(&f.Types, string(e.Type), by)
	bump(&f.Providers, e.Provider, by)
	if e.EventType != "" {
		bump(&f.EventTypes, e.EventType, by)
	}
	if e.Status != 0 {
		bump(&f.Statuses, strconv.Itoa(e.Status), by)
	}
	bump(&f.Signatures, string(e.SignatureStatus), by)
	if e.Ignored != "" {
		f.Ignored += by
	} else if e.SignatureStatus == SignatureFailed {
		f.Forged += by
	}
}

// AddOutcome counts an attempt; with by -1 it takes the attempt back.
func (f *Figures) AddOutcome(o Outcome, by int64) {
	if f.Deliveries == nil {
		f.Deliveries = map[string]Deliveries{}
	}
	d := f.Deliveries[string(o.Source)]
	d.Attempts += by
	switch o.Final {
	case OutcomeDelivered:
		d.Delivered += by
	case OutcomeFailed:
		d.Failed += by
	}
	if o.Bad() && !o.Earlier {
		d.Bad += by
	}
	if o.Took > 0 {
		if d.Times == nil {
			d.Times = map[int16]int64{}
		}
		d.Times[timeBucket(o.Took)] += by
	}
	f.Deliveries[string(o.Source)] = d
}

// AddRefused counts n arrivals that were answered with an error and not stored.
func (f *Figures) AddRefused(code Code, n int64) { bump(&f.Refused, string(code), n) }

// Add adds other figures.
func (f *Figures) Add(o Figures) {
	f.Events += o.Events
	f.Bytes += o.Bytes
	f.Ignored += o.Ignored
	f.Forged += o.Forged
	f.Erased += o.Erased
	f.Expired += o.Expired
	f.Place(o.Placed, o.Low, o.High)
	for _, m := range []struct {
		to   *map[string]int64
		from map[string]int64
	}{{&f.Types, o.Types}, {&f.Providers, o.Providers}, {&f.EventTypes, o.EventTypes}, {&f.Statuses, o.Statuses}, {&f.Signatures, o.Signatures}, {&f.Refused, o.Refused}} {
		for name, n := range m.from {
			bump(m.to, name, n)
		}
	}
	for source, from := range o.Deliveries {
		if f.Deliveries == nil {
			f.Deliveries = map[string]Deliveries{}
		}
		d := f.Deliveries[source]
		d.Attempts += from.Attempts
		d.Delivered += from.Delivered
		d.Failed += from.Failed
		d.Bad += from.Bad
		if d.Times == nil && len(from.Times) > 0 {
			d.Times = map[int16]int64{}
		}
		for bucket, n := range from.Times {
			d.Times[bucket] += n
		}
		f.Deliveries[source] = d
	}
}

// Counted returns how many events count for health: those that are not ignored.
func (f *Figures) Counted() int64 { return f.Events - f.Ignored }

func bump(m *map[string]int64, name string, by int64) {
	if *m == nil {
		*m = map[string]int64{}
	}
	name = Beginning(name, maxFigureLength)
	if _, known := (*m)[name]; !known && len(*m) >= maxFigureNames {
		name = OtherName
	}
	if (*m)[name] += by; (*m)[name] == 0 {
		delete(*m, name)
	}
}

// timeStep is the ratio between the bounds of a bucket. It makes a time read from a bucket accurate to 2.5 %.
const timeStep = 1.05

// timeBucket returns the bucket of a duration. Bucket 0 is for up to 10 µs.
func timeBucket(d time.Duration) int16 {
	us := float64(d.Microseconds())
	if us <= 10 {
		return 0
	}
	return int16(math.Ceil(math.Log(us/10) / math.Log(timeStep)))
}

// Quantile returns the duration that a share q (0 to 1) of the attempts did not exceed, or 0 if there are none.
func (d Deliveries) Quantile(q float64) time.Duration {
	var total int64
	highest := int16(0)
	for bucket, n := range d.Times {
		total += n
		highest = max(highest, bucket)
	}
	if total <= 0 {
		return 0
	}
	rank := max(int64(math.Ceil(q*float64(total))), 1)
	for bucket := int16(0); bucket <= highest; bucket++ {
		if rank -= d.Times[bucket]; rank <= 0 {
			if bucket == 0 {
				return 10 * time.Microsecond
			}
			// The geometric middle of the bucket: the ratio to both bounds is the same.
			return time.Duration(10 * math.Pow(timeStep, float64(bucket)-0.5) * float64(time.Microsecond))
		}
	}
	return 0
}
