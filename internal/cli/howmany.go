package cli

import (
	"errors"
	"strconv"
)

// howMany is a flag for a number of at least one. Unset it is 0, which means the server's default; so a typed 0 must be
// refused.
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
