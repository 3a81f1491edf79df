//go:build unix

package server

import (
	"os"
	"syscall"
)

// errHeld is what holdFile answers if another process has locked the file.
const errHeld = syscall.EWOULDBLOCK

// holdFile locks a file until it is closed. It fails if another process has locked it.
func holdFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
