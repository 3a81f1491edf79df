package server

import "fmt"

// How many connections are taken where the process may have enough files open: of HTTP, and of mail.
const (
	mostConns     = 1 << 14
	mostMailConns = 1 << 10
)

// sparedFiles are left to storage, targets, mail and what else the process opens; of a small limit it is half.
const sparedFiles = 2048

// leastFiles is what the databases, the listeners and a few connections need. With fewer the service would say that it
// is ready, and could not take a connection.
const leastFiles = 48

// enoughFiles refuses a limit with which nothing works.
func enoughFiles(limit uint64, err error) error {
	if err != nil || limit >= leastFiles {
		return nil
	}
	return fmt.Errorf("%d files may be open, which are too few for the service: raise ulimit -n (LimitNOFILE= of systemd, ulimits of compose)", limit)
}

// connections shares out the files that the process may have open. Senders must not get all of them: storage fails
// without, and who cannot even be accepted is not told 503. Where no limit is known both are 0, the defaults.
func connections(limit uint64, err error) (http, mail int) {
	if err != nil {
		return 0, 0
	}
	http = int(min(mostConns, limit-min(limit/2, sparedFiles)))
	mail = int(min(mostMailConns, limit/8))
	return max(http, 1), max(mail, 1)
}
