package store

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// DiskSpace returns the size of the volume of a path and how many bytes this user can still write.
func DiskSpace(path string) (size, free int64, err error) {
	if info, err := os.Stat(path); err != nil {
		return 0, 0, err
	} else if !info.IsDir() { // the system takes directories alone
		path = filepath.Dir(path)
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, 0, err
	}
	var ours, total uint64
	if err := windows.GetDiskFreeSpaceEx(name, &ours, &total, nil); err != nil {
		return 0, 0, os.NewSyscallError("GetDiskFreeSpaceEx", err)
	}
	return int64(total), int64(ours), nil
}

// noSpace reports whether an error of the system means a full disk.
func noSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) || errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
