package server

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hookglass/internal/store"
)

// Private is the handler of --metrics-listen.
func Private() http.Handler {
	return newMetrics(func() bool { return true }, func() bool { return false }).private()
}

// Counted is a handler whose answers are counted, and the figures.
func Counted(h http.Handler) (counted, figures http.Handler) {
	m := newMetrics(func() bool { return true }, func() bool { return false })
	return m.counted(h), m.handler()
}

// PrivateAddr is where a server serves that.
func PrivateAddr(s *Server) string { return s.private.Addr().String() }

// ReadArchive reads a backup whole and counts its rows.
func ReadArchive(r io.Reader) (rows int64, err error) {
	a, err := readArchive(r, check{})
	if err != nil {
		return 0, err
	}
	return a.rows, nil
}

// WriteArchive writes a backup of one table.
func WriteArchive(w io.Writer, t store.Table, rows [][]any) error {
	a, err := newArchiveWriter(w, manifest{Format: archiveFormat, Schema: 1})
	if err != nil {
		return err
	}
	if err := a.Table(t); err != nil {
		return err
	}
	for _, r := range rows {
		if err := a.Row(r); err != nil {
			return err
		}
	}
	if err := a.Counters(map[string]int64{t.Name: int64(len(rows))}); err != nil {
		return err
	}
	return a.close()
}

// ReadRows reads a backup into memory.
func ReadRows(r io.Reader) (rows [][]any, err error) {
	var m rowsKept
	_, err = readArchive(r, &m)
	return m.rows, err
}

// ParseRow reads one row.
var ParseRow = parseRow

type rowsKept struct {
	check
	rows [][]any
}

func (m *rowsKept) Row(values []any) error { m.rows = append(m.rows, values); return nil }

// Certificate is what a TLS listener uses of two files at a time, and says of them in a log.
func Certificate(certFile, keyFile string, log *slog.Logger) (at func(time.Time) *tls.Certificate, err error) {
	c, err := loadCertificate(certFile, keyFile)
	c.log = log
	return c.at, err
}

var metricName = regexp.MustCompile(`fqName: "([^"]*)"`)

// MetricNames are the figures that the program gives.
func MetricNames() []string {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		newMetrics(nil, nil).registry.Describe(descriptions)
		close(descriptions)
	}()
	var names []string
	for d := range descriptions {
		if m := metricName.FindStringSubmatch(d.String()); m != nil && !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// GarbagePercent is the GOGC for so many bytes that are alive, in a process that asks for so many a second.
var (
	GarbagePercent = garbagePercent
	Lately         = lately
)

// Unequal and CutShort are what a move ends with.
var (
	Unequal  = unequal
	CutShort = cutShort
)

// NewGate is a gate, and what opens it.
func NewGate(draining <-chan struct{}, courtesy time.Duration) (*gate, func(http.Handler, Capturer)) {
	g := newGate(draining, courtesy)
	return g, g.open
}

// Capturer is capturer.
type Capturer = capturer

var WritePrivate = writePrivate

// Connections is connections.
var Connections = connections

// EnoughFiles is enoughFiles.
var EnoughFiles = enoughFiles

// Remedied is remedied.
var Remedied = remedied

// CurlLine and EnvironmentLine are what dev prints for a terminal.
var CurlLine, EnvironmentLine = curlLine, environmentLine

// NewLogger is newLogger.
var NewLogger = newLogger

// Answering is answering.
var Answering = answering

// Settle is settle of a server without a database, whose time is over.
func Settle(parts *sync.WaitGroup, log *slog.Logger) error {
	return (&Server{log: log}).settle(parts, time.Now())
}
