//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
)

// DiskSpace returns the size of the file system of a path and how many bytes this user can still write.
func DiskSpace(path string) (size, free int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, os.NewSyscallError("statfs", err)
	}
	blocks := int64(s.Bavail)
	if os.Geteuid() == 0 {
		blocks = int64(s.Bfree) // includes those reserved for root
	}
	return int64(s.Blocks) * int64(s.Bsize), blocks * int64(s.Bsize), nil
}

// noSpace reports whether an error of the system means a full disk.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
