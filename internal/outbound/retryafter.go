package outbound

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hookglass"
)

// RetryAfter returns how long a response asks to wait (RFC 9110, section 10.2.3): its seconds, or the time until its
// date, but at most longest. A value that cannot be parsed counts as none.
func RetryAfter(h hookglass.Headers, now time.Time, longest time.Duration) time.Duration {
	value := h.Get("Retry-After")
	if value == "" { // the usual case
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
	switch {
	case err == nil:
		return min(time.Duration(n)*time.Second, longest)
	case errors.Is(err, strconv.ErrRange):
		return longest
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, at.Sub(now)), longest)
	}
	return 0
}
