//go:build unix

package listen

import (
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// shell returns a command that is run as make runs a recipe line. It has a process group of its own: Ctrl-C reaches
// only the listener, which waits for the command, and processes that the command starts are stopped with it. When ctx
// ends, all of them get SIGTERM.
func shell(ctx context.Context, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) != nil {
			return os.ErrProcessDone
		}
		return nil
	}
	return cmd
}

// kill kills what is left of a command.
func kill(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an error means that nothing is left
}

// maxRest is more than a pipe holds. A process that writes without end would fill it as fast as it is read.
const maxRest = 1 << 20

// drain passes on what is in a pipe, without waiting for more.
func drain(r *os.File, buf []byte, to io.Writer) {
	_ = r.SetReadDeadline(time.Time{})
	raw, err := r.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		for rest := maxRest; rest > 0; {
			n, err := syscall.Read(int(fd), buf)
			if err == syscall.EINTR {
				continue
			}
			if n <= 0 {
				break
			}
			_, _ = to.Write(buf[:n])
			rest -= n
		}
		return true
	})
}
