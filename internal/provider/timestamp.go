package provider

import (
	"strconv"
	"time"

	"hookglass"
)

// readTime reads a timestamp as milliseconds since 1970.
func readTime(text, unit string) (int64, bool) {
	switch unit {
	case "rfc3339":
		t, err := time.Parse(time.RFC3339Nano, text)
		return t.UnixMilli(), err == nil
	case "http":
		t, err := time.Parse(hookglass.HTTPDate, text)
		return t.UnixMilli(), err == nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	const bound = 1 << 42 // far beyond any clock, far from overflow
	if err != nil || n < 0 || n > bound*1000 || unit == "s" && n > bound {
		return 0, false
	}
	if unit == "s" {
		n *= 1000
	}
	return n, true
}

// outside reports whether a time in milliseconds differs from now by more than the tolerance in seconds. Unless fine,
// whole seconds are compared, as most libraries do of stamps in seconds; otherwise a request at the edge would depend
// on its milliseconds.
func outside(stamp, now, tolerance int64, pastOnly, fine bool) bool {
	if !fine {
		stamp, now = stamp/1000*1000, now/1000*1000
	}
	age := now - stamp
	return age > tolerance*1000 || !pastOnly && -age > tolerance*1000
}
