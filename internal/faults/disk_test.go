//go:build linux

package faults_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallDisk mounts a file system of so many bytes for the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	needsRoot(t, "it mounts a small file system")
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("CI") != "true" && errors.Is(err, syscall.EPERM) {
			t.Skip("may not mount:", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// last reports whether the answer noted last has this status.
func (l *ledger) last(status int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.answers) > 0 && l.answers[len(l.answers)-1].status == status
}

func TestFullDiskIs503UntilThereIsRoom(t *testing.T) {
	beside(t)
	dir := smallDisk(t, "128m") // the log alone may grow to 32 MB under load
	n := sqliteSite(t, dir).serve()
	l := n.endpoint()
	load{to: []*node{n}, ledger: l, conns: 8, rate: 500}.during(300 * time.Millisecond)
	ballast := filepath.Join(dir, "ballast")
	under := load{to: []*node{n}, ledger: l, conns: 8, rate: 500}.start()
	fill(t, ballast)
	eventually(t, patience, "the disk is full", func() bool { return l.last(http.StatusServiceUnavailable) })
	// What is in the log is copied into the database and its room is used again, until that has none either.
	eventually(t, patience, "nothing is stored any more", func() bool {
		fill(t, ballast)
		stored := l.count(http.StatusOK)
		<-time.After(300 * time.Millisecond)
		return l.count(http.StatusOK) == stored
	})
	full := time.Now()
	<-time.After(pick(time.Second, 15*time.Second))
	// A failed capture leaves a little room in the log, and each look writes to it until there is none.
	eventually(t, patience, "readyz says that the disk is full", func() bool {
		status, _, err := n.get("/readyz")
		return err == nil && status == http.StatusServiceUnavailable
	})
	if status, body, err := n.get("/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("healthz on a full disk: %d %s %v", status, body, err)
	}
	checkSays(t, n, "disk is full")
	beforeRoom := l.count(http.StatusOK)
	if status, body, err := n.call(n.token, http.MethodGet, "/endpoints/"+l.endpoint+"/requests", ""); err != nil || status != http.StatusOK {
		t.Errorf("reading from a full disk: %d %s %v", status, body, err)
	}
	freeing := time.Now() // there is room before the call returns
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	freed := time.Now()
	eventually(t, patience, "captures again after space was freed", func() bool { return l.last(http.StatusOK) })
	recovered := time.Since(freed)
	<-time.After(1200 * time.Millisecond)
	under.stop()
	n.ready(patience)
	for _, a := range l.all() {
		if a.begun.After(full) && a.ended.Before(freeing) && a.status != http.StatusServiceUnavailable {
			t.Errorf("on a full disk request %d was answered %d", a.number, a.status)
		} else if a.begun.After(freed.Add(recovered)) && a.status != http.StatusOK {
			t.Errorf("with room again request %d was answered %d", a.number, a.status)
		}
	}
	checkRefusals(t, l.all(), 8*time.Second, http.StatusOK, http.StatusServiceUnavailable)
	if !strings.Contains(n.log(), "stored again") {
		t.Error("the log does not say that it is over")
	}
	l.check(t, n)
	n.kill()
	n.start()
	n.ready(patience)
	t.Logf("%d acknowledged before it was full; captures %v after space was freed; after a kill: %v", beforeRoom, recovered, l.check(t, n))
}

// onReserve fills the disk until the server has given up of its reserve, and stays so.
func onReserve(t *testing.T, n *node, endpoint, ballast string) {
	t.Helper()
	var since time.Time // it says so without a break
	eventually(t, patience, "the disk is full", func() bool {
		if _, body, err := n.get("/readyz"); err == nil && strings.Contains(string(body), "given up") {
			if since.IsZero() {
				since = time.Now()
			}
			return time.Since(since) > 2500*time.Millisecond
		}
		since = time.Time{}
		fill(t, ballast)
		if resp, err := plain.Post("http://"+n.addr+"/hooks/"+endpoint, "text/plain", strings.NewReader(strings.Repeat("x", 100_000))); err == nil {
			resp.Body.Close()
		}
		return false
	})
}

// On a disk that is full to the last byte, by what others write, nothing is captured and everything can be deleted. With
// room again it goes on by itself, and a server that is started on a full disk runs.
func TestAFullDiskLeavesRoomToDelete(t *testing.T) {
	beside(t)
	dir := smallDisk(t, "128m")
	n := sqliteSite(t, dir).serve()
	reserve := filepath.Join(n.data(0), "hookglass.db-reserve")
	whole := func() bool {
		info, err := os.Stat(reserve)
		return err == nil && info.Size() == 16<<20
	}
	eventually(t, patience, "a reserve is held", whole)
	one, two, three := n.endpoint(), n.endpoint(), n.endpoint()
	for _, l := range []*ledger{one, two, three} {
		load{to: []*node{n}, ledger: l, conns: 4, rate: 1000}.during(300 * time.Millisecond)
	}
	event := n.event(one.endpoint)
	ballast := filepath.Join(dir, "ballast")
	onReserve(t, n, one.endpoint, ballast)

	if status, body, err := n.get("/readyz"); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("readyz on a full disk: %d %s %v", status, body, err)
	}
	if status, body, err := n.get("/metrics"); err != nil || !strings.Contains(string(body), "\nhookglass_disk_reserve 0\n") {
		t.Errorf("metrics on a full disk: %d %v do not say so", status, err)
	}
	if status, body := n.refused(http.MethodPost, "/endpoints/"+one.endpoint+"/test_requests", `{"method": "POST", "path": "/", "body": "x"}`); status != http.StatusServiceUnavailable {
		t.Errorf("a capture on a full disk: %d %s", status, body)
	}
	n.api(http.MethodPatch, "/endpoints/"+one.endpoint, `{"endpoint": {"name": "Renamed"}}`, nil)
	n.api(http.MethodDelete, "/endpoints/"+one.endpoint+"/requests/"+event, "", nil)
	n.api(http.MethodDelete, "/endpoints/"+one.endpoint+"/requests/destroy_all", "", nil)
	n.api(http.MethodDelete, "/endpoints/"+two.endpoint+"/requests/destroy_all?before=2099-01-01T00:00:00Z", "", nil)
	n.api(http.MethodDelete, "/endpoints/"+three.endpoint, "", nil)
	n.admin(nil, "account", "set", "--account", "1", "--retention", "1h")
	backup := filepath.Join(t.TempDir(), "backup")
	n.command(nil, "", append([]string{"backup", backup}, n.storage(0)...)...)
	if info, err := os.Stat(backup); err != nil || info.Size() > 8<<20 {
		t.Errorf("the backup holds the reserve: %v bytes, %v", info.Size(), err)
	}

	n.kill()
	fill(t, ballast)
	n.start()
	eventually(t, patience, "a server on a full disk runs", func() bool {
		status, _, err := n.call(n.token, http.MethodPatch, "/endpoints/"+two.endpoint, `{"endpoint": {"name": "Again"}}`)
		return err == nil && status == http.StatusOK
	})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the reserve is whole again", whole)
	n.ready(patience)
	n.event(one.endpoint)
	if status, body, err := n.get("/metrics"); err != nil || !strings.Contains(string(body), "\nhookglass_disk_reserve 1\n") {
		t.Errorf("metrics with room: %d %v do not say so", status, err)
	}
	checkSays(t, n, "held in reserve is given up")
}

