//go:build !unix

package server

import "errors"

// fileLimit is not supported here.
func fileLimit() (uint64, error) { return 0, errors.ErrUnsupported }
