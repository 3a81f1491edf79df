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
