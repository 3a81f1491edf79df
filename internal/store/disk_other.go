//go:build !unix

package store

import "errors"

// DiskSpace is not supported here.
func DiskSpace(string) (size, free int64, err error) { return 0, 0, errors.ErrUnsupported }
