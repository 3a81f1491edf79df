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

// ParseTime parses a time as people and programs write it: RFC 3339 and the other common forms of ISO 8601, in UTC
// where there is no offset, or a duration that counts back from now. The caller should replace its error with one that
// names the field. It never returns the zero time, which callers use for "no bound" and clients for a time that was
// never set.
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
	upper := strings.ToUpper(s) // RFC 3339 allows a lower-case t and z
	var leap time.Duration
	if len(upper) > 18 && upper[16:19] == ":60" { // a leap second, which package time does not know
		upper, leap = upper[:16]+":59"+upper[19:], time.Second
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, upper); err == nil {
			t = t.Add(leap)
			if t.IsZero() {
				t = t.Add(1)
			}
			return t.UTC(), nil
		}
	}
	return time.Time{}, errors.New("query: not a time")
}

// layouts are the forms of a time. Package time takes a fraction behind the seconds of each.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", time.DateOnly,
	"2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", // offsets as date +%z and PostgreSQL write them
	"20060102T150405Z0700", "20060102T150405", // the basic format
}

// maxAgo bounds a duration: no event is older than this program.
const maxAgo = 100 * 365 * 24 * time.Hour