// fill writes to a file until there is no room left.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// checkSays fails unless the log names the trouble, and does so a bounded number of times.
func checkSays(t *testing.T, n *node, words string) {
	t.Helper()
	log := n.log()
	said := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, words) && (strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")) {
			said++
		}
	}
	if said == 0 {
		t.Errorf("the log does not say %q as a warning or an error:\n%s", words, tail(log, 2000))
	}
	if refused := strings.Count(log, "\n"); refused > 1000 {
		t.Errorf("the log has %d lines: a disk that is full is said again and again", refused)
	}
}

// A restore that finds no room ends with an error, and the database that it would have replaced is as it was.
func TestARestoreThatFindsNoRoomLeavesWhatWasThere(t *testing.T) {
	beside(t)
	from := sqliteSite(t, t.TempDir()).serve()
	saved := from.endpoint()
	load{to: []*node{from}, ledger: saved, conns: 8, rate: 1000}.during(time.Second)
	large := make([]byte, 8<<20)
	_, _ = rand.Read(large)
	answered, err := plain.Post("http://"+from.addr+"/hooks/"+from.endpoint().endpoint, "", bytes.NewReader(large))
	if err != nil {
		t.Fatal(err)
	}
	defer answered.Body.Close()
	if answered.StatusCode != http.StatusOK {
		t.Fatalf("a large body was answered %d", answered.StatusCode)
	}
	file := filepath.Join(t.TempDir(), "backup")
	from.command(nil, "", append([]string{"backup", file, "--json"}, from.storage(0)...)...)

	cmd := exec.Command(program, "restore", file, "--data", filepath.Join(smallDisk(t, "4m"), "new"))
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "make room") {
		t.Errorf("into a disk with room for the tables alone: %v, %s", err, out)
	}

	dir := smallDisk(t, "64m")
	n := sqliteSite(t, dir).serve()
	l := n.endpoint()
	load{to: []*node{n}, ledger: l, conns: 8, rate: 200}.during(500 * time.Millisecond)
	n.kill() // what is in its log is not in the database yet
	ballast := filepath.Join(dir, "ballast")
	restore := append([]string{"restore", file, "--force", "--json"}, n.storage(0)...)
	for _, room := range []int64{0, 200 << 10, 1 << 20} {
		fill(t, ballast)
		info, err := os.Stat(ballast)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(ballast, info.Size()-room); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, restore...)
		cmd.Env = environment()
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Fatalf("with room for %d bytes it was restored: %s", room, out)
		} else if !strings.Contains(string(out), "disk is full") && !strings.Contains(string(out), "no space left") {
			t.Errorf("with room for %d bytes the reason is not said: %s", room, out)
		} else if !strings.Contains(string(out), "make room") {
			t.Errorf("with room for %d bytes it is not said what there is to do: %s", room, out)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	n.start()
	n.ready(patience)
	if b := l.check(t, n); b.acked == 0 || b.acked != b.stored {
		t.Errorf("after restores that failed: %v", b)
	}
	n.kill()
	n.command(nil, "", restore...)
	n.token = from.token
	n.start()
	n.ready(patience)
	if b := saved.check(t, n); b.acked == 0 || b.acked != b.stored {
		t.Errorf("after the restore: %v", b)
	}
}

