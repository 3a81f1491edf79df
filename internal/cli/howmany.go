package cli

import (
	"errors"
	"strconv"
)

// howMany is a flag that says how many, one at least. Where it is not given it is 0, and the server's own default
// holds: a 0 that somebody typed must not become that.
type howMany int

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *howMany) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 {
		return errors.New("must be a whole number, 1 or more")
	}
	*h = howMany(n)
	return nil
}
