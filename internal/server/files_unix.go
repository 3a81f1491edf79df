//go:build unix

package server

import "syscall"

// fileLimit returns how many files the process may open. Go has already raised the limit as far as possible.
func fileLimit() (uint64, error) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err
}
