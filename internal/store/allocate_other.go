//go:build !linux

package store

import "os"

// allocate takes room on the disk behind what a file has.
func allocate(f *os.File, from, size int64) error { return fillUp(f, from, size) }
