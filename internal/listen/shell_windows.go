package listen

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// shell returns a command as if typed at a prompt. Ctrl-C reaches only the listener, which waits for the command. When
// ctx ends, it is stopped with the processes that it started.
func shell(ctx context.Context, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd.exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /D /S /C "` + text + `"`, CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	cmd.Cancel = func() error {
		// Stop the tree first: its processes cannot be found any more once the shell is gone.
		_ = exec.Command("taskkill.exe", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
		return cmd.Process.Kill()
	}
	return cmd
}

// kill does nothing: Cancel has stopped everything.
func kill(*exec.Cmd) {}

// drain does nothing: pipes have no deadline here, so that reading one never ends by it.
func drain(*os.File, []byte, io.Writer) {}
