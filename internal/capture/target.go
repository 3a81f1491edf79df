package capture

import "hookglass"

// Target is the endpoint of an arrival, found before the body is read.
type Target struct {
	Endpoint hookglass.Endpoint
	known    *target
}
