package server

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// returnProgram unmaps pages of the program itself that were used for starting and are not needed for serving:
// registering operations and parsing flags run once, and the system maps sixteen pages around each used one. They stay
// in the page cache and are mapped again when used. Only unmodified mappings of the executable are released.
func returnProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer file.Close()
	var m mapping
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0:
		case strings.Contains(fields[0], "-"):
			m = mapping{}
			if len(fields) == 6 && fields[5] == program && (fields[1] == "r-xp" || fields[1] == "r--p") {
				_, err := fmt.Sscanf(fields[0], "%x-%x", &m.from, &m.to)
				m.ours = err == nil
			}
		case fields[0] == "Anonymous:": // modified pages, of which there is no other copy
			if m.ours && fields[1] == "0" {
				_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED) // only advice
			}
		}
	}
}

// mapping is a range of this process's addresses.
type mapping struct {
	from, to uintptr
	ours     bool // of the executable, and not writable
}
