package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate reserves disk space after the end of a file.
func allocate(f *os.File, from, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, from, size)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return fillUp(f, from, size)
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
}
