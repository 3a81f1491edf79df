// Package capture turns an arrival, the bytes that reached an endpoint, into an event
// and the reply to its sender.
package capture

import (
	"net/netip"
	"time"

	"hookglass"
)

// Bounds of a request's head. They hold for all events, however these were captured.
const (
	MaxHeaders     = 256      // header lines
	MaxHeaderBytes = 64 << 10 // of the request line and the header lines
)

// Arrival is one HTTP request to a webhook endpoint, exactly as it came.
type Arrival struct {
	Method   string
	Path     string     // what follows /hooks/<ref>, still percent-encoded; "/" if nothing does
	RawQuery string     // without the question mark
	Target   string     // the request target, path and query, as received
	Proto    string     // HTTP/1.1, HTTP/1.0 or HTTP/2.0
	Host     string     // the authority that the sender used, according to trusted proxies
	Scheme   string     // http or https, according to trusted proxies
	Client   netip.Addr // the sender, according to trusted proxies
	Headers  hookglass.Headers
	Trailers hookglass.Headers
	Body     []byte    // owned by the arrival
	At       time.Time // when it was complete
}
