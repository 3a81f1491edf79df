package server

import (
	"bytes"
	"io"
	"log/slog"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	stuckAfter = time.Second // how long to wait for a line to be written
	heldLines  = 1024        // lines kept for a stuck reader
)

// logWriter writes log lines so that a stuck reader cannot block the service: a stopped terminal, a pager, a full pipe.
// Write returns once its line is written. After one has taken too long, lines are queued until the reader continues,
// and those that do not fit are counted.
type logWriter struct {
	lines chan logLine
	stop  chan struct{}
	stuck atomic.Bool
	lost  atomic.Int64
}

type logLine struct {
	text    []byte
	written chan struct{}
}

// newLogWriter returns a writer that must be closed. tell is called with the number of lost lines, never concurrently
// with a write.
func newLogWriter(to io.Writer, tell func(lost int64)) *logWriter {
	w := &logWriter{lines: make(chan logLine, heldLines), stop: make(chan struct{})}
	go w.run(to, tell)
	return w
}

// Write never fails: there would be nowhere to report it.
func (w *logWriter) Write(text []byte) (int, error) {
	l := logLine{bytes.Clone(text), make(chan struct{})}
	select {
	case w.lines <- l:
	default:
		w.lost.Add(1)
		return len(text), nil
	}
	if w.stuck.Load() {
		return len(text), nil
	}
	late := time.NewTimer(stuckAfter)
	defer late.Stop()
	select {
	case <-l.written:
	case <-w.stop:
	case <-late.C:
		w.stuck.Store(true)
	}
	return len(text), nil
}

func (w *logWriter) run(to io.Writer, tell func(lost int64)) {
	for {
		select {
		case l := <-w.lines:
			_, _ = to.Write(l.text)
			w.stuck.Store(false)
			close(l.written)
			if lost := w.lost.Swap(0); lost > 0 {
				tell(lost)
			}
		case <-w.stop:
			return
		}
	}
}

// close ends the writer. Lines before it are written, unless the reader is stuck.
func (w *logWriter) close() { close(w.stop) }

// newLogger logs to w in the configured form until it is closed, the same warning seldom. Values never contain secrets:
// types that do have no text of them. A missing reader does not end the process, as it otherwise would when standard
// error is closed (package os/signal, "SIGPIPE").
func newLogger(w io.Writer, format, level string) (log *slog.Logger, closeLog func()) {
	signal.Ignore(syscall.SIGPIPE)
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // Validate refuses what is no level
	form := func(w io.Writer) *slog.Logger {
		options := &slog.HandlerOptions{Level: least}
		if strings.EqualFold(format, "json") {
			return slog.New(slog.NewJSONHandler(w, options))
		}
		return slog.New(slog.NewTextHandler(w, options))
	}
	lines := newLogWriter(w, func(lost int64) { form(w).Warn("lines of the log were lost: its reader stood still", "lost", lost) })
	return slog.New(newSeldom(form(lines).Handler())), lines.close
}
