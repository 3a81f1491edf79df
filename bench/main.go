// Command bench measures a built hookglass from outside, as a sender and as a reader: how fast it captures with the
// event on disk before the answer, how long lists and searches take when there are many events, how soon it is ready,
// and what memory it takes. Only the ratios to the no-op server of the same run carry over to another machine, and
// nothing that is measured on loopback with the load beside it says what a network would show.
//
// It needs the binary and PostgreSQL's programs; it reaches no address but loopback, unless a peer is named.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hookglass/internal/store/storetest"
)

// plan is what one run of the benchmark does.
type plan struct {
	binary    string
	dir       string
	out       string
	databases []string
	parts     []string
	load      string
	profiles  string // directory; empty for none
	conns     []int
	rounds    int
	warm      time.Duration
	time      time.Duration
	sizes     []int
	tunnels   int // idle ones
	scale
	peers     []peer
	mailPeers []peer // by address, not URL
	disk      disk
	log       func(format string, args ...any)
}

// peer is another service to load beside ours.
type peer struct{ name, url string }

// The parts of a run.
const (
	partCapture = "capture"
	partForward = "forward"
	partActions = "actions"
	partMail    = "mail"
	partTunnel  = "tunnel"
	partAgents  = "agents"
	partNodes   = "nodes"
	partRead    = "read"
	partStart   = "start"
	partMemory  = "memory"
	partErase   = "erase"
)

var allParts = []string{
	partCapture, partForward, partActions, partMail, partTunnel, partAgents, partNodes, partRead, partStart, partMemory, partErase,
}

// scale is how much is done of what no flag says.
type scale struct {
	samples   int
	starts    int
	bodies    int
	bodyBytes int
	settle    time.Duration
	missed    int // events that a client misses
	quiet     time.Duration
	cluster   func(dir string) (*storetest.Cluster, error)
}

var (
	fullScale  = scale{samples: 200, starts: 5, bodies: 100, bodyBytes: 10 << 20, settle: 5 * time.Second, missed: 1000, quiet: 50 * time.Second, cluster: storetest.StartStock}
	smokeScale = scale{samples: 10, starts: 1, bodies: 8, bodyBytes: 1 << 20, settle: 200 * time.Millisecond, missed: 50, quiet: 200 * time.Millisecond, cluster: storetest.Start}
)

// smokeFlags are the flags of a smoke run, where they are not given.
var smokeFlags = map[string]string{
	"out": "", "conns": "8", "sizes": "200", "rounds": "1", "time": "300ms", "patience": "0s", "warm": "100ms", "tunnels": "20",
}

func main() {
	if beOther(os.Args) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	exitOn(err)
	debug.SetGCPercent(1000) // collections of the load and its targets would be taken for the service's
	r, err := p.run(ctx)
	exitOn(err)
	fmt.Println(r)
	if p.out != "" {
		exitOn(r.writePlots(p.out))
		exitOn(writeBetweenMarkers(p.out, r.String()))
	}
}

// beOther makes this program one of the servers that a measurement has beside it, where the arguments say so.
func beOther(args []string) bool {
	if len(args) != 3 {
		return false
	}
	switch args[1] {
	case noopCommand:
		exitOn(serveNoop(args[2]))
	case targetCommand:
		exitOn(serveTarget(args[2]))
	default:
		return false
	}
	return true
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*plan, error) {
	p := &plan{log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	short := fs.Bool("short", false, "a smoke run: everything once and tiny; figures mean nothing, and no file is written unless -out says so")
	fs.StringVar(&p.binary, "binary", "bin/hookglass", "the built program")
	fs.StringVar(&p.dir, "dir", "/var/tmp", "directory on a real disk for the databases; about 8 GB at full size")
	fs.StringVar(&p.out, "out", "docs/performance.md", "file between whose markers the sections of what was measured are written, the others staying as they are; empty for none")
	fs.StringVar(&p.load, "load", "auto", "load generator: own, wrk, or auto (wrk where it is installed)")
	databases := fs.String("databases", "sqlite,postgres", "which to measure")
	parts := fs.String("parts", strings.Join(allParts, ","), "which to measure; start, memory and erase use the events that read made")
	conns := fs.String("conns", "16,64,256", "connections of the capture part")
	sizes := fs.String("sizes", "1000,100000,1000000", "numbers of events of the read part")
	fs.IntVar(&p.rounds, "rounds", 3, "rounds of the capture, forward and mail parts; medians are reported")
	fs.IntVar(&p.tunnels, "tunnels", 5000, "idle sessions of the tunnel part")
	fs.DurationVar(&p.disk.patience, "patience", 30*time.Second, "how long a load waits at most for a disk that is slow at the moment")
	fs.StringVar(&p.profiles, "profile", "", "directory for processor profiles of the service during the forward part; empty for none")
	fs.DurationVar(&p.time, "time", 5*time.Second, "length of one load")
	fs.DurationVar(&p.warm, "warm", time.Second, "load before each measured one")
	fs.Func("peer", "name=url of another service to load with the same requests; may be repeated", p.addPeer)
	fs.Func("mail-peer", "name=host:port of another SMTP service to send the same mail to; may be repeated", p.addMailPeer)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected %q", fs.Arg(0))
	}
	p.scale = fullScale
	if *short {
		p.scale = smokeScale
		if err := setOthers(fs, smokeFlags); err != nil {
			return nil, err
		}
	}
	p.databases, p.parts = strings.Split(*databases, ","), strings.Split(*parts, ",")
	var err error
	if p.conns, err = numbers(*conns); err != nil {
		return nil, fmt.Errorf("-conns: %w", err)
	}
	if p.sizes, err = numbers(*sizes); err != nil {
		return nil, fmt.Errorf("-sizes: %w", err)
	}
	if p.binary, err = filepath.Abs(p.binary); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, p.chooseLoad()
}

