//go:build !unix

package cli

import "os"

// isTerminal reports whether a person sees what is written, or types what is read.
func isTerminal(stream any) bool {
	f, ok := fileOf(stream)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// terminalWidth is how many columns there are.
func terminalWidth(any) int { return 80 }
