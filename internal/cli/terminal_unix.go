//go:build unix

package cli

import "golang.org/x/sys/unix"

// isTerminal reports whether a person sees what is written, or types what is read.
func isTerminal(stream any) bool {
	_, ok := windowSize(stream)
	return ok
}

// terminalWidth is how many columns there are.
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
