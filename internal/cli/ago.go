package cli

import (
	"errors"
	"time"

	"hookglass/internal/query"
	"hookglass/internal/server"
)

// ago is a flag for a past time, as the API takes it: a duration that counts back from now, or ISO 8601. Its value is
// how long ago that is.
type ago time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *ago) UnmarshalText(text []byte) error {
	if d, err := server.ParseDuration(string(text)); err == nil { // also 1h30m
		*a = ago(d)
		return nil
	}
	now := time.Now()
	t, err := query.ParseTime(string(text), now)
	if err != nil || t.After(now) {
		return errors.New("must be a duration that counts back from now, such as 30m, 2h or 7d, or a past time in ISO 8601")
	}
	*a = ago(now.Sub(t))
	return nil
}
