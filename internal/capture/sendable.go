package capture

import (
	"strings"

	"hookglass"
)

// framing are the fields that belong to the connection and not to the reply: reception writes them itself.
var framing = []string{"Connection", "Content-Length", "Transfer-Encoding", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Upgrade", "Date"}

// Sendable reports whether a field may stand in a Reply: a token for a name, no control character in the
// value (RFC 9110, section 5), and none of the fields that reception writes by itself (Date, Content-Length,
// Connection) or that would change how the connection is read. Drop every other field before the reply is
// stored, so that the reply on record is the one on the wire.
func Sendable(h hookglass.Header) bool {
	if !hookglass.IsToken(h.Name) || !hookglass.IsFieldValue(h.Value) {
		return false
	}
	for _, name := range framing {
		if len(name) == len(h.Name) && strings.EqualFold(name, h.Name) {
			return false
		}
	}
	return true
}
