package capture

import (
	"strings"

	"hookglass"
)

// framing lists fields that belong to the connection rather than to the reply; the HTTP server writes them.
var framing = []string{"Connection", "Content-Length", "Transfer-Encoding", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Upgrade", "Date"}

// Sendable reports whether a field may be part of a Reply: its name is a token, its value has no control characters
// (RFC 9110, section 5), and it is not one that the HTTP server writes itself (Date, Content-Length, Connection) or
// that changes the framing. Drop all other fields before the reply is stored, so that the recorded reply is the one
// sent.
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
