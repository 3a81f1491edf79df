package listen

import (
	"context"
	"io"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
)

// Compose is the head and the body of the request for an event.
func Compose(r *api.TunnelRequest, to Target, set hookglass.Headers) (head, body string, err error) {
	out, err := compose(r, to, set)
	return string(out.head), string(out.body), err
}

// Fate is what chaos does to the n-th event.
func (c Chaos) Fate(n uint64) any { return c.fate(n) }

// Ahead sets the head start that a delivery has before the next.
func (c *Config) Ahead(d time.Duration) { c.ahead = func(int) time.Duration { return d } }

// Patient makes a listener wait for so long for what happens on this machine, which may be busy with something else.
func (c *Config) Patient(d time.Duration) {
	c.limits = &limits{order: d, connect: d, answer: d, drain: d}
}

// Leave has the listener wait no longer for what is under way, as if the time for that were over.
func (l *Listener) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveBy = time.Now()
}

// Knows reports whether a gap was seen.
func (l *Listener) Knows(gap string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gaps.byID[gap] != nil
}

// Look sets when, after connecting, gaps are looked for that were not known before.
func (c *Config) Look(at ...time.Duration) { c.looks = at }

// Behind reports whether events were left for later.
func (l *Listener) Behind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.behind.IsZero()
}

// Weight is how many bytes of events wait.
func (l *Listener) Weight() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.weight
}

// Fill has so many bytes wait beneath the most that may.
func (l *Listener) Fill(room int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.weight = laneBytes - room
}

// Unreported is how many reports the server may not have.
func (l *Listener) Unreported() int { return l.reports.waiting() }

// Admitted is how many events were taken for delivery.
func (l *Listener) Admitted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.admitted
}

// CatchUp delivers what was captured since a time.
func (l *Listener) CatchUp(ctx context.Context, since time.Time) { l.since(ctx, since, nil) }

// Remember bounds the events that are known to have been seen.
func (l *Listener) Remember(n int) { l.seen = newMemory(n) }

// Remembered is how many events are known to have been seen.
func (l *Listener) Remembered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen.order)
}

// Open has the listener have begun at another time.
func (l *Listener) Open(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened = at
}

// Away is how long a listener was without a connection.
func Away(lost time.Time, gaps []api.Gap) time.Duration { return away(lost, gaps) }

// Memory holds the events that were seen last.
type Memory struct{ *memory }

// NewMemory returns one that holds so many.
func NewMemory(limit int) Memory { return Memory{newMemory(limit)} }

// See notes an event that is settled at once, and reports whether it is new.
func (m Memory) See(id string) bool { return m.see(id) }

// Forget makes an event new again.
func (m Memory) Forget(id string) { m.forget(id) }

// Event is an event as far as a listener is told of it.
var Event = told

// Words is an output of a command.
type Words struct{ *words }

// Hear passes on what is written to an output.
func Hear(to io.Writer) (Words, error) {
	h, err := hear(to)
	return Words{h}, err
}

// Say writes to the output.
func (w Words) Say(text string) error {
	_, err := w.write.WriteString(text)
	return err
}

// Late is when the time to read it is over, and it was not ended.
func (w Words) Late() error { return w.read.SetReadDeadline(time.Unix(1, 0)) }

// HeardOut returns when no more is read.
func (w Words) HeardOut() {
	heardOut(0, w.words)
	w.write.Close()
}

// Reports keeps what a server does not take.
type Reports struct{ *reporter }

// NewReports returns one that is connected to nothing.
func NewReports(warn func(string)) Reports { return Reports{newReporter(nil, warn)} }

// Keep keeps a report.
func (r Reports) Keep(report api.DeliveryReport) { r.report(report) }

// Busy is whether others have to wait.
func (r Reports) Busy() bool {
	if !r.mu.TryLock() {
		return true
	}
	r.mu.Unlock()
	return false
}

// Acked has the server confirm a report.
func (r Reports) Acked(attempt string) {
	r.acked(api.DeliveryReportAck{DeliveryAttemptID: attempt, Status: "ok"})
}

// Listed is how many reports are remembered, with those that are confirmed.
func (r Reports) Listed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.order)
}

// Kept is a report that is kept.
func (r Reports) Kept(attempt string) (report api.DeliveryReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.kept[attempt]; k != nil {
		report = k.report
	}
	return report
}

// Asked is how long to wait when a server says for how long.
func Asked(wait, said time.Duration) time.Duration {
	return asked(wait, &client.Error{Status: 429, RetryAfter: said})
}
