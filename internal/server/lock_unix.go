//go:build unix

package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// errInUse says that another process serves from the directory.
var errInUse = errors.New("the data directory is in use by another hookglass process: stop that one, or name another directory by --data")

// lockData takes the directory for this process until the returned function is called, or the process ends in
// whatever way.
func lockData(dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, remedied(fmt.Errorf("lock the data directory: %w", err))
	}
	if err := holdFile(f); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errInUse
		}
		return nil, remedied(fmt.Errorf("lock the data directory: %w", err))
	}
	return func() { f.Close() }, nil
}

// holdFile holds a file for this process until it is closed. It fails where another does.
func holdFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
