//go:build unix

package listen

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// shell is a command as a line of a Makefile is run. It has a process group of its own: a Ctrl-C is for the listener,
// which waits for it, and what it starts ends with it. When ctx ends all of them are asked to.
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

// kill ends what is left of a command.
func kill(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an error says that nothing is
}