// setOthers sets flags that were not given.
func setOthers(fs *flag.FlagSet, values map[string]string) error {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range values {
		if given[name] {
			continue
		}
		if err := fs.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) addPeer(s string) error {
	name, url, ok := strings.Cut(s, "=")
	if !ok || name == "" || !strings.HasPrefix(url, "http://") {
		return errors.New("want name=http://host:port/path")
	}
	p.peers = append(p.peers, peer{name, url})
	return nil
}

func (p *plan) addMailPeer(s string) error {
	name, addr, ok := strings.Cut(s, "=")
	if _, _, err := net.SplitHostPort(addr); !ok || name == "" || err != nil {
		return errors.New("want name=host:port")
	}
	p.mailPeers = append(p.mailPeers, peer{name, addr})
	return nil
}

// check says what is wrong with the values of the flags.
func (p *plan) check() error {
	for _, d := range p.databases {
		if d != sqlite && d != postgres {
			return fmt.Errorf("-databases: %q is neither %s nor %s", d, sqlite, postgres)
		}
	}
	for _, part := range p.parts {
		if !slices.Contains(allParts, part) {
			return fmt.Errorf("-parts: no part %q", part)
		}
	}
	if !slices.IsSorted(p.sizes) {
		return errors.New("-sizes: want ascending numbers, because each fills up what the one before left")
	}
	if p.rounds < 1 || p.time <= 0 {
		return errors.New("-rounds and -time must be positive")
	}
	return nil
}

func numbers(s string) ([]int, error) {
	var out []int
	for _, field := range strings.Split(s, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a positive number", field)
		}
		out = append(out, n)
	}
	return out, nil
}

// run measures the parts that are asked for and returns the report.
func (p *plan) run(ctx context.Context) (*report, error) {
	dir, err := os.MkdirTemp(p.dir, "hookglass-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &report{plan: p, facts: machine()}
	if r.version, err = p.version(ctx); err != nil {
		return nil, err
	}
	onEach := func(measure func(context.Context, string, string, *report) error) func() error {
		return func() error {
			for _, database := range p.databases {
				if err := measure(ctx, dir, database, r); err != nil {
					return fmt.Errorf("on %s: %w", database, err)
				}
			}
			return nil
		}
	}
	for _, step := range []struct {
		name    string
		wanted  bool
		measure func() error
	}{
		{"capture", p.wants(partCapture), func() error { return p.measureCapture(ctx, dir, r) }},
		{"forward", p.wants(partForward), onEach(p.measureForward)},
		{"actions", p.wants(partActions), onEach(p.measureActions)},
		{"mail", p.wants(partMail), func() error { return p.measureMail(ctx, dir, r) }},
		{"agents", p.wants(partAgents), onEach(p.measureAgents)},
		{"tunnel", p.wants(partTunnel), onEach(p.measureTunnel)},
		{"nodes", p.wants(partNodes) && slices.Contains(p.databases, postgres), func() error { return p.measureNodes(ctx, dir, r) }},
		{"flood", p.wants(partNodes), onEach(p.measureFlood)},
		{"stored events", p.wants(partRead, partStart, partMemory, partErase), onEach(p.measureStored)},
	} {
		if !step.wanted {
			continue
		}
		if err := step.measure(); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return r, nil
}

// wants reports whether any of some parts is asked for.
func (p *plan) wants(parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(p.parts, part) })
}

// measureStored measures what is done with stored events on one database, which it makes, fills and removes.
func (p *plan) measureStored(ctx context.Context, dir, database string, r *report) (err error) {
	s, err := p.service(ctx, dir, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	if p.wants(partRead) {
		if err := p.measureReads(ctx, s, r); err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
	if p.wants(partStart) {
		if err := p.measureStarts(ctx, s, r); err != nil {
			return fmt.Errorf("start: %w", err)
		}
	}
	if p.wants(partMemory) {
		if err := p.measureMemory(ctx, s, r); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
	}
	if p.wants(partErase) { // the last: it leaves nothing
		if err := p.measureErase(ctx, s, r); err != nil {
			return fmt.Errorf("erase: %w", err)
		}
	}
	return nil
}
