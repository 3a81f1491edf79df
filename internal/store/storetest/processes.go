package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Kill9 kills the postmaster and all its processes at once, as a power cut would, and returns when they are gone. Data
// that the operating system was given stays written.
func (c *Cluster) Kill9() error {
	if !c.running() {
		return errors.New("storetest: the server is not running")
	}
	pid := c.server.Process.Pid
	// Stop it first, so that it starts no process that the list of children would miss.
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("storetest: stop postmaster: %w", err)
	}
	children, err := childrenOf(pid)
	if err != nil {
		return err
	}
	for _, p := range append(children, pid) {
		if err := syscall.Kill(p, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("storetest: kill -9 %d: %w", p, err)
		}
	}
	<-c.exited
	c.disconnect()
	return c.awaitGone(children)
}

// Freeze suspends every process of the server: connections stay open, and nothing answers. Thaw resumes them.
func (c *Cluster) Freeze() error { return c.signalAll(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (c *Cluster) Thaw() error { return c.signalAll(syscall.SIGCONT) }

func (c *Cluster) signalAll(sig syscall.Signal) error {
	if !c.running() {
		return errors.New("storetest: the server is not running")
	}
	pid := c.server.Process.Pid
	// Stop the postmaster first, so that it starts no process that the list of children would miss.
	if err := syscall.Kill(pid, sig); err != nil {
		return fmt.Errorf("storetest: signal postmaster: %w", err)
	}
	children, err := childrenOf(pid)
	if err != nil {
		return err
	}
	for _, p := range children {
		if err := syscall.Kill(p, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("storetest: signal %d: %w", p, err)
		}
	}
	return nil
}

// awaitGone returns when all of the processes have ended. A server started earlier would refuse the data directory,
// because they still hold its shared memory.
func (c *Cluster) awaitGone(pids []int) error {
	deadline := time.After(startLimit)
	retry := time.NewTicker(2 * time.Millisecond)
	defer retry.Stop()
	for slices.ContainsFunc(pids, alive) {
		select {
		case <-deadline:
			return fmt.Errorf("storetest: killed processes remain after %v", startLimit)
		case <-retry.C:
		}
	}
	return nil
}

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("storetest: %w", err)
	}
	var children []int
	for _, e := range entries {
		p, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if _, parent, ok := procStat(p); ok && parent == pid {
			children = append(children, p)
		}
	}
	return children, nil
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	state, _, ok := procStat(pid)
	return ok && state != 'Z' && state != 'X'
}

// procStat reads a process's state and parent from proc(5). These fields follow the name, which may hold any character
// and ends at the last ')'.
func procStat(pid int) (state byte, parent int, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return fields[0][0], parent, err == nil
}
