package hookglass

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"time"
)

// Ids are a prefix naming the kind of thing and 26 characters of lower-case
// Crockford base32 (spec, "Identifier prefixes"). Each kind has a type of its own,
// so that two of them cannot be swapped.
type (
	// EndpointID is "ep_…". Its suffix is 128 random bits: knowing it is the right to send.
	EndpointID string
	// EventID is "req_…" for webhooks and "eml_…" for mail; its suffix sorts by time.
	EventID string
)

// Prefixes of ids, without the underscore.
const (
	PrefixEndpoint     = "ep"
	PrefixWebhookEvent = "req"
	PrefixEmailEvent   = "eml"
	PrefixTunnelKey    = "tk"
	PrefixToken        = "hg"
)

const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

var idEncoding = base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding)

// idSuffixLen is the length of 16 bytes in base32 without padding.
const idSuffixLen = 26

// NewRandomID returns prefix_ and 128 random bits. It is for ids that grant access: endpoints, tunnel keys, tickets.
func NewRandomID(prefix string) string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return prefix + "_" + idEncoding.EncodeToString(b[:])
}

var lastSortable atomic.Uint64

// NewSortableID returns prefix_ and a suffix that sorts by creation time within
// this process: 48 bits of milliseconds, a 16-bit counter and 64 random bits.
func NewSortableID(prefix string, now time.Time) string {
	stamp := uint64(now.UnixMilli()) << 16
	for {
		last := lastSortable.Load()
		next := max(stamp, last+1)
		if lastSortable.CompareAndSwap(last, next) {
			stamp = next
			break
		}
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], stamp)
	rand.Read(b[8:])
	return prefix + "_" + idEncoding.EncodeToString(b[:])
}

// NewEndpointID returns the id of a new endpoint.
func NewEndpointID() EndpointID { return EndpointID(NewRandomID(PrefixEndpoint)) }

var drawnEvents atomic.Uint64

// NewEventID returns an id for an event of the given type. Its suffix sorts by the time of reception, not by the
// order of the calls: events that arrive at once are stamped in one order and reach this function in another. The
// suffix holds 48 bits of milliseconds, 10 of microseconds, a 22-bit counter for events that share a microsecond, and
// 48 random bits.
func NewEventID(t EventType, received time.Time) EventID {
	us := uint64(received.UnixMicro())
	n := drawnEvents.Add(1)
	var b [16]byte
	rand.Read(b[10:])
	binary.BigEndian.PutUint64(b[:8], us/1000<<16|us%1000<<6|n>>16&0x3f)
	binary.BigEndian.PutUint16(b[8:10], uint16(n))
	prefix := PrefixWebhookEvent
	if t == EventEmail {
		prefix = PrefixEmailEvent
	}
	return EventID(prefix + "_" + idEncoding.EncodeToString(b[:]))
}

// ParseEventID parses the id of an event. It accepts the wr_ form of older clients, which stands for req_ (spec:
// decisions, section 3). Anything else is not_found: what cannot be an id cannot exist.
func ParseEventID(s string) (EventID, error) {
	if rest, ok := strings.CutPrefix(s, "wr_"); ok {
		s = PrefixWebhookEvent + "_" + rest
	}
	if !hasID(s, PrefixWebhookEvent) && !hasID(s, PrefixEmailEvent) {
		return "", NotFound("request")
	}
	return EventID(s), nil
}

// Time returns when the event was received, to the millisecond, as encoded in its id.
func (id EventID) Time() time.Time {
	_, suffix, _ := strings.Cut(string(id), "_")
	b, err := idEncoding.DecodeString(suffix)
	if err != nil || len(b) < 8 {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b) >> 16)).UTC()
}

// IsEndpointID reports whether s has the form of an endpoint id rather than of a custom id.
func IsEndpointID(s string) bool { return hasID(s, PrefixEndpoint) }

// IsTunnelKey reports whether s has the form of a temporary endpoint's key.
func IsTunnelKey(s string) bool { return hasID(s, PrefixTunnelKey) }

func hasID(s, prefix string) bool {
	suffix, ok := strings.CutPrefix(s, prefix+"_")
	return ok && len(suffix) == idSuffixLen && strings.Trim(suffix, idAlphabet) == ""
}
