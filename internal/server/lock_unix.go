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

// lockData locks the directory until release is called or the process ends in any way.
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

// holdFile locks a file until it is closed. It fails if another process has locked it.
func holdFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
