package cli

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"hookglass/internal/query"
	"hookglass/internal/server"
)

// ago is a flag for a past time, as the API takes it: ISO 8601, or a duration that the server counts back from its now.
// The clock of this machine decides nothing, since it may be off. A time without an offset is of this machine's zone,
// as tables show times; the API would take it for UTC.
type ago string

// local are the forms of a time without an offset.
var local = []string{time.DateTime, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly, "20060102T150405"}

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *ago) UnmarshalText(text []byte) error {
	for _, layout := range local {
		if t, err := time.ParseInLocation(layout, strings.ToUpper(string(text)), time.Local); err == nil {
			text = []byte(t.Format(time.RFC3339Nano))
		}
	}
	now := time.Now()
	if t, err := query.ParseTime(string(text), now); err == nil && t.Before(now.Add(24*time.Hour)) { // no clock is off by that
		*a = ago(text)
		return nil
	}
	d, err := server.ParseDuration(string(text)) // also 1h30m
	if err != nil {
		return errors.New("must be a duration that counts back from now, such as 30m, 2h or 7d, or a past time in ISO 8601")
	}
	*a = ago(fmt.Sprintf("%ds", int64(math.Ceil(d.Seconds()))))
	return nil
}
