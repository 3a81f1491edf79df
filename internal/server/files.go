package server

import "fmt"

// The number of connections if the process may open enough files: for HTTP, and for mail.
const (
	mostConns     = 1 << 14
	mostMailConns = 1 << 10
)

// sparedFiles are reserved for storage, targets, mail and everything else; with a small limit, half of it is.
const sparedFiles = 2048

// leastFiles is what the databases, the listeners and a few connections need. With fewer the service would report ready
// but could not accept a connection.
const leastFiles = 48

// enoughFiles refuses a limit that is too low to work.
func enoughFiles(limit uint64, err error) error {
	if err != nil || limit >= leastFiles {
		return nil
	}
	return fmt.Errorf("%d files may be open, which are too few for the service: raise ulimit -n (LimitNOFILE= of systemd, ulimits of compose)", limit)
}

// connections divides the files that the process may open. Senders must not use all of them: storage would fail, and a
// sender whose connection cannot be accepted does not even get a 503. If the limit is unknown, both are 0, which means
// the defaults.
func connections(limit uint64, err error) (http, mail int) {
	if err != nil {
		return 0, 0
	}
	http = int(min(mostConns, limit-min(limit/2, sparedFiles)))
	mail = int(min(mostMailConns, limit/8))
	return max(http, 1), max(mail, 1)
}
