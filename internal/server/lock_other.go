//go:build !unix

package server

import (
	"errors"
	"os"
)

var errInUse = errors.New("the data directory is in use by another hookglass process: stop that one, or name another directory by --data")

// lockData does nothing without flock; the operator must not start two servers on one directory.
func lockData(string) (func(), error) { return func() {}, nil }

// holdFile does nothing without flock; files that another process has open cannot be removed there.
func holdFile(*os.File) error { return nil }
