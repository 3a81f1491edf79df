package mcp

import (
	"encoding/base64"
	"encoding/binary"

	"hookglass"
	"hookglass/api"
)

// The lists that cursors belong to: one of another list is refused.
const (
	ofEndpoints  byte = 'n'
	ofEvents     byte = 'e'
	ofCases      byte = 'c'
	ofActions    byte = 'o'
	ofActionRuns byte = 'v'
	ofAlerts     byte = 'a'
	ofArrivals   byte = 'w'
)

// cursor is a place in a list as callers carry it: opaque, so that nobody builds on it.
func cursor(list byte, place int64) *string {
	s := base64.RawURLEncoding.EncodeToString(binary.AppendUvarint([]byte{list}, uint64(place)))
	return &s
}

// place reads what cursor wrote; "" is 0.
func place(list byte, cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	if n, ok := placed(list, cursor); ok {
		return n, nil
	}
	return 0, hookglass.Invalid("cursor", "is not the next_cursor of an answer of this tool")
}

func placed(list byte, cursor string) (int64, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < 2 || b[0] != list {
		return 0, false
	}
	n, size := binary.Uvarint(b[1:])
	return int64(n), size == len(b)-1 && n < 1<<63
}

// pageOf makes an answer of one more than the page holds, which tells whether the list goes on.
func pageOf[T, U any](list byte, limit int, found []T, num func(T) int64, write func(T) U) (out api.List[U]) {
	if len(found) > limit {
		found = found[:limit]
		out.Meta.NextCursor = cursor(list, num(found[limit-1]))
	}
	out.Data = make([]U, len(found))
	for i, f := range found {
		out.Data[i] = write(f)
	}
	return out
}
