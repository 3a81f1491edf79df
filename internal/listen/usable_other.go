//go:build !unix

package listen

import "net"

// usable cannot check a connection here without reading from it, so none is reused.
func usable(net.Conn) bool { return false }
