//go:build linux

package faults_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
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

// spoil makes every sync of the node's files go wrong as strace's inject says, until the function that it returns
// is called.
func (n *node) spoil(inject string) (mend func()) {
	n.t.Helper()
	const calls = "fsync,fdatasync"
	cmd := exec.Command(strace(n.t), "-f", "-q", "-p", strconv.Itoa(n.proc.Pid), "-o", "/dev/null",
		"-e", "trace="+calls, "-e", "signal=none", "-e", "inject="+calls+":"+inject)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	var once sync.Once
	mend = func() {
		once.Do(func() {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil { // it lets go of the node
				n.t.Errorf("strace: %v: %s", err, said.String())
			}
			_ = cmd.Wait() // it ends by the signal
		})
	}
	n.t.Cleanup(mend)
	return mend
}

// A disk that fails to sync has promised nothing: the sender must not hear of success, and what is tried again
// later must not rest on what was lost.
func TestAFailedSyncIs503(t *testing.T) {
	beside(t)
	n := sqliteSite(t, t.TempDir()).serve()
	l := n.endpoint()
	under := load{to: []*node{n}, ledger: l, conns: 8, rate: 200}.start()
	eventually(t, patience, "captures", func() bool { return l.last(http.StatusOK) })

	mend := n.spoil("error=EIO")
	eventually(t, patience, "the sync fails", func() bool { return l.last(http.StatusServiceUnavailable) })
	broken := time.Now()
	<-time.After(pick(time.Second, 10*time.Second))
	if status, body, err := n.get("/readyz"); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("readyz while syncs fail: %d %s %v", status, body, err)
	}
	l.since(t, broken, 1)
	mended := time.Now()
	mend()
	eventually(t, patience, "captures again", func() bool { return l.last(http.StatusOK) })
	took := time.Since(mended)
	<-time.After(300 * time.Millisecond)
	under.stop()
	refused := 0
	for _, a := range l.all() {
		if a.begun.After(broken) && a.ended.Before(mended) {
			if refused++; a.status != http.StatusServiceUnavailable {
				t.Errorf("while no sync succeeded request %d was answered %d", a.number, a.status)
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
	n.ready(patience)
	t.Logf("%v; captures %v after syncs did; after a kill: %v", r, took, l.check(t, n))
}

func TestADiskThatHangsIs503InTime(t *testing.T) {
	beside(t)
	n := sqliteSite(t, t.TempDir()).serve()
	l := n.endpoint()
	const rate = 50
	under := load{to: []*node{n}, ledger: l, conns: 10 * rate, rate: rate}.start()
	eventually(t, patience, "captures", func() bool { return l.last(http.StatusOK) })
	mend := n.spoil("delay_enter=" + pick("14s", "20s"))
	eventually(t, patience, "a refusal", func() bool { return l.last(http.StatusServiceUnavailable) })
	if status, body, err := n.get("/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("healthz while the disk hangs: %d %s %v", status, body, err)
	}
	if status, body, err := n.get("/readyz"); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("readyz while the disk hangs: %d %s %v", status, body, err)
	}
	mend()
	mended := time.Now()
	// The sync that hangs still takes its time.
	recovered := eventually(t, patience, "captures again", func() bool { return l.last(http.StatusOK) })
	<-time.After(500 * time.Millisecond)
	under.stop()
	// Under strace each call of the node waits for a processor once more.
	checkRefusals(t, l.all(), 12*time.Second, http.StatusOK, http.StatusServiceUnavailable)
	var slowest time.Duration
	for _, a := range l.all() {
		slowest = max(slowest, a.took())
		if a.begun.After(mended.Add(recovered)) && a.status != http.StatusOK {
			t.Errorf("request %d was answered %d after the disk came back", a.number, a.status)
		}
	}
	_, peak := n.memory()
	t.Logf("%v; no answer took more than %v; captures %v after the disk was let go; memory peak %d MB", l.check(t, n), slowest, recovered, peak>>20)
}
