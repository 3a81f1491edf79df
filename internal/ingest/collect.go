package ingest

import (
	"io"
	"time"

	"hookglass"
	"hookglass/internal/intake"
)

// collect reads a body to its end; see [intake.Collect]. size is -1 if it is not known in advance.
func (f *Front) collect(r io.Reader, size int64, l *intake.Lease, pace *intake.Pace) ([]byte, error) {
	body, err := intake.Collect(r, size, f.cfg.MaxBodyBytes, l, f.cfg.BudgetWait, pace)
	if err == intake.ErrTooLarge {
		err = errTooLarge
	}
	if hookglass.Is(err, hookglass.CodeUnavailable) {
		f.crowded.Tell(f.log.Warn, "webhooks are refused: there is no room in memory for their bodies", "bytes", f.cfg.InFlightBytes)
	}
	return body, err
}

func (f *Front) newPace(now time.Time) intake.Pace {
	return intake.NewPace(now, f.cfg.BodyGrace, f.cfg.MinBodyRate)
}