func TestReadOnlyDiskIs503UntilItIsWritable(t *testing.T) {
	beside(t)
	dir := smallDisk(t, "64m")
	n := sqliteSite(t, dir).serve()
	l := n.endpoint()
	load{to: []*node{n}, ledger: l, conns: 2, rate: 50}.during(300 * time.Millisecond)
	before := l.check(t, n)

	// A new start on a disk that can only be read says why and ends.
	n.kill()
	remount(t, dir, syscall.MS_RDONLY)
	other := n.node()
	other.n = n.n
	_ = other.tryStart()
	if code := other.exit(patience); code == 0 {
		t.Error("a server started on a read-only directory")
	}
	if !strings.Contains(other.log(), "read-only") {
		t.Errorf("the reason is not said: %q", other.log())
	}
	remount(t, dir, 0)
	n.start()
	n.ready(patience)
	after := l.check(t, n)
	if before.acked == 0 || after.acked != before.acked {
		t.Errorf("before %v, after %v", before, after)
	}
}

func remount(t *testing.T, dir string, flags uintptr) {
	t.Helper()
	// A file that is open for writing keeps the whole from becoming read-only for a moment longer.
	eventually(t, patience, "remount", func() bool {
		err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, "")
		if err != nil && !errors.Is(err, syscall.EBUSY) {
			t.Fatal(err)
		}
		return err == nil
	})
}
