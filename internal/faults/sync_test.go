//go:build linux

package faults_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// strace finds the program that shows and spoils system calls: a test without it is skipped on a desk, failed where
// the environment says CI=true.
func strace(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return path
}

// A disk that fails to sync has promised nothing: the sender must not hear of success, and what is tried again
// later must not rest on what was lost.
func TestAFailedSyncIs503(t *testing.T) {
	t.Parallel()
	n := newSite(t, t.TempDir(), "").serve()
	l := n.endpoint()
	under := load{to: []*node{n}, ledger: l, conns: 8, rate: 200}.start()
	eventually(t, 5*time.Second, "captures", func() bool { return l.last(http.StatusOK) })

	spoil := exec.Command(strace(t), "-f", "-q", "-p", strconv.Itoa(n.proc.Pid), "-o", "/dev/null",
		"-e", "trace=fsync,fdatasync", "-e", "signal=none", "-e", "inject=fsync,fdatasync:error=EIO")
	var said bytes.Buffer
	spoil.Stderr = &said
	spoil.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := spoil.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the sync fails", func() bool { return l.last(http.StatusServiceUnavailable) })
	broken := time.Now()
	<-time.After(pick(time.Second, 10*time.Second))
	if status, body, err := n.get("/readyz"); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("readyz while syncs fail: %d %s %v", status, body, err)
	}
	mended := time.Now()
	if err := spoil.Process.Signal(syscall.SIGTERM); err != nil { // it lets go of the process
		t.Fatal(err)
	}
	_ = spoil.Wait() // by the signal
	eventually(t, 5*time.Second, "captures again", func() bool { return l.last(http.StatusOK) })
	took := time.Since(mended)
	<-time.After(300 * time.Millisecond)
	under.stop()
	refused := 0
	for _, a := range l.all() {
		if a.begun.After(broken) && a.ended.Before(mended) {
			if refused++; a.status != http.StatusServiceUnavailable {
				t.Errorf("while no sync succeeded request %d was answered %d (%s)", a.number, a.status, said.String())
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was sent while syncs failed")
	}
	checkRefusals(t, l.all(), 8*time.Second, http.StatusOK, http.StatusServiceUnavailable)
	r := l.check(t, n)
	n.kill()
	n.start()
	n.ready(10 * time.Second)
	t.Logf("%v; captures %v after syncs did; after a kill: %v", r, took, l.check(t, n))
}
