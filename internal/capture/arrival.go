// Package capture turns an arrival, the bytes that reached an endpoint, into an event
// and the reply to its sender.
package capture

import (
	"net/netip"
	"time"

	"hookglass"
)

// Bounds of a request's head. Whoever reads events may count on them, however the events came here.
const (
	MaxHeaders     = 256      // header lines
	MaxHeaderBytes = 64 << 10 // of the request line and the header lines
)

// Arrival is one HTTP request to a webhook endpoint, exactly as it came.
type Arrival struct {
	Method   string
	Path     string     // what follows /hooks/<ref>, still percent-encoded; "/" when nothing follows
	RawQuery string     // without the question mark
	HasQuery bool       // a question mark was there, even with nothing behind it
	Target   string     // the request target, path and query, as received
	Proto    string     // HTTP/1.1, HTTP/1.0 or HTTP/2.0
	Host     string     // the authority the sender used, after trusted proxies
	Scheme   string     // http or https, after trusted proxies
	Client   netip.Addr // the sender, after trusted proxies
	Headers  hookglass.Headers
	Trailers hookglass.Headers
	Body     []byte    // the arrival owns it
	At       time.Time // when all of it was there
}
