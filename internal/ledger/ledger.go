// Package ledger shows that nothing was lost: what arrived at an endpoint in a window of time, what was stored of it,
// and where it stands with everything that is to receive it. It hides how a window is chosen so that all figures cover
// it. The store computes the sums, and [hookglass.Ledger.Differences] checks them.
package ledger

import (
	"time"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// Bounds of a window. Figures are kept by the minute for two days, and then by the hour.
const (
	usualWindow  = time.Hour
	maxWindow    = 31 * 24 * time.Hour
	maxByMinutes = 24 * time.Hour
	minutesBack  = 48 * time.Hour
	maxBack      = 399 * 24 * time.Hour
)

// Window is the time that a ledger covers: whole minutes, or whole hours if it is long or long ago. To is exclusive.
type Window struct{ From, To time.Time }

// ParseWindow parses the bounds of a window, each a time as in a search or empty: to is now then, and from an hour
// before to. It extends the window to whole minutes or hours. It answers validation_failed.
func ParseWindow(from, to string, now time.Time) (w Window, err error) {
	w.To = now
	if to != "" {
		if w.To, err = query.ParseTime(to, now); err != nil {
			return w, hookglass.Invalid("to", "must be an ISO 8601 time, or a duration as 30m, 2h or 7d that counts back from now")
		}
	}
	w.From = w.To.Add(-usualWindow)
	if from != "" {
		if w.From, err = query.ParseTime(from, now); err != nil {
			return w, hookglass.Invalid("from", "must be an ISO 8601 time, or a duration as 30m, 2h or 7d that counts back from now")
		}
	}
	switch {
	case !w.From.Before(w.To):
		return w, hookglass.Invalid("from", "must be before to")
	case w.To.Sub(w.From) > maxWindow:
		return w, hookglass.Invalid("from", "may be 31 days before to at most")
	case now.Sub(w.From) > maxBack:
		return w, hookglass.Invalid("from", "may be 399 days ago at most")
	}
	grain := w.grain(now)
	w.From = w.From.Truncate(grain)
	w.To = w.To.Add(grain - 1).Truncate(grain)
	return w, nil
}

func (w Window) grain(now time.Time) time.Duration {
	if w.To.Sub(w.From) > maxByMinutes || now.Sub(w.From) > minutesBack {
		return time.Hour
	}
	return time.Minute
}

// Read returns the ledger of an endpoint. A window that begins before the first figures is cut to where they begin. It
// answers not_found.
func Read(v *store.View, ref string, w Window, now time.Time) (hookglass.Ledger, error) {
	since, err := v.BooksFrom()
	if err != nil {
		return hookglass.Ledger{}, err
	}
	if w.From.Before(since) {
		grain := w.grain(now)
		w.From = since.Add(grain - 1).Truncate(grain)
		if w.To.Before(w.From) {
			w.To = w.From
		}
	}
	l, err := v.Ledger(ref, w.From, w.To)
	l.Since = since
	return l, err
}
