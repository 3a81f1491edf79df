//go:build linux

package faults_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What kill -9 can not show, because the system's cache outlives the process: that the log is on the disk before
// the sender hears of it.
func TestTheLogIsOnDiskBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	n := newSite(t, t.TempDir(), "").node()
	n.wrapper = []string{strace(t), "-f", "-y", "-s", "400", "-e", "trace=pwrite64,fsync,fdatasync,write,writev", "-e", "signal=none", "-o", trace}
	n.start()
	n.ready(time.Minute)
	l := n.endpoint()
	// One sender: what is written to the log between two answers belongs to the second.
	under := load{to: []*node{n}, ledger: l, conns: 1}.start()
	want := pick(25, 1000)
	eventually(t, 2*time.Minute, "enough requests", func() bool { return l.count(http.StatusOK) >= want })
	under.stop()
	checkRefusals(t, l.all(), answerLimit, http.StatusOK)
	n.kill()
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	order := readOrder(string(text))
	for _, fault := range order.faults {
		t.Error(fault)
	}
	if acked := l.count(http.StatusOK); order.answers != acked {
		t.Errorf("the trace shows %d answers, the sender got %d", order.answers, acked)
	}
	t.Logf("%d answers, each behind its own sync of the log; %d writes to the log, %d syncs of it", order.answers, order.writes, order.syncs)
}

// order is what a trace shows of log writes, syncs and answers.
type order struct {
	answers, writes, syncs int
	faults                 []string
}

// readOrder reads the output of strace -f -y. A call that another thread's line interrupts is split in two, and has
// its effect at the second.
func readOrder(trace string) order {
	const log = "hookglass.db-wal>"
	var o order
	pending := make(map[string]string) // by thread
	dirty, synced := false, 0
	for line := range strings.Lines(trace) {
		thread, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		call = strings.TrimSpace(call)
		if begun, ok := strings.CutSuffix(call, "<unfinished ...>"); ok {
			if strings.HasPrefix(call, "write") && strings.Contains(call, `"HTTP/1.1 200`) {
				// The answer may be on its way from here on.
				o.answer(call, dirty, &synced)
				begun = ""
			}
			pending[thread] = begun
			continue
		}
		if strings.HasPrefix(call, "<...") {
			_, rest, _ := strings.Cut(call, "resumed>")
			call = pending[thread] + rest
			delete(pending, thread)
		}
		switch {
		case strings.HasPrefix(call, "pwrite64(") && strings.Contains(call, log):
			dirty = true
			o.writes++
		case (strings.HasPrefix(call, "fdatasync(") || strings.HasPrefix(call, "fsync(")) && strings.Contains(call, log):
			if strings.HasSuffix(call, "= 0") {
				dirty = false
				synced++
				o.syncs++
			} else {
				o.faults = append(o.faults, "a sync failed: "+call)
			}
		case strings.HasPrefix(call, "write") && strings.Contains(call, `"HTTP/1.1 200`):
			o.answer(call, dirty, &synced)
		}
	}
	return o
}

// answer judges an answer to a webhook; others are answered 200 as well.
func (o *order) answer(call string, dirty bool, synced *int) {
	if !strings.Contains(call, `\"received\":true`) {
		return
	}
	o.answers++
	if dirty {
		o.faults = append(o.faults, "an answer was written while the log was not on disk: "+call)
	}
	if *synced == 0 {
		o.faults = append(o.faults, "an answer was written without a sync of the log since the one before it: "+call)
	}
	*synced = 0
}

// The reader of traces is tried on what it has to tell apart.
func TestReadingTraces(t *testing.T) {
	const (
		write  = `11 pwrite64(7</d/hookglass.db-wal>, "x"..., 8192, 32) = 8192` + "\n"
		sync   = `11 fdatasync(7</d/hookglass.db-wal>) = 0` + "\n"
		answer = `12 write(9<socket:[5]>, "HTTP/1.1 200 OK\r\n\r\n{\"received\":true,\"id\":\"req_1\"}", 60) = 60` + "\n"
	)
	for _, c := range []struct {
		name, trace     string
		answers, faults int
	}{
		{"in order", write + sync + answer + write + sync + answer, 2, 0},
		{"not synced", write + answer, 1, 2},
		{"synced too late", write + answer + sync, 1, 2},
		{"synced for another", write + sync + answer + answer, 2, 1},
		{"not all of it synced", write + sync + write + answer, 1, 1},
		{"sync failed", write + strings.Replace(sync, "= 0", "= -1 EIO (Input/output error)", 1) + answer, 1, 3},
		{"sync split, ended before", write + "11 fdatasync(7</d/hookglass.db-wal> <unfinished ...>\n11 <... fdatasync resumed>) = 0\n" + answer, 1, 0},
		{"sync split, ended after", write + "11 fdatasync(7</d/hookglass.db-wal> <unfinished ...>\n" + answer + "11 <... fdatasync resumed>) = 0\n", 1, 2},
	} {
		if o := readOrder(c.trace); o.answers != c.answers || len(o.faults) != c.faults {
			t.Errorf("%s: %d answers, faults %q", c.name, o.answers, o.faults)
		}
	}
}
