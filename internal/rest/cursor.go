package rest

import (
	"encoding/base64"
	"encoding/binary"

	"hookglass"
)

const defaultLimit = 25 // of a page that is asked for by cursor alone (decisions, section 3)

// cursor is a row number as callers carry it: opaque, so that nobody builds on it.
func cursor(num int64) *string {
	s := base64.RawURLEncoding.EncodeToString(binary.AppendUvarint([]byte{'n'}, uint64(num)))
	return &s
}

// position reads where a list of the kind of decisions, section 13, "Paging" begins and how far it goes;
// limit 0 is all of it.
func position(limit int, cursor string) (after int64, most int, err error) {
	if cursor == "" {
		return 0, limit, nil
	}
	if limit == 0 {
		limit = defaultLimit
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil && len(b) > 1 && b[0] == 'n' {
		if n, size := binary.Uvarint(b[1:]); size == len(b)-1 && n < 1<<63 {
			return int64(n), limit, nil
		}
	}
	return 0, 0, hookglass.Invalid("cursor", "is not the next_cursor of an answer")
}
