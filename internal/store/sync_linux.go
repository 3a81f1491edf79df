package store

import (
	"errors"
	"os"
	"syscall"
)

// syncData brings a file's bytes to the disk, and of what is said about it only what reading them needs.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
