package rest

import (
	"encoding/base64"
	"encoding/binary"

	"hookglass"
)

const defaultLimit = 25 // of a page (decisions, section 3)

// The lists that cursors belong to: one of another list is refused.
const (
	ofEndpoints byte = 'n'
	ofEvents    byte = 'e'
	ofTargets   byte = 't'
	ofForwards  byte = 'f'

	ofReplays    byte = 'r'
	ofCases      byte = 'c'
	ofRuns       byte = 'u'
	ofBatches    byte = 'b'
	ofBatchItems byte = 'i'

	ofActions    byte = 'o'
	ofActionRuns byte = 'v'
	ofSecrets    byte = 's'

	ofUndelivered byte = 'm'

	ofTags      byte = 'g'
	ofChannels  byte = 'h'
	ofAlerts    byte = 'a'
	ofIncidents byte = 'd'
	ofLedger    byte = 'l'
	ofFlows     byte = 'w'
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
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err == nil && len(b) > 1 && b[0] == list {
		if n, size := binary.Uvarint(b[1:]); size == len(b)-1 && n < 1<<63 {
			return int64(n), nil
		}
	}
	return 0, hookglass.Invalid("cursor", "is not the next_cursor of an answer")
}

// page reads the parameters of a list that is whole unless it is paged (decisions, section 13, "Paging"); limit
// 0 is all of it.
func page(list byte, limit int, cursor string) (after int64, most int, err error) {
	if limit == 0 && cursor != "" {
		limit = defaultLimit
	}
	after, err = place(list, cursor)
	return after, limit, err
}
