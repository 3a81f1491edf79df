//go:build unix

package cli

import "golang.org/x/sys/unix"

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	_, ok := windowSize(stream)
	return ok
}

// inForeground reports whether the program may read from a terminal: it is not a job in the background of its shell.
func inForeground(stream any) bool {
	f, ok := fileOf(stream)
	if !ok {
		return false
	}
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // an error: it is not the terminal of the program's shell
}

// terminalWidth returns the number of columns.
func terminalWidth(stream any) int {
	if size, ok := windowSize(stream); ok && size.Col > 0 {
		return int(size.Col)
	}
	return 80
}

func windowSize(stream any) (*unix.Winsize, bool) {
	f, ok := fileOf(stream)
	if !ok {
		return nil, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return size, err == nil
}
