package outbound

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hookglass"
)

// RetryAfter is for how long an answer asks to be left alone (RFC 9110, section 10.2.3): its seconds, or the time until
// its date, up to the longest that is honoured. What cannot be read asks for nothing.
func RetryAfter(h hookglass.Headers, now time.Time, longest time.Duration) time.Duration {
	value := h.Get("Retry-After")
	if value == "" { // as most
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
