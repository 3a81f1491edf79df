package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// isTerminal reports whether a stream is a console. One that output goes to is made to interpret escape sequences, which
// older ones do only when asked; one that cannot is not used as a terminal.
func isTerminal(stream any) bool {
	f, ok := fileOf(stream)
	if !ok {
		return false
	}
	var mode uint32
	console := windows.Handle(f.Fd())
	if windows.GetConsoleMode(console, &mode) != nil {
		return false
	}
	return f == os.Stdin || windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

// inForeground reports whether the program may read from a console: any of its programs may.
func inForeground(any) bool { return true }

// terminalWidth returns the number of columns.
func terminalWidth(stream any) int {
	var info windows.ConsoleScreenBufferInfo
	if f, ok := fileOf(stream); ok && windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info) == nil {
		if columns := int(info.Window.Right-info.Window.Left) + 1; columns > 0 {
			return columns
		}
	}
	return 80
}
