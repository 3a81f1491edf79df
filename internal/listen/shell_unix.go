//go:build unix

package listen

import (
	"context"
	"os"
	"os/exec"
	"syscall"
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
