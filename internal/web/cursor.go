package web

import (
	"encoding/base64"
	"strconv"
	"strings"

	"hookglass"
)

// cursor encodes a place in an endpoint's events for a browser. It is opaque.
func cursor(seq int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte("e" + strconv.FormatInt(seq, 36)))
}

// firstPage cuts a list that may go on to a page. older is the cursor of the rest, or "" if there is none.
func firstPage[T any](all []T, size int, num func(T) int64) (page []T, older string) {
	if len(all) <= size {
		return all, ""
	}
	return all[:size], cursor(num(all[size-1]))
}

// place parses a cursor. The empty one is 0.
func place(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	if b, err := base64.RawURLEncoding.DecodeString(cursor); err == nil {
		if digits, ok := strings.CutPrefix(string(b), "e"); ok {
			if seq, err := strconv.ParseInt(digits, 36, 64); err == nil && seq >= 0 {
				return seq, nil
			}
		}
	}
	return 0, hookglass.Invalid("cursor", "is not a place in this list")
}
