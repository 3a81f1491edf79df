//go:build !unix

package outbound

import "net"

// quiet cannot be determined on this system, so no connection serves a second request.
func quiet(net.Conn) bool { return false }
