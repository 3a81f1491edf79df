//go:build unix

package server

import "syscall"

// freeDisk is the number of bytes that this user can still write where the path is.
func freeDisk(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
