package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// The part of the report's file that belongs to this program.
const (
	beginMarker = "<!-- bench:begin -->"
	endMarker   = "<!-- bench:end -->"
)

// report is everything that a run found.
type report struct {
	plan     *plan
	version  string
	facts    string
	captures []captureRow
	checked  []string
	reads    []readRow
	actions  []actionRow
	starts   []startRow
	memories []memoryRow
	forwards []forwardRow
	mails    []mailRow
	agents   []agentRow
	tunnels  []tunnelRow

	mailPeerMissing bool
}

// String is the report as Markdown that reads well in a terminal too.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s with %s, %s; the load, the service and its database shared the machine.\n",
		time.Now().UTC().Format(time.DateOnly), r.version, r.facts)
	r.writeCaptures(&b)
	r.writeForwards(&b)
	r.writeActions(&b)
	r.writeMails(&b)
	r.writeAgents(&b)
	r.writeTunnels(&b)
	r.writeReads(&b)
	r.writeStarts(&b)
	r.writeMemories(&b)
	return b.String()
}

func (r *report) writeCaptures(b *strings.Builder) {
	if len(r.captures) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Capture\n\nA GitHub push of 1.5 KB with its 12 headers, answered after the event is on disk. Medians of %d rounds of %v a load,\n"+
		"interleaved; load by %s. Ratios are to the no-op of the same round.\n\n", r.plan.rounds, r.plan.time, generatorName(r.plan.load))
	t := table{{"system", "connections", "captures/s", "ratio", "p50", "p99", "p99 ratio", "failed"}}
	for _, c := range r.captures {
		t = append(t, []string{c.system, strconv.Itoa(c.conns), thousands(int64(c.perSecond)), fmt.Sprintf("%.2f", c.ratio),
			duration(c.p50), duration(c.p99), fmt.Sprintf("%.1f", c.p99Ratio), strconv.FormatInt(c.failed, 10)})
	}
	t.write(b)
	if len(r.checked) > 0 {
		fmt.Fprintf(b, "\nAfterwards: %s.\n", strings.Join(r.checked, "; "))
	}
}

func (r *report) writeForwards(b *strings.Builder) {
	if len(r.forwards) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Forwarding and replay\n\nThe same requests at a fixed rate, first to an endpoint without a forwarding target, then to one with one; the target is in the benchmark's own\n"+
		"process and answers at once. Forwards/s are over the time until the last had arrived. What a replay adds is its answer's median less that of the\nsame request made directly.\n\n")
	t := table{{"database", "captures/s", "p99 alone", "p99 beside forwards", "ratio", "forwards/s", "last after", "twice", "replay adds", "at the goal"}}
	for _, f := range r.forwards {
		reached := "yes"
		if f.forwards < 0.95*float64(f.goal) {
			reached = "no: " + thousands(int64(f.goal))
		}
		t = append(t, []string{title(f.database), thousands(int64(f.captures)), duration(f.p99Alone), duration(f.p99Beside), fmt.Sprintf("%.2f", float64(f.p99Beside)/float64(f.p99Alone)),
			thousands(int64(f.forwards)), duration(f.lag), strconv.FormatInt(f.twice, 10), duration(f.replayAdds), reached})
	}
	t.write(b)
}

func (r *report) writeMails(b *strings.Builder) {
	if len(r.mails) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Mail\n\nMessages of %d KiB by SMTP over %d connections, command by command, 250 after the event is on disk; SPF, DKIM and DMARC of each are worked\n"+
		"meanwhile with a DNS that knows no name. Medians of %d rounds of %v a load, interleaved. The goal on SQLite is %s a second.\n\n",
		mailBytes>>10, mailConns, r.plan.rounds, r.plan.time, thousands(mailGoal))
	t := table{{"system", "messages/s", "p50", "p99", "failed", "ours, times"}}
	for _, m := range r.mails {
		times := ""
		if m.ratio > 0 {
			times = fmt.Sprintf("%.1f (goal %d)", m.ratio, mailPeerGoal)
		}
		t = append(t, []string{m.system, thousands(int64(m.perSecond)), duration(m.p50), duration(m.p99), strconv.FormatInt(m.failed, 10), times})
	}
	t.write(b)
	if r.mailPeerMissing {
		b.WriteString("\nNo other mail service was measured beside it: none was named with `-mail-peer`.\n")
	}
}

