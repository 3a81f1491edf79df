package store

import (
	"database/sql"
	"time"
)

// The following convert between Go's values and those of columns.

// now returns the time as the store keeps it: in UTC, in whole microseconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// micros converts a time to a column value; the zero time is NULL.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// fromMicros is the inverse of micros.
func fromMicros(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

func nullString(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func nullInt(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
