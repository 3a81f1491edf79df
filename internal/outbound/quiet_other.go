//go:build !unix

package outbound

import "net"

// quiet is not known here, so no connection serves a second request.
func quiet(net.Conn) bool { return false }