func (r *report) writeReads(b *strings.Builder) {
	if len(r.reads) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Lists and searches\n\nOne reader over the API, answers of at most 25 events with `meta.total`.\n\n")
	t := table{{"database", "events", "asked", "median", "p99", "times", "found"}}
	for _, row := range r.reads {
		if row.problem != "" {
			t = append(t, []string{title(row.database), thousands(int64(row.events)), row.what, row.problem, "", "", ""})
			continue
		}
		t = append(t, []string{title(row.database), thousands(int64(row.events)), row.what, duration(row.median), duration(row.p99),
			strconv.Itoa(row.samples), strconv.Itoa(row.found)})
	}
	t.write(b)
}

func (row readRow) figures() string {
	if row.problem != "" {
		return row.problem
	}
	return fmt.Sprintf("median %s, p99 %s", duration(row.median), duration(row.p99))
}

func (r *report) writeStarts(b *strings.Builder) {
	if len(r.starts) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Starting\n\nFrom the start of the process until `/readyz` answers 200. After each kill every acknowledged event was counted again.\n\n")
	t := table{{"database", "events", "start", "median", "worst", "starts", "slowest stop"}}
	for _, s := range r.starts {
		stopped := ""
		if s.stoppedIn > 0 {
			stopped = duration(s.stoppedIn)
		}
		t = append(t, []string{title(s.database), thousands(s.events), s.what, duration(s.median), duration(s.worst), strconv.Itoa(s.starts), stopped})
	}
	t.write(b)
}

func (r *report) writeMemories(b *strings.Builder) {
	if len(r.memories) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Memory\n\nResident memory of the service's process, as Linux counts it.\n\n")
	t := table{{"database", "events", "idle", "large bodies at once", "taken", "highest", "all answered in"}}
	for _, m := range r.memories {
		t = append(t, []string{title(m.database), thousands(m.events), mebibytes(m.idle), fmt.Sprintf("%d of %s", m.bodies, mebibytes(int64(m.size))),
			strconv.FormatInt(m.acked, 10), mebibytes(m.loaded), duration(m.took)})
	}
	t.write(b)
}

// table is rows of cells, the first row its head.
type table [][]string

// write writes the table with its columns aligned.
func (t table) write(b *strings.Builder) {
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	line := func(cells []string) {
		for i, cell := range cells {
			fmt.Fprintf(b, "| %-*s ", widths[i], cell)
		}
		b.WriteString("|\n")
	}
	line(t[0])
	for _, w := range widths {
		b.WriteString("|" + strings.Repeat("-", w+2))
	}
	b.WriteString("|\n")
	for _, row := range t[1:] {
		line(row)
	}
}

// writeBetweenMarkers replaces what stands between the markers of the file.
func writeBetweenMarkers(file, report string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(b), beginMarker)
	_, tail, ok2 := strings.Cut(rest, endMarker)
	if !ok || !ok2 {
		return errors.New(file + " does not hold the markers " + beginMarker + " and " + endMarker)
	}
	return os.WriteFile(file, []byte(head+beginMarker+"\n\n"+report+"\n"+endMarker+tail), 0o644)
}

// machine is what of the machine the figures depend on.
func machine() string {
	facts := []string{fmt.Sprintf("%d cores", runtime.NumCPU()), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if out, err := exec.Command("postgres", "--version").Output(); err == nil {
		if fields := strings.Fields(string(out)); len(fields) > 2 {
			facts = append(facts, "PostgreSQL "+fields[2])
		}
	}
	return strings.Join(facts, ", ")
}

func generatorName(load string) string {
	if load == loadWrk {
		return "wrk"
	}
	return "the benchmark's own generator"
}

func title(database string) string {
	if database == postgres {
		return "PostgreSQL"
	}
	return "SQLite"
}

// duration is a duration with three digits at most.
func duration(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	default:
		return fmt.Sprintf("%.2f ms", d.Seconds()*1e3)
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

// thousands is a number with its digits in groups.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
