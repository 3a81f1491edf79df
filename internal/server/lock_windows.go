package server

import (
	"os"

	"golang.org/x/sys/windows"
)

// errHeld is what holdFile answers if another process has locked the file.
const errHeld = windows.ERROR_LOCK_VIOLATION

// holdFile locks a file until it is closed. It fails if another process has locked it. It locks a byte far behind the
// end: others could not read what is locked.
func holdFile(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
}
