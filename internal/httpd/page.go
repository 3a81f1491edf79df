package httpd

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

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

// CursorBehind is Cursor for a list that is in the order of ids.
func (l List) CursorBehind(id string) *string {
	return new(base64.RawURLEncoding.EncodeToString(append([]byte{byte(l)}, id...)))
}

// Place reads what Cursor wrote; "" is 0. It answers validation_failed.
func (l List) Place(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	b, err := l.read(cursor)
	if err == nil {
		if n, size := binary.Uvarint(b); size == len(b) && n < 1<<63 {
			return int64(n), nil
		}
	}
	return 0, errCursor
}

var errCursor = hookglass.Invalid("cursor", "is not the next_cursor of an answer with this list")

// read returns what a cursor of the list holds.
func (l List) read(cursor string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < 2 || b[0] != byte(l) {
		return nil, errCursor
	}
	return b[1:], nil
}

// Page is the part of a list that is asked for.
type Page struct {
	Behind   int64  // the place behind which it begins
	BehindID string // the same in a list that is in the order of ids
	list     List
	limit    int
}

// Page parses the parameters of a page; limit 0 means everything that follows. It answers validation_failed.
func (l List) Page(limit int, cursor string) (Page, error) {
	behind, err := l.Place(cursor)
	return Page{Behind: behind, list: l, limit: limit}, err
}

// PageOfIDs is Page for a list that is in the order of ids.
func (l List) PageOfIDs(limit int, cursor string) (Page, error) {
	p := Page{list: l, limit: limit}
	if cursor == "" {
		return p, nil
	}
	b, err := l.read(cursor)
	if p.BehindID = string(b); strings.Trim(p.BehindID, "_0123456789abcdefghijklmnopqrstuvwxyz") != "" {
		err = errCursor
	}
	return p, err
}

// Most returns how many items to query: one more than fit on the page, to see whether the list goes on. 0 means all.
func (p Page) Most() int {
	if p.limit == 0 {
		return 0
	}
	return p.limit + 1
}

// Answer builds a page from the items found with Most.
func Answer[T, U any](p Page, found []T, place func(T) int64, write func(T) U) api.List[U] {
	return answer(p, found, func(item T) *string { return p.list.Cursor(place(item)) }, write)
}

// AnswerIDs is Answer for a list that is in the order of ids.
func AnswerIDs[T, U any](p Page, found []T, id func(T) string, write func(T) U) api.List[U] {
	return answer(p, found, func(item T) *string { return p.list.CursorBehind(id(item)) }, write)
}

func answer[T, U any](p Page, found []T, behind func(T) *string, write func(T) U) (out api.List[U]) {
	if p.limit > 0 && len(found) > p.limit {
		found = found[:p.limit]
		out.Meta.NextCursor = behind(found[p.limit-1])
	}
	out.Data = make([]U, len(found))
	for i, f := range found {
		out.Data[i] = write(f)
	}
	return out
}
