package capture

import "hookglass"

// Target is the endpoint of an arrival, found before the body is read.
type Target struct {
	Ref      string // the id or the custom id, as the sender wrote it
	Endpoint hookglass.Endpoint
	known    *target
}
