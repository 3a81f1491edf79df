//go:build !linux

package server

// returnProgram does nothing on other systems.
func returnProgram() {}
