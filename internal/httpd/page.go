package httpd

import (
	"encoding/base64"
	"encoding/binary"

	"hookglass"
	"hookglass/api"
)

// List identifies a list, so that a cursor of another list is refused. All edges use the same value for a list, so a
// cursor is valid at each of them.
type List byte

// Cursor encodes a place in a list. It is opaque, so that callers do not depend on its form.
func (l List) Cursor(place int64) *string {
	return new(base64.RawURLEncoding.EncodeToString(binary.AppendUvarint([]byte{byte(l)}, uint64(place))))
}

// Place reads what Cursor wrote; "" is 0. It answers validation_failed.
func (l List) Place(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err == nil && len(b) > 1 && b[0] == byte(l) {
		if n, size := binary.Uvarint(b[1:]); size == len(b)-1 && n < 1<<63 {
			return int64(n), nil
		}
	}
	return 0, hookglass.Invalid("cursor", "is not the next_cursor of an answer with this list")
}

// Page is the part of a list that is asked for.
type Page struct {
	Behind int64 // the place behind which it begins
	list   List
	limit  int
}

// Page parses the parameters of a page; limit 0 means everything that follows. It answers validation_failed.
func (l List) Page(limit int, cursor string) (Page, error) {
	behind, err := l.Place(cursor)
	return Page{behind, l, limit}, err
}

// Most returns how many items to query: one more than fit on the page, to see whether the list goes on. 0 means all.
func (p Page) Most() int {
	if p.limit == 0 {
		return 0
	}
	return p.limit + 1
}

// Answer builds a page from the items found with Most.
func Answer[T, U any](p Page, found []T, place func(T) int64, write func(T) U) (out api.List[U]) {
	if p.limit > 0 && len(found) > p.limit {
		found = found[:p.limit]
		out.Meta.NextCursor = p.list.Cursor(place(found[p.limit-1]))
	}
	out.Data = make([]U, len(found))
	for i, f := range found {
		out.Data[i] = write(f)
	}
	return out
}
