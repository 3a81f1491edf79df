package listen

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/api"
)

// parcel is an event on its way through a lane.
type parcel struct {
	event     *api.TunnelRequest
	to        *Target
	sight     *sight
	recovered bool
	number    uint64        // of arrival, for chaos
	twice     time.Duration // chaos: deliver it again after this time; 0: do not
	again     bool          // chaos: this is the second delivery
}

// lane delivers the events of one endpoint.
type lane struct {
	l        *Listener
	endpoint Endpoint
	queue    chan parcel
	slots    chan struct{}
	turn     chan struct{} // holds a value while a command runs
	through  chan struct{} // chaos: closed when the latest event is through with its delay; guarded by the listener's mu
}

func newLane(l *Listener, e Endpoint) *lane {
	nothing := make(chan struct{})
	close(nothing)
	return &lane{l: l, endpoint: e, queue: make(chan parcel, laneLength), slots: make(chan struct{}, laneWidth), turn: make(chan struct{}, 1), through: nothing}
}

// offer accepts an event for delivery. An event that was seen before is not accepted again, but its sight is returned;
// for one that the filters leave out it returns nil. When too many events wait, a live one is left for later, and a
// recovered one waits here.
func (a *lane) offer(ctx context.Context, r *api.TunnelRequest, recovered bool) *sight {
	l := a.l
	to, ok := a.endpoint.route(r)
	l.mu.Lock()
	s, fresh := l.seen.note(r.ID)
	if !fresh {
		l.mu.Unlock()
		if !ok {
			return nil
		}
		return s
	}
	if !ok {
		l.summary.Filtered++
		l.mu.Unlock()
		close(s.done)
		return nil
	}
	size := int64(len(r.Body))
	full := l.full()
	crowded := !recovered && (len(a.queue) >= laneLength/2 || l.weight > 0 && l.weight+size > laneBytes)
	if full || crowded {
		l.seen.forget(r.ID)
		if !full {
			l.leave(r.RequestedAt.Time)
		}
		l.mu.Unlock()
		return nil
	}
	l.admitted++
	l.arrivals++
	number := l.arrivals
	l.weight += size
	l.summary.Received++
	l.mu.Unlock()
	if to == nil {
		a.settle(parcel{event: r, sight: s, recovered: recovered}, Delivered{Event: r, Recovered: recovered})
		return s
	}
	p := parcel{event: r, to: to, sight: s, recovered: recovered, number: number}
	if l.cfg.Chaos != nil {
		a.tempt(p)
		return s
	}
	select {
	case a.queue <- p:
	case <-ctx.Done():
		a.abandon(p)
		return nil
	}
	return s
}

// leave records that an event is left for later. It keeps the earliest time: events come in the order of their capture,
// but one with a slow sender was received long before others that were captured first. The caller holds the lock.
func (l *Listener) leave(at time.Time) {
	if l.behind.IsZero() || at.Before(l.behind) {
		l.behind = at
	}
}

// abandon takes back an accepted event that can no longer be delivered.
func (a *lane) abandon(p parcel) {
	l := a.l
	l.mu.Lock()
	l.seen.forget(p.event.ID)
	l.weight -= int64(len(p.event.Body))
	l.admitted--
	l.summary.Received--
	l.mu.Unlock()
	close(p.sight.done)
}

// tempt applies chaos to an event.
func (a *lane) tempt(p parcel) {
	f := a.l.cfg.Chaos.fate(p.number)
	a.l.trial.met(f)
	if f.drop {
		a.settle(p, Delivered{Event: p.event, Target: p.to, TargetURL: p.to.String(), Recovered: p.recovered, Dropped: true})
		return
	}
	through := make(chan struct{})
	a.l.mu.Lock()
	before := a.through
	a.through = through
	if f.twice {
		p.twice = f.second
		a.l.extra++ // before the first delivery settles, which might end the listener
	}
	a.l.mu.Unlock()
	a.l.work.Go(func() {
		defer close(through)
		select {
		case <-time.After(f.delay):
		case <-a.l.ended:
			return
		}
		<-before // delayed events keep their order
		if f.hold > 0 {
			a.after(f.hold, p)
		} else {
			a.put(p)
		}
	})
}

// repeat schedules the second delivery of an event once the first was sent, so that it does not overtake that one,
// whose answer is reported.
func (a *lane) repeat(p parcel) {
	if p.twice > 0 && !p.again {
		p.again = true
		a.after(p.twice, p)
	}
}

// after queues an event when it is due.
func (a *lane) after(wait time.Duration, p parcel) {
	a.l.work.Go(func() {
		select {
		case <-time.After(wait):
			a.put(p)
		case <-a.l.ended:
		}
	})
}

