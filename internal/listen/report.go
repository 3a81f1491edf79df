package listen

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"hookglass/api"
	"hookglass/client"
)

const (
	maxReports = 10_000           // that are kept for later
	maxKept    = 64 << 20         // bytes of the answers in them, beyond the newest
	ackLimit   = 10 * time.Second // for the server to say that it has a report of the socket
	reportCall = 15 * time.Second
)

// reporter brings reports to the server: over the socket while there is one, else by REST, and again until the server
// has them. A report counts once however often it comes, for it has an id of its own.
type reporter struct {
	client *client.Client
	warn   func(string)
	wake   chan struct{}

	mu    sync.Mutex
	link  *session
	order []string
	kept  map[string]*kept
	bytes int // of the answers in them
	bare  int // of order, so many from the first have no answer any more
}

// kept is a report that the server is not known to have.
type kept struct {
	report api.DeliveryReport
	sent   time.Time // over the socket; zero: to be sent by REST
}

func newReporter(c *client.Client, warn func(string)) *reporter {
	return &reporter{client: c, warn: warn, wake: make(chan struct{}, 1), kept: make(map[string]*kept)}
}

func newAttempt() string { return rand.Text() }

// attach makes a socket the way of reports.
func (r *reporter) attach(s *session) {
	r.mu.Lock()
	r.link = s
	r.mu.Unlock()
	r.stir()
}

// detach leaves a socket. What it took and did not confirm goes by REST.
func (r *reporter) detach() {
	r.mu.Lock()
	r.link = nil
	for _, k := range r.kept {
		k.sent = time.Time{}
	}
	r.mu.Unlock()
	r.stir()
}

func (r *reporter) stir() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// report takes a report and returns as soon as the network has it, or it is kept for later.
func (r *reporter) report(report api.DeliveryReport) {
	r.mu.Lock()
	link := r.link
	k := r.keep(report)
	if link != nil {
		link.sign(&k.report)
		k.sent = time.Now()
		report = k.report
	}
	r.mu.Unlock()
	if link != nil && link.perform("delivery_report", report.EndpointID, report) == nil {
		return
	}
	r.mu.Lock()
	k.sent = time.Time{}
	r.mu.Unlock()
	r.stir()
}

// deliver reports by REST and returns when the server has the report, or it is kept for later.
func (r *reporter) deliver(ctx context.Context, report api.DeliveryReport) {
	r.mu.Lock()
	k := r.keep(report)
	k.sent = time.Now().Add(reportCall) // nobody else sends it meanwhile
	if r.link != nil {
		r.link.sign(&k.report)
	}
	report = k.report
	r.mu.Unlock()
	if r.send(ctx, report) {
		return
	}
	r.mu.Lock()
	k.sent = time.Time{}
	r.mu.Unlock()
	r.stir()
}

func (r *reporter) keep(report api.DeliveryReport) *kept {
	k := &kept{report: report}
	r.kept[report.DeliveryAttemptID] = k
	r.order = append(r.order, report.DeliveryAttemptID)
	r.bytes += len(report.Body)
	for len(r.order) > maxReports {
		if _, there := r.kept[r.order[0]]; there {
			r.warn("more than 10000 results could not be reported; the oldest is given up")
			r.drop(r.order[0])
		}
		r.shift()
	}
	for ; r.bytes > maxKept && r.bare < len(r.order)-1; r.bare++ {
		if old := r.kept[r.order[r.bare]]; old != nil {
			r.bytes -= len(old.report.Body)
			old.report.TunnelEvidence = withoutBody(old.report.TunnelEvidence)
		}
	}
	return k
}

// drop forgets a report. The caller holds the lock.
func (r *reporter) drop(attempt string) {
	if k := r.kept[attempt]; k != nil {
		r.bytes -= len(k.report.Body)
		delete(r.kept, attempt)
	}
}

// shift takes the first report out of the order. The caller holds the lock.
func (r *reporter) shift() {
	r.order, r.bare = r.order[1:], max(r.bare-1, 0)
}

// withoutBody is what is known of an answer whose body takes too much memory to be kept.
func withoutBody(e api.TunnelEvidence) api.TunnelEvidence {
	if e.Body == "" {
		return e
	}
	none, whole := int64(0), false
	e.Body, e.RetainedBytes, e.CaptureComplete, e.TruncationReason = "", &none, &whole, "body_limit"
	return e
}

// acked notes what the server said of a report.
func (r *reporter) acked(a api.DeliveryReportAck) {
	r.mu.Lock()
	_, there := r.kept[a.DeliveryAttemptID]
	r.drop(a.DeliveryAttemptID)
	r.mu.Unlock()
	if there && a.Status != "ok" {
		r.warn("a result was not taken: " + a.Error)
	}
}

// send reports by REST. It returns false where it should be tried again.
func (r *reporter) send(ctx context.Context, report api.DeliveryReport) bool {
	ctx, cancel := context.WithTimeout(ctx, reportCall)
	defer cancel()
	err := r.client.ReportDelivery(ctx, report)
	if refused, ok := err.(*client.Error); ok && refused.Status == 403 && report.TunnelClientCredential != "" {
		// The pair is of a client that the server no longer knows. Without it the report is as good.
		report.TunnelClientID, report.TunnelClientCredential = "", ""
		err = r.client.ReportDelivery(ctx, report)
	}
	if err != nil && !hopeless(err) {
		return false
	}
	r.mu.Lock()
	r.drop(report.DeliveryAttemptID)
	r.mu.Unlock()
	if err != nil {
		r.warn("a result was not taken: " + err.Error())
	}
	return true
}

// run sends what is kept, until ctx ends.
func (r *reporter) run(ctx context.Context) {
	pause := newBackoff()
	look := time.NewTicker(ackLimit)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-look.C:
		}
		for ctx.Err() == nil {
			report, ok := r.next()
			if !ok {
				break
			}
			if r.send(ctx, report) {
				pause = newBackoff()
				continue
			}
			select {
			case <-time.After(pause.next(false)):
			case <-r.wake: // connected again, or more came
			case <-ctx.Done():
			}
		}
	}
}

// next is the oldest report that is due by REST.
func (r *reporter) next() (api.DeliveryReport, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.order) > 0 && r.kept[r.order[0]] == nil {
		r.shift()
	}
	for _, id := range r.order {
		if k := r.kept[id]; k != nil && time.Since(k.sent) > ackLimit {
			return k.report, true
		}
	}
	return api.DeliveryReport{}, false
}

// waiting is how many reports the server is not known to have.
func (r *reporter) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.kept)
}
