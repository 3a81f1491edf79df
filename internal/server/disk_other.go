//go:build !unix

package server

import "errors"

// freeDisk is not known here.
func freeDisk(string) (int64, error) { return 0, errors.ErrUnsupported }
