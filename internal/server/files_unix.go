//go:build unix

package server

import "syscall"

// fileLimit is how many files the process may have open. Go has raised it as far as it may.
func fileLimit() (uint64, error) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err
}
