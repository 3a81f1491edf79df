package server

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"
)

const (
	stuckAfter = time.Second // how long a line is waited for
	heldLines  = 1024        // are kept for a reader that stands still
)

// logWriter writes lines of the log such that whoever reads them cannot hold up the service by standing still: a
// terminal that was stopped, a pager, a pipe that nobody empties. Write returns when its line is written. Once one has
// taken too long, lines are kept until the reader goes on, and those that there is no room for are counted.
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

// newLogWriter writes to the writer until close. tell is called, beside no other write, with the number of lines that
// were lost.
func newLogWriter(to io.Writer, tell func(lost int64)) *logWriter {
	w := &logWriter{lines: make(chan logLine, heldLines), stop: make(chan struct{})}
	go w.run(to, tell)
	return w
}

// Write never fails: there is nowhere to say so.
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

// close ends it. What was written before is written, unless the reader stands still.
func (w *logWriter) close() { close(w.stop) }
