package server_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"hookglass/internal/server"
)

// Tests may run as root, who is refused nothing, so the errors are made here.
func TestAnErrorAboutFilesSaysWhatThereIsToDo(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: "hookglass-service",
		syscall.EROFS:  "mount the file system for writing",
		syscall.ENOSPC: "the disk is full, make room",
	} {
		err := server.Remedied(&fs.PathError{Op: "open", Path: "/data/lock", Err: errno})
		if !strings.HasPrefix(err.Error(), "open /data/lock: ") || !strings.Contains(err.Error(), want) || !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
	}
	if err := errors.New("something else"); server.Remedied(err) != err || server.Remedied(nil) != nil {
		t.Error("an error that nothing is known about was changed")
	}
}
