//go:build !unix

package server

import (
	"errors"
	"os"
)

var errInUse = errors.New("the data directory is in use by another hookglass process: stop that one, or name another directory by --data")

// lockData does nothing where there is no flock; two servers on one directory are then the operator's to avoid.
func lockData(string) (func(), error) { return func() {}, nil }

// holdFile does nothing where there is no flock; what another process has open cannot be removed there.
func holdFile(*os.File) error { return nil }
