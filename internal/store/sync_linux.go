package store

import (
	"errors"
	"os"
	"syscall"
)

// syncData syncs a file's data, with only the metadata that reading it needs.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
