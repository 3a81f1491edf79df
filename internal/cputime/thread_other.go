//go:build !linux

package cputime

import "time"

var began = time.Now()

// ofThread returns the time of the clock, where nothing tells the processor time of one thread.
func ofThread() time.Duration { return time.Since(began) }
