//go:build !linux

package store

import "os"

// allocate reserves disk space after the end of a file.
func allocate(f *os.File, from, size int64) error { return fillUp(f, from, size) }
