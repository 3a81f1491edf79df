package query

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

const timeForms = "a duration as 30m, 2h or 7d, a date, or a time as 2026-11-20T10:00:00Z"

// units are those of durations. A day has 24 hours, because times are in UTC.
var units = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// ParseTime parses a time as people write it: RFC 3339, the same without an offset or a date alone, both in UTC, or a
// duration that counts back from now. The caller should replace its error with one that names the field. It never
// returns the zero time, which callers use for "no bound" and clients for a time that was never set.
func ParseTime(s string, now time.Time) (time.Time, error) {
	if len(s) > 1 {
		if unit, ok := units[lower(s[len(s)-1])]; ok {
			n, err := strconv.ParseUint(s[:len(s)-1], 10, 31)
			if err != nil || int64(n) > int64(maxAgo/unit) {
				return time.Time{}, errors.New("query: not a duration")
			}
			return now.Add(-time.Duration(n) * unit), nil
		}
	}
	// RFC 3339 allows a lower-case t and z; the forms without an offset are ISO 8601.
	upper := strings.ToUpper(s)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, upper); err == nil {
			if t.IsZero() {
				t = t.Add(1)
			}
			return t.UTC(), nil
		}
	}
	return time.Time{}, errors.New("query: not a time")
}

// maxAgo bounds a duration: no event is older than this program.
const maxAgo = 100 * 365 * 24 * time.Hour
