//go:build !unix

package cli

import "os"

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := fileOf(stream)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// terminalWidth returns the number of columns.
func terminalWidth(any) int { return 80 }
