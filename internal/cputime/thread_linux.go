package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// ofThread returns the processor time that the calling thread has taken.
func ofThread() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		panic(err) // it knows no error for a thread that asks for itself
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