// put queues an event, unless the listener ends.
func (a *lane) put(p parcel) {
	select {
	case a.queue <- p:
	case <-a.l.ended:
	}
}

// run starts deliveries in order until ctx ends. A server with a thread for each connection may handle two requests
// that arrive together in either order; so each gets a head start.
func (a *lane) run(ctx context.Context) {
	for {
		select {
		case p := <-a.queue:
			select {
			case a.slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			begun, answered := make(chan struct{}), make(chan struct{})
			a.l.work.Go(func() {
				defer func() { <-a.slots }()
				a.deliver(ctx, p, func() { close(begun); a.repeat(p) }, func() { close(answered) })
			})
			switch {
			case p.to.Command != "":
				<-answered
			case within(a.l.cfg.limits.order, begun):
				within(a.l.cfg.ahead(len(a.queue)), answered)
			}
		case <-ctx.Done():
			return
		}
	}
}

// headStart is how long the next delivery waits for the answer to the one before. A request that is answered within
// that time is handled in order by any server. The more events wait, the shorter it is: before the queue is full, two
// thousand are started a second.
func headStart(waiting int) time.Duration {
	return min(5*time.Millisecond, 250*time.Millisecond/time.Duration(max(waiting, 1)))
}

// within waits for done, at most for d, and reports whether it came.
func within(d time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// deliver sends an event to its target and reports the result. begun is called when it was sent, answered when it is
// over.
func (a *lane) deliver(ctx context.Context, p parcel, begun, answered func()) {
	l := a.l
	if !p.again {
		l.tell(Arrived{p.event})
	}
	if l.trial != nil && !p.again {
		l.trial.begin(p.number)
	}
	out, err := compose(p.event, *p.to, a.endpoint.Headers)
	var got answer
	if err != nil {
		begun()
		got = answer{failure: api.FailureUnknown, problem: err.Error(), declared: -1}
	} else {
		got = a.carry(ctx, out, l.cfg.limits.answer, l.evidenceLimit(), begun)
	}
	answered()
	select {
	case <-l.ended:
		if got.status == 0 { // interrupted by the end of the listener: the outcome is unknown and not reported
			return
		}
	default:
	}
	l.noticed(*p.to, got)
	if p.twice > 0 {
		l.trial.answered(p.event.ID, got)
	}
	if p.event.Respond && got.status != 0 && !got.whole {
		l.tell(Warning{fmt.Sprintf("the sender of %s is given the first %d bytes of the answer, not all of it (%s)", p.event.ID, len(got.body), got.cut)})
	}
	d := Delivered{
		Event: p.event, Target: p.to, TargetURL: out.url(), StatusCode: got.status, Took: got.took, Failure: got.failure, Problem: got.problem,
		Body: got.body[:min(len(got.body), keepPreview)], Size: got.observed, Truncated: got.status != 0 && (!got.whole || len(got.body) > keepPreview),
		Recovered: p.recovered, Duplicate: p.again, Command: p.to.Command != "", ExitCode: got.exit, Stderr: got.complaint,
	}
	if p.again {
		l.tell(d)
		l.mu.Lock()
		l.extra--
		l.mu.Unlock()
		l.endIfEnough()
		return
	}
	report := a.report(p.event, p.to.String(), out.url(), got)
	if p.recovered {
		// A recovery is reported as done afterwards, and the server counts only reports: they must be there by then.
		l.reports.deliver(ctx, report)
	} else {
		p.sight.attempt = report.DeliveryAttemptID
		l.reports.report(report)
	}
	a.settle(p, d)
}

// carry sends a request to its address or runs its command. begun is called once, when it was sent or will never be.
// The time limit of a command starts when its turn comes.
func (a *lane) carry(ctx context.Context, o outgoing, limit time.Duration, keep int, begun func()) answer {
	if o.to.Command != "" {
		return a.invoke(ctx, o, limit, keep, begun)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return a.l.carrier.send(ctx, o, keep, begun)
}

// settle records that an event is done with.
func (a *lane) settle(p parcel, d Delivered) {
	l := a.l
	l.mu.Lock()
	p.sight.ok, p.sight.shown = d.OK(), p.to == nil
	l.settled++
	l.weight -= int64(len(p.event.Body))
	switch {
	case d.Dropped:
	case p.to == nil:
		l.summary.Shown++
	case d.OK():
		l.summary.Delivered++
	default:
		l.summary.Failed++
	}
	l.mu.Unlock()
	close(p.sight.done)
	l.tell(d)
	l.endIfEnough()
}

// full reports whether no more events are accepted. The caller holds the lock.
func (l *Listener) full() bool {
	return l.stopping || l.cfg.ExitAfter > 0 && l.admitted >= l.cfg.ExitAfter
}

// endIfEnough ends the listener once ExitAfter events are settled.
func (l *Listener) endIfEnough() {
	if l.reached() {
		l.enough()
	}
}

// reached reports whether ExitAfter events are settled.
func (l *Listener) reached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg.ExitAfter > 0 && l.settled >= l.cfg.ExitAfter && l.extra == 0
}

func (l *Listener) evidenceLimit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.evidence
}

// noticed warns once when an address stops answering, or has no certificate to trust, and once when it answers again.
func (l *Listener) noticed(to Target, got answer) {
	if to.Command != "" {
		return
	}
	silent := got.status == 0 && (got.foreign || got.failure == api.FailureConnectionRefused || got.failure == api.FailureDNS || !got.maySent && got.failure == api.FailureTimeout)
	address := to.Scheme + "://" + to.Host
	l.mu.Lock()
	before := l.quiet[address]
	if silent || got.status != 0 {
		l.quiet[address] = silent
	}
	l.mu.Unlock()
	switch {
	case got.foreign && !before:
		l.tell(Warning{fmt.Sprintf("the certificate of %s is not trusted here (%s); --insecure takes any%s", address, got.problem, l.again())})
	case silent && !before:
		l.tell(Warning{fmt.Sprintf("nothing answers at %s (%s); an event that fails is not sent again by itself%s", address, got.problem, l.again())})
	case before && got.status != 0:
		l.tell(Warning{address + " answers again"})
	}
}

// again says how to send again what failed. The key of a temporary endpoint may not replay.
func (l *Listener) again() string {
	if l.cfg.Client.Anonymous() {
		return ""
	}
	endpoint := "EP"
	if ids := l.ids(); len(ids) == 1 {
		endpoint = ids[0]
	}
	return fmt.Sprintf("; to send again all that failed: hookglass replays run -e %s -q tunnel:failed --to tunnel", endpoint)
}

// Probe warns when a target does not accept connections, or has a certificate that is not trusted.
func (l *Listener) Probe(ctx context.Context, to Target) {
	conn, err := l.carrier.connect(ctx, to)
	if err != nil {
		l.noticed(to, failed(ctx, err, false))
		return
	}
	conn.Close()
}

// report converts the result of a delivery to a report.
func (a *lane) report(r *api.TunnelRequest, target, resolved string, got answer) api.DeliveryReport {
	took := got.took.Milliseconds()
	message := got.reason
	if got.status == 0 {
		message = got.problem
	}
	return api.DeliveryReport{
		EndpointID: a.endpoint.ID, WebhookRequestID: r.ID, TargetURL: target, StatusCode: api.Some(int64(got.status)),
		ResponseMessage: hookglass.Beginning(api.Text(message), hookglass.MessageLimit), ResponseTimeMS: &took, FailureCategory: got.failure, ReportVersion: 2,
		DeliveryAttemptID: newAttempt(), TunnelEvidence: evidence(resolved, got),
	}
}

func evidence(resolved string, got answer) api.TunnelEvidence {
	e := api.TunnelEvidence{ResolvedURL: resolved}
	if len(resolved) > hookglass.AddressLimit {
		e.ResolvedURL = ""
	}
	if got.status == 0 {
		return e
	}
	retained := int64(len(got.body))
	e.ContentType = hookglass.Beginning(api.Text(got.header.Get("Content-Type")), hookglass.EvidenceWordLimit)
	e.SetResponseHeaders(object(got.header))
	e.DecodedBytesObserved, e.RetainedBytes, e.CaptureComplete, e.TruncationReason = &got.observed, &retained, &got.whole, got.cut
	if got.declared >= 0 {
		e.DeclaredContentLength = &got.declared
	}
	e.Body, e.BodyEncoding = string(got.body), "utf8"
	if !utf8.Valid(got.body) {
		e.Body, e.BodyEncoding = base64.StdEncoding.EncodeToString(got.body), "base64"
	}
	return e
}

// object joins repeated fields, except for those that cannot be joined (RFC 9110, section 5.3). It leaves out the
// longest fields beyond the bounds of a report, which would otherwise be refused as a whole.
func object(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	size := 0
	for name, values := range h {
		out[name] = strings.Join(values, ", ")
		if name == "Set-Cookie" {
			out[name] = values[0]
		}
		size += len(name) + len(out[name])
	}
	names := slices.SortedFunc(maps.Keys(out), func(a, b string) int {
		return cmp.Or(len(b)+len(out[b])-len(a)-len(out[a]), strings.Compare(a, b))
	})
	for len(names) > hookglass.EvidenceFields || size > hookglass.EvidenceFieldsLimit {
		size -= len(names[0]) + len(out[names[0]])
		delete(out, names[0])
		names = names[1:]
	}
	return out
}
