package capture

import "hookglass"

// Sendable reports whether a field may be part of a Reply: its name is a token, its value has no control characters
// (RFC 9110, section 5), and it is not one that the HTTP server writes itself (Date, Content-Length, Connection) or
// that changes the framing. Drop all other fields before the reply is stored, so that the recorded reply is the one
// sent.
func Sendable(h hookglass.Header) bool {
	return hookglass.IsToken(h.Name) && hookglass.IsFieldValue(h.Value) && !hookglass.FramesAnswer(h.Name)
}
