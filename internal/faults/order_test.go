//go:build linux

package faults_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// What kill -9 cannot show, because the system's cache outlives the process: that the log is on the disk before
// the sender hears of it.
func TestTheLogIsOnDiskBeforeTheAnswer(t *testing.T) {
	beside(t)
	trace := filepath.Join(t.TempDir(), "trace")
	n := sqliteSite(t, t.TempDir()).node()
	n.wrapper = []string{strace(t), "-f", "-y", "-s", "8192", "-e", "trace=pwrite64,fsync,fdatasync,write,writev", "-e", "signal=none", "-o", trace}
	n.start()
	n.ready(time.Minute)
	l := n.endpoint()
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
	t.Logf("%d answers, each behind a sync of what it tells of; %d writes to the log, %d syncs of it", order.answers, order.writes, order.syncs)
}

// order is what a trace shows of log writes, syncs and answers.
type order struct {
	answers, writes, syncs int
	faults                 []string

	written map[string]int // the line in which the id of an event came to the log
	synced  int            // the line in which the last sync of the log that succeeded began; 0: there was none
}

// eventID finds the ids of events in a page of the log and in an answer.
var eventID = regexp.MustCompile(`req_[0-9a-z]{26}`)

// readOrder reads the output of strace -f -y with -s at the size of a page, so that pages are whole. A call that
// another thread's line interrupts is split in two, and has its effect at the second. Others write to the log too,
// between an answer and the sync before it: of an answer counts that what it tells of was in the log before a sync
// began that has ended.
func readOrder(trace string) order {
	const log = "hookglass.db-wal>"
	type begun struct {
		call string
		at   int
	}
	o := order{written: make(map[string]int)}
	pending := make(map[string]begun) // by thread
	at := 0
	for line := range strings.Lines(trace) {
		at++
		thread, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		call = strings.TrimSpace(call)
		began := at
		if first, ok := strings.CutSuffix(call, "<unfinished ...>"); ok {
			if strings.HasPrefix(call, "write") && strings.Contains(call, `"HTTP/1.1 200`) {
				// The answer may be on its way from here on.
				o.answer(call)
				first = ""
			}
			pending[thread] = begun{first, at}
			continue
		}
		if strings.HasPrefix(call, "<...") {
			_, rest, _ := strings.Cut(call, "resumed>")
			call, began = pending[thread].call+rest, pending[thread].at
			delete(pending, thread)
		}
		switch {
		case strings.HasPrefix(call, "pwrite64(") && strings.Contains(call, log):
			o.writes++
			for _, id := range eventID.FindAllString(call, -1) {
				if _, known := o.written[id]; !known {
					o.written[id] = at
				}
			}
		case (strings.HasPrefix(call, "fdatasync(") || strings.HasPrefix(call, "fsync(")) && strings.Contains(call, log):
			if strings.HasSuffix(call, "= 0") {
				o.synced = began
				o.syncs++
			} else {
				o.faults = append(o.faults, "a sync failed: "+call)
			}
		case strings.HasPrefix(call, "write") && strings.Contains(call, `"HTTP/1.1 200`):
			o.answer(call)
		}
	}
	return o
}

// answer judges an answer to a webhook; others are answered 200 as well.
func (o *order) answer(call string) {
	if !strings.Contains(call, `\"received\":true`) {
		return
	}
	o.answers++
	switch written, known := o.written[eventID.FindString(call)]; {
	case !known:
		o.faults = append(o.faults, "an answer was written before its event was in the log: "+call)
	case o.synced < written:
		o.faults = append(o.faults, "an answer was written while its event was not on disk: "+call)
	}
}

// The reader of traces is tried on what it has to tell apart.
func TestReadingTraces(t *testing.T) {
	const (
		syncBegins = "11 fdatasync(7</d/hookglass.db-wal> <unfinished ...>\n"
		syncEnds   = "11 <... fdatasync resumed>) = 0\n"
		sync       = "11 fdatasync(7</d/hookglass.db-wal>) = 0\n"
		failed     = "11 fdatasync(7</d/hookglass.db-wal>) = -1 EIO (Input/output error)\n"
	)
	id := func(n byte) string { return "req_" + strings.Repeat("0", 25) + string('0'+n) }
	write := func(events ...byte) string {
		var page strings.Builder
		for _, n := range events {
			page.WriteString(`\4` + id(n) + `7z`) // the next column follows without a gap
		}
		return `11 pwrite64(7</d/hookglass.db-wal>, "x` + page.String() + `"..., 4096, 56) = 4096` + "\n"
	}
	answer := func(n byte) string {
		return `12 write(9<socket:[5]>, "HTTP/1.1 200 OK\r\n\r\n{\"received\":true,\"id\":\"` + id(n) + `\"}", 60) = 60` + "\n"
	}
	for _, c := range []struct {
		name, trace     string
		answers, faults int
	}{
		{"in order", write(1) + sync + answer(1) + write(1, 2) + sync + answer(2), 2, 0},
		{"not synced", write(1) + answer(1), 1, 1},
		{"synced too late", write(1) + answer(1) + sync, 1, 1},
		{"synced too early", sync + write(1) + answer(1), 1, 1},
		{"synced for another", write(1) + sync + answer(1) + answer(2), 2, 1},
		{"another is written meanwhile", write(1) + sync + write(2) + answer(1), 1, 0},
		{"another is written and answered", write(1) + sync + write(2) + answer(1) + answer(2), 2, 1},
		{"sync failed", write(1) + failed + answer(1), 1, 2},
		{"sync split, ended before", write(1) + syncBegins + syncEnds + answer(1), 1, 0},
		{"sync split, ended after", write(1) + syncBegins + answer(1) + syncEnds, 1, 1},
		{"sync split, begun before", syncBegins + write(1) + syncEnds + answer(1), 1, 1},
	} {
		if o := readOrder(c.trace); o.answers != c.answers || len(o.faults) != c.faults {
			t.Errorf("%s: %d answers, faults %q", c.name, o.answers, o.faults)
		}
	}
}
