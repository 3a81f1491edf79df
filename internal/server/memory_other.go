//go:build !linux

package server

// returnProgram does nothing where the system offers no way.
func returnProgram() {}
