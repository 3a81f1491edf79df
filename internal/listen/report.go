package listen

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"hookglass/api"
	"hookglass/client"
)

const (
	maxReports = 10_000           // kept for later
	maxKept    = 64 << 20         // bytes of the answers in them, except the newest's
	ackLimit   = 10 * time.Second // for the server to acknowledge a report sent over the socket
	reportCall = 15 * time.Second
)

// reporter sends reports to the server: over the socket while there is one, otherwise by REST, repeatedly until the
// server has them. Each report has an id, so repetitions count once.
type reporter struct {
	client *client.Client
	warn   func(string)
	wake   chan struct{}

	mu    sync.Mutex
	link  *session
	order []string // attempts; those that are not in kept are reported
	kept  map[string]*kept
	bytes int // of the answers in the kept reports
	bare  int // the first this many in order have lost their answers
}

// kept is a report that the server may not have yet.
type kept struct {
	report api.DeliveryReport
	sent   time.Time // when it was sent over the socket; zero: send it by REST
}

func newReporter(c *client.Client, warn func(string)) *reporter {
	return &reporter{client: c, warn: warn, wake: make(chan struct{}, 1), kept: make(map[string]*kept)}
}

func newAttempt() string { return rand.Text() }

// attach sends reports over a socket from now on.
func (r *reporter) attach(s *session) {
	r.mu.Lock()
	r.link = s
	r.mu.Unlock()
	r.stir()
}

// detach stops using the socket. Reports that it has not confirmed are sent by REST.
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

// report sends a report over the socket, without waiting for the acknowledgement, or leaves it to be sent by REST.
func (r *reporter) report(report api.DeliveryReport) {
	r.mu.Lock()
	link := r.link
	k, full := r.keep(report)
	if link != nil {
		link.sign(&k.report)
		k.sent = time.Now()
		report = k.report
	}
	r.mu.Unlock()
	if full {
		r.warn(tooMany)
	}
	if link != nil && link.report(report) == nil {
		return
	}
	r.mu.Lock()
	k.sent = time.Time{}
	r.mu.Unlock()
	r.stir()
}

// deliver sends a report by REST, and returns when the server has it or the attempt has failed; then it is retried
// later.
func (r *reporter) deliver(ctx context.Context, report api.DeliveryReport) {
	r.mu.Lock()
	k, full := r.keep(report)
	k.sent = time.Now().Add(reportCall) // so that run does not send it meanwhile
	if r.link != nil {
		r.link.sign(&k.report)
	}
	report = k.report
	r.mu.Unlock()
	if full {
		r.warn(tooMany)
	}
	if r.send(ctx, report) {
		return
	}
	r.mu.Lock()
	k.sent = time.Time{}
	r.mu.Unlock()
	r.stir()
}

// confirm sends a report by REST if the server may not have it yet, and returns when it has or the attempt has failed.
func (r *reporter) confirm(ctx context.Context, attempt string) {
	r.mu.Lock()
	k := r.kept[attempt]
	if k == nil {
		r.mu.Unlock()
		return
	}
	report := k.report
	r.mu.Unlock()
	r.send(ctx, report)
}

// tooMany is the warning for a report that was dropped.
const tooMany = "more than 10000 results could not be reported; the oldest was dropped"

// keep adds a report. full says that the oldest one was dropped for it. The caller holds the lock.
func (r *reporter) keep(report api.DeliveryReport) (k *kept, full bool) {
	k = &kept{report: report}
	r.kept[report.DeliveryAttemptID] = k
	r.order = append(r.order, report.DeliveryAttemptID)
	r.bytes += len(report.Body)
	if full = len(r.kept) > maxReports; full {
		r.trim()
		r.drop(r.order[0])
		r.shift()
	}
	if len(r.order) > 2*maxReports {
		r.tidy()
	}
	for ; r.bytes > maxKept && r.bare < len(r.order)-1; r.bare++ {
		if old := r.kept[r.order[r.bare]]; old != nil {
			r.bytes -= len(old.report.Body)
			old.report.TunnelEvidence = withoutBody(old.report.TunnelEvidence)
		}
	}
	return k, full
}

// drop removes a report. The caller holds the lock.
func (r *reporter) drop(attempt string) {
	if k := r.kept[attempt]; k != nil {
		r.bytes -= len(k.report.Body)
		delete(r.kept, attempt)
	}
}

// shift removes the first entry of order. The caller holds the lock.
func (r *reporter) shift() {
	r.order, r.bare = r.order[1:], max(r.bare-1, 0)
}

// trim removes reports that the server has from the beginning of order. The caller holds the lock.
func (r *reporter) trim() {
	for len(r.order) > 0 && r.kept[r.order[0]] == nil {
		r.shift()
	}
}

// tidy removes all reports that the server has from order. The caller holds the lock.
func (r *reporter) tidy() {
	var order []string
	bare := 0
	for i, id := range r.order {
		if r.kept[id] == nil {
			continue
		}
		if order = append(order, id); i < r.bare {
			bare++
		}
	}
	r.order, r.bare = order, bare
}

// withoutBody returns evidence without its body, to save memory.
func withoutBody(e api.TunnelEvidence) api.TunnelEvidence {
	if e.Body == "" {
		return e
	}
	none, whole := int64(0), false
	e.Body, e.RetainedBytes, e.CaptureComplete, e.TruncationReason = "", &none, &whole, "body_limit"
	return e
}

// acked handles the server's acknowledgement of a report.
func (r *reporter) acked(a api.DeliveryReportAck) {
	r.mu.Lock()
	_, there := r.kept[a.DeliveryAttemptID]
	r.drop(a.DeliveryAttemptID)
	r.mu.Unlock()
	if there && a.Status != "ok" {
		r.warn("a result was not taken: " + a.Error)
	}
}

// send sends a report by REST. It returns false if that should be retried.
func (r *reporter) send(ctx context.Context, report api.DeliveryReport) bool {
	ctx, cancel := context.WithTimeout(ctx, reportCall)
	defer cancel()
	err := r.client.ReportDelivery(ctx, report)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == 403 && report.TunnelClientCredential != "" {
		// The server no longer knows this client. The report is valid without naming it.
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

// run sends kept reports until ctx ends.
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

// next returns the oldest report that is due by REST.
func (r *reporter) next() (api.DeliveryReport, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trim()
	for _, id := range r.order {
		if k := r.kept[id]; k != nil && time.Since(k.sent) > ackLimit {
			return k.report, true
		}
	}
	return api.DeliveryReport{}, false
}

// waiting returns how many reports the server may not have yet.
func (r *reporter) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.kept)
}
