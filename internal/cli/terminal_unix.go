//go:build unix

package cli

import "golang.org/x/sys/unix"

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	_, ok := windowSize(stream)
	return ok
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
