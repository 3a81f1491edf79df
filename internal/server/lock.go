package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		if errors.Is(err, errHeld) {
			return nil, errInUse
		}
		return nil, remedied(fmt.Errorf("lock the data directory: %w", err))
	}
	return func() { f.Close() }, nil
}
