package server_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"

	"hookglass"
	"hookglass/internal/server"
)

func TestAnAddressThatIsTakenSaysWhatThereIsToDo(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	taken := other.Addr().String()
	for flag, set := range map[string]func(*server.Config, string){
		"--listen":         func(c *server.Config, to string) { c.Listen = to },
		"--metrics-listen": func(c *server.Config, to string) { c.MetricsListen = to },
		"--smtp-listen":    func(c *server.Config, to string) { c.SMTPListen = to },
		"--lmtp-listen":    func(c *server.Config, to string) { c.LMTPListen = to },
	} {
		for address, want := range map[string]string{taken: "another address by " + flag, "192.0.2.1:0": "this machine has no such address"} {
			c := config(t.TempDir())
			set(&c, address)
			_, err := server.New(c, nil)
			if err == nil || !strings.HasPrefix(err.Error(), flag+": listen") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v", flag, address, err)
			}
		}
	}
}

// Tests may run as root, who is refused nothing, so the errors are made here.
func TestAnErrorAboutFilesSaysWhatThereIsToDo(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: "hookglass-service",
		syscall.EROFS:  "mount the file system for writing",
	} {
		err := server.Remedied(&fs.PathError{Op: "open", Path: "/data/lock", Err: errno})
		if !strings.HasPrefix(err.Error(), "open /data/lock: ") || !strings.Contains(err.Error(), want) || !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
	}
	full := server.Remedied(fmt.Errorf("store: migrate: %w", syscall.ENOSPC)) // what to do is said first
	if want := "the disk is full, or fails: make room, or give it more, and try again (store: migrate: no space left on device)"; full.Error() != want {
		t.Errorf("%v, want %s", full, want)
	}
	coded := &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "The storage cannot answer now.", Err: errors.Unwrap(full)}
	if of := server.Remedied(coded); of.Error() != full.Error() || hookglass.Is(of, hookglass.CodeUnavailable) {
		t.Errorf("of an error with a code: %v", of)
	}
	if again := server.Remedied(fmt.Errorf("backup: %w", full)); again.Error() != "backup: "+full.Error() || !errors.Is(again, syscall.ENOSPC) {
		t.Errorf("advised twice: %v", again)
	}
	if err := errors.New("something else"); server.Remedied(err) != err || server.Remedied(nil) != nil {
		t.Error("an error that nothing is known about was changed")
	}
}
