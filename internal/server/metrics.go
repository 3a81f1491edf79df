package server

import (
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hookglass"
)

// metrics are the metrics of this process. No label holds an endpoint, an address or anything else that senders choose:
// the number of series must stay small.
type metrics struct {
	registry *prometheus.Registry
	captured prometheus.Counter
	bytes    prometheus.Counter
	group    prometheus.Histogram
	commit   prometheus.Histogram
	answers  *prometheus.CounterVec
	declared prometheus.Gauge

	mailRefused *prometheus.CounterVec
	attempts    *prometheus.CounterVec
	took        prometheus.Histogram

	duplicates                      prometheus.Counter
	lined, linedTargets, linedSince prometheus.Gauge
}

// newMetrics creates the metrics; ready and onReserve are called at each scrape.
func newMetrics(ready, onReserve func() bool) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		captured: prometheus.NewCounter(prometheus.CounterOpts{Name: "hookglass_events_captured_total", Help: "Events stored durably."}),
		bytes:    prometheus.NewCounter(prometheus.CounterOpts{Name: "hookglass_events_captured_bytes_total", Help: "Bytes of the bodies stored."}),
		group: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hookglass_capture_group_events", Help: "Events that shared one commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hookglass_capture_commit_seconds", Help: "Time from the start of a group to its commit on disk.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookglass_http_requests_total", Help: "Requests answered, without captures, by method and class of status.",
		}, []string{"method", "status"}),
		mailRefused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookglass_mail_refused_total", Help: "Recipients, messages and connections refused by SMTP and LMTP, by reason.",
		}, []string{"reason"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookglass_forward_attempts_total", Help: "Attempts to deliver events to forwarding targets: by what came of the attempt, and what became of the delivery.",
		}, []string{"outcome", "state"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hookglass_forward_attempt_seconds", Help: "Time from the resolution of a target's name to the last byte of its answer.", Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14),
		}),
		duplicates: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hookglass_forward_duplicates_total", Help: "Deliveries to forwarding targets that were skipped, because the same webhook was delivered before.",
		}),
		lined: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hookglass_forward_waiting_deliveries", Help: "Deliveries that are due and wait for their turn, because their targets have a rate limit; counted to 10,000 every 10 seconds.",
		}),
		linedTargets: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hookglass_forward_waiting_targets", Help: "Forwarding targets with a rate limit for which deliveries wait.",
		}),
		linedSince: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hookglass_forward_waiting_since_seconds", Help: "When the first of the deliveries that wait for a rate limit was due, in Unix time; 0: none waits.",
		}),
		declared: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hookglass_endpoints_file_applied", Help: "1 when the endpoints file as it is now is applied, 0 when it was refused or waits; 1 without one.",
		}),
	}
	m.registry.MustRegister(m.captured, m.bytes, m.group, m.commit, m.answers, m.mailRefused, m.attempts, m.took, m.duplicates, m.declared, m.lined, m.linedTargets, m.linedSince,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "hookglass_info", Help: "1; the version is a label.", ConstLabels: prometheus.Labels{"version": hookglass.Version}},
			func() float64 { return 1 }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "hookglass_ready", Help: "1 when the service accepts work, as /readyz says it: not while its storage takes no writes."},
			func() float64 { return oneIf(ready()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hookglass_disk_reserve", Help: "0 when the disk of the embedded database is full, what was held in reserve on it is given up for deleting, and nothing is captured; else 1.",
		}, func() float64 { return oneIf(!onReserve()) }))
	m.declared.Set(1)
	return m
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// applied observes the endpoints file.
func (m *metrics) applied(ok bool) { m.declared.Set(oneIf(ok)) }

// captureGroup observes one group commit; see store.Config.OnCapture.
func (m *metrics) captureGroup(events int, bytes int64, took time.Duration) {
	m.captured.Add(float64(events))
	m.bytes.Add(float64(bytes))
	m.group.Observe(float64(events))
	m.commit.Observe(took.Seconds())
}

// forwarded observes one attempt; see delivery.ForwardConfig.
func (m *metrics) forwarded(outcome string, state hookglass.ForwardState, took time.Duration) {
	m.attempts.WithLabelValues(outcome, string(state)).Inc()
	m.took.Observe(took.Seconds())
}

// inLine observes deliveries that wait for a turn; see delivery.ForwardConfig.
func (m *metrics) inLine(targets, deliveries int, since time.Time) {
	m.linedTargets.Set(float64(targets))
	m.lined.Set(float64(deliveries))
	m.linedSince.Set(0)
	if !since.IsZero() {
		m.linedSince.Set(float64(since.UnixMilli()) / 1000)
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// private is the handler of --metrics-listen: metrics, and profiles for whoever can reach that address. It leaves out
// pprof's command line, which no profiling tool needs and which may contain the database's password.
func (m *metrics) private() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.handler())
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// counted counts what the handler answers. A caller that has gone ends what is done for it, and the error that comes of
// that, which is not logged either, is not an answer.
func (m *metrics) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(c, r)
		if c.status >= http.StatusInternalServerError && r.Context().Err() != nil {
			return
		}
		method := r.Method
		switch method {
		case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions:
		default:
			method = "other"
		}
		m.answers.WithLabelValues(method, strconv.Itoa(c.status/100)+"xx").Inc()
	})
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
