package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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
	nodes    []nodesRow
	quiets   []quietRow

	mailPeerMissing bool
}

// String is the report as Markdown that reads well in a terminal too: a section a part, each saying by itself what it
// was measured with.
func (r *report) String() string {
	measured := fmt.Sprintf("Measured on %s with %s, %s; the load, the service and its database shared the machine%s.",
		time.Now().UTC().Format(time.DateOnly), r.version, r.facts, r.plan.disk.String())
	var all strings.Builder
	for _, write := range []func(*strings.Builder){
		r.writeCaptures, r.writeForwards, r.writeActions, r.writeMails, r.writeAgents, r.writeTunnels, r.writeReads, r.writeStarts, r.writeMemories, r.writeNodes,
	} {
		var b strings.Builder
		write(&b)
		if b.Len() > 0 {
			all.WriteString(strings.TrimRight(b.String(), "\n") + "\n\n" + measured + "\n")
		}
	}
	return all.String()
}

func (r *report) writeCaptures(b *strings.Builder) {
	if len(r.captures) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Capture\n\nA GitHub push of 1.5 KB with its 12 headers, answered after the event is on disk. Medians of %d rounds of %v a load,\n"+
		"interleaved; load by %s. Ratios are to the no-op of the same round. A task each: the endpoint has an action, so each event is stored with a task,\n"+
		"which is worked meanwhile and finds that the action's condition does not hold.\n\n", r.plan.rounds, r.plan.time, generatorName(r.plan.load))
	t := table{{"system", "connections", "captures/s", "ratio", "p50", "p99", "p99 ratio", "failed"}}
	for _, c := range r.captures {
		t = append(t, []string{c.system, strconv.Itoa(c.conns), thousands(int64(c.perSecond)), fmt.Sprintf("%.2f", c.ratio),
			duration(c.p50), duration(c.p99), fmt.Sprintf("%.1f", c.p99Ratio), strconv.FormatInt(c.failed, 10)})
	}
	t.write(b)
	fmt.Fprintf(b, "\n![Captures as a share of the no-op](%s)\n", plotFile("capture"))
	if len(r.checked) > 0 {
		fmt.Fprintf(b, "\nAfterwards: %s.\n", strings.Join(r.checked, "; "))
	}
}

func (r *report) writeForwards(b *strings.Builder) {
	if len(r.forwards) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Forwarding and replay\n\nThe same requests at a fixed rate, to an endpoint without a forwarding target and with one by turns; the target is a\n"+
		"process of its own and answers at once. Forwards/s are over the time until the last had arrived. Medians of %d rounds of %v a load, of ratios those within a round.\n"+
		"The processor time of a forward is that of the service and its database beside forwards, less that of the captures alone. What a replay adds is its\n"+
		"answer's median less that of the same request made directly.\n\n", r.plan.rounds, r.plan.time)
	t := table{{"database", "captures/s", "p99 alone", "p99 beside forwards", "ratio", "p50 ratio", "forwards/s", "last after", "twice", "CPU of a capture", "of a forward", "replay adds", "at the goal"}}
	for _, f := range r.forwards {
		reached := "yes"
		forwards := f.median(func(r forwardRound) float64 { return r.forwards })
		if forwards < 0.95*float64(f.goal) {
			reached = "no: " + thousands(int64(f.goal))
		}
		t = append(t, []string{
			title(f.database), thousands(int64(f.median(func(r forwardRound) float64 { return r.beside.perSecond }))),
			duration(f.medianTime(func(r forwardRound) time.Duration { return r.alone.p99 })), duration(f.medianTime(func(r forwardRound) time.Duration { return r.beside.p99 })),
			fmt.Sprintf("%.2f", f.median(func(r forwardRound) float64 { return float64(r.beside.p99) / float64(r.alone.p99) })),
			fmt.Sprintf("%.2f", f.median(func(r forwardRound) float64 { return float64(r.beside.p50) / float64(r.alone.p50) })),
			thousands(int64(forwards)), duration(f.medianTime(func(r forwardRound) time.Duration { return r.lag })), strconv.FormatInt(f.twice, 10),
			fmt.Sprintf("%.0f µs", f.median(func(r forwardRound) float64 { return r.cpuAlone })), fmt.Sprintf("%.0f µs", f.median(func(r forwardRound) float64 { return r.cpuForward })),
			duration(f.replayAdds), reached,
		})
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
	for _, database := range r.plan.databases {
		if len(r.growth(database)) > 0 {
			fmt.Fprintf(b, "\n![Times of lists and searches on %s, by the number of events](%s)\n", title(database), plotFile("reads-"+database))
		}
	}
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
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
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

// writeBetweenMarkers replaces the sections of the report in what stands between the markers of the file, and leaves
// those of parts that were not measured.
func writeBetweenMarkers(file, report string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(b), beginMarker)
	old, tail, ok2 := strings.Cut(rest, endMarker)
	if !ok || !ok2 {
		return errors.New(file + " does not hold the markers " + beginMarker + " and " + endMarker)
	}
	merged := sections(old)
	for _, s := range sections(report) {
		if i := slices.IndexFunc(merged, func(m section) bool { return m.title == s.title }); i >= 0 {
			merged[i] = s
		} else {
			merged = append(merged, s)
		}
	}
	var all strings.Builder
	for _, s := range merged {
		all.WriteString(sectionMark + s.title + "\n\n" + s.text + "\n\n")
	}
	return os.WriteFile(file, []byte(head+beginMarker+"\n\n"+all.String()+endMarker+tail), 0o644)
}

// section is what a report says of one part.
type section struct{ title, text string }

const sectionMark = "### "

func sections(report string) []section {
	var all []section
	for _, part := range strings.Split("\n"+report, "\n"+sectionMark)[1:] {
		title, text, _ := strings.Cut(part, "\n")
		all = append(all, section{title, strings.TrimSpace(text)})
	}
	return all
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
