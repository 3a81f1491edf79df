//go:build !unix

package ingest

// waiter reads from a connection.
type waiter struct {
	conn *conn
	last bool
}

func (w *waiter) init(c *conn) { w.conn = c }

// fill reads once into the connection's buffer, waiting until the socket's read deadline at most.
func (w *waiter) fill() (int, error) {
	w.conn.ready()
	return w.conn.nc.Read(w.conn.space())
}
