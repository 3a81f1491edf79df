package server

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"hookglass/internal/store"
)

// remedied says behind an error about what an installation consists of what can be done about it, where that is known.
func remedied(err error) error {
	var what string
	switch {
	case errors.Is(err, syscall.EROFS):
		what = "mount the file system for writing"
	case errors.Is(err, fs.ErrPermission):
		what = "run this as the user whose files these are (with a package, by hookglass-service), or give them to this one"
	case errors.Is(err, store.ErrForeign):
		what = "give the service a database of its own"
	case store.Damaged(err):
		what = "stop the service, keep a copy of the data directory, and bring the last backup back (hookglass restore --force)"
	case store.NoRoom(err):
		what = "where the disk is full, " + moreRoom
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, what)
}
