package hookglass

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"
	"unicode/utf8"
)

// Dedupe says which webhooks are the same to a forwarding target, which gets only the first of them. The zero Dedupe is
// none: the target gets all.
type Dedupe struct {
	By     DedupeBy
	Window time.Duration // a webhook is the same as one that came less than this before it; whole seconds
}

// On reports whether there is one.
func (d Dedupe) On() bool { return d.By != "" }

// DedupeBy is what identifies a webhook: DedupeID, DedupeBody, the name of a header after "header.", or a JSON Pointer
// into the body. Empty: nothing does.
type DedupeBy string

// What identifies a webhook, apart from headers and pointers.
const (
	DedupeID   DedupeBy = "id"   // the sender's own id of the delivery or of the event
	DedupeBody DedupeBy = "body" // method, path, query and the body's bytes
)

const dedupeHeader = "header."

// Bounds of a Dedupe.
const (
	DefaultDedupeWindow = 24 * time.Hour
	MinDedupeWindow     = time.Second
	MaxDedupeWindow     = 7 * 24 * time.Hour
	MaxDedupeBy         = 200 // characters
)

// Header returns the name of the header, if it is one that identifies a webhook.
func (b DedupeBy) Header() (name string, ok bool) { return strings.CutPrefix(string(b), dedupeHeader) }

// Pointer returns the JSON Pointer, if it is one that identifies a webhook.
func (b DedupeBy) Pointer() (pointer string, ok bool) {
	return string(b), strings.HasPrefix(string(b), "/")
}

// Valid reports whether it is one of the known forms.
func (b DedupeBy) Valid() bool {
	if utf8.RuneCountInString(string(b)) > MaxDedupeBy || !utf8.ValidString(string(b)) {
		return false
	}
	if name, ok := b.Header(); ok {
		return IsToken(name)
	}
	if pointer, ok := b.Pointer(); ok {
		for ; ; pointer = pointer[1:] { // RFC 6901, section 3: a tilde is followed by 0 or 1
			i := strings.IndexByte(pointer, '~')
			if i < 0 {
				return IsFieldValue(string(b))
			}
			if pointer = pointer[i:]; len(pointer) < 2 || pointer[1] != '0' && pointer[1] != '1' {
				return false
			}
		}
	}
	return b == DedupeID || b == DedupeBody
}

// Key returns the key of a webhook with these values. Webhooks that are identified in different ways have different
// keys. It is a hash, so that it is short and reveals no content.
func (b DedupeBy) Key(values ...[]byte) (k DeliveryKey) {
	if name, ok := b.Header(); ok {
		b = DedupeBy(dedupeHeader + strings.ToLower(name))
	}
	h := sha256.New()
	for _, v := range append([][]byte{[]byte(b)}, values...) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(v))))
		h.Write(v)
	}
	copy(k[:], h.Sum(nil))
	return k
}

// Duplicate is what there was of a webhook when a delivery of the same one was to be sent.
type Duplicate struct {
	Of    EventID      // the first
	Num   int64        // of its delivery
	State ForwardState // of its delivery: pending, sending or delivered
}

// Skipped reports whether the delivery of the duplicate is not needed. Otherwise it waits for that of the first: if
// that fails, the sender's second try is its second chance.
func (d Duplicate) Skipped() bool { return d.State == ForwardDelivered }
