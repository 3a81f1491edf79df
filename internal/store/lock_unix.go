//go:build unix

package store

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lockAgain is how soon a directory that another process has locked is tried again.
const lockAgain = 10 * time.Millisecond

// lockDirectory excludes other callers, in any process, until unlock. It succeeds without a lock if the directory
// cannot be opened or its file system has no such locks.
func lockDirectory(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {}, nil
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return func() { f.Close() }, nil
		}
		select {
		case <-time.After(lockAgain):
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		}
	}
}
