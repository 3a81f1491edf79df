package listen

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
)

// shell is a command as typed at a prompt. A Ctrl-C is for the listener, which waits for it. When ctx ends it is ended
// with what it started.
func shell(ctx context.Context, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd.exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /D /S /C "` + text + `"`, CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	cmd.Cancel = func() error {
		// Without its parent a process is not found any more: so the tree goes before the shell does.
		_ = exec.Command("taskkill.exe", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
		return cmd.Process.Kill()
	}
	return cmd
}

// kill has nothing to do: Cancel ended all of it.
func kill(*exec.Cmd) {}
