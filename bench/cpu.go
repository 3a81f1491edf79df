package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// clockTick is the unit of processor times in /proc/PID/stat (proc(5)); Linux has had the same on all its machines for
// long.
const clockTick = time.Second / 100

// spent is processor time of the service and of its database. Where another process takes the processor a wall clock
// goes on and this does not, so it compares what times on a shared machine cannot.
type spent struct{ service, database time.Duration }

func (s spent) minus(o spent) spent { return spent{s.service - o.service, s.database - o.database} }

// each is the microseconds for one of n.
func (s spent) each(n int64) (service, database float64) {
	return float64(s.service.Microseconds()) / float64(n), float64(s.database.Microseconds()) / float64(n)
}

// spent is what the service and its database have taken since they were started.
func (s *service) spent() (all spent, err error) {
	if all.service, _, err = processorTime(s.cmd.Process.Pid); err != nil || s.dsn == "" {
		return all, err
	}
	address, err := url.Parse(s.dsn)
	if err != nil {
		return all, err
	}
	lock, err := os.ReadFile(filepath.Join(address.Query().Get("host"), ".s.PGSQL.5432.lock"))
	if err != nil {
		return all, err
	}
	line, _, _ := bytes.Cut(lock, []byte("\n"))
	server, err := strconv.Atoi(string(line))
	if err != nil {
		return all, err
	}
	if all.database, _, err = processorTime(server); err != nil { // with the children that have ended
		return all, err
	}
	files, err := filepath.Glob("/proc/[0-9]*")
	for _, f := range files {
		pid, _ := strconv.Atoi(filepath.Base(f)) // digits
		if took, parent, err := processorTime(pid); err == nil && parent == server {
			all.database += took
		}
	}
	return all, err
}

// processorTime is what a process and its ended children have taken, and its parent.
func processorTime(pid int) (took time.Duration, parent int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // a name may hold anything; the field after it is the third
	if len(fields) < 15 {
		return 0, 0, fmt.Errorf("/proc/%d/stat: %q", pid, b)
	}
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		ticks, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, 0, err
		}
		took += time.Duration(ticks) * clockTick
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return took, parent, err
}

// profiled runs fn and meanwhile, where profiles are wanted, writes a processor profile of the service.
func (p *plan) profiled(ctx context.Context, s *service, name string, fn func() error) error {
	if p.profiles == "" {
		return fn()
	}
	ended := make(chan error, 1)
	go func() {
		ended <- s.profile(ctx, p.warm+p.time, filepath.Join(p.profiles, name+"."+s.database+".pprof"))
	}()
	return errors.Join(fn(), <-ended)
}

func (s *service) profile(ctx context.Context, length time.Duration, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.metrics, int(max(1, length.Seconds()))), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: %s", resp.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}
