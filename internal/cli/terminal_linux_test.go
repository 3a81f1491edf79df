package cli_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hookglass/internal/cli"
)

// terminal opens a pseudo-terminal: what the program has, and the person's side of it.
func terminal(t *testing.T) (program, person *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 60})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close(); person.Close() })
	return program, person
}

// onTerminal runs a command with a terminal for everything.
func onTerminal(t *testing.T, args ...string) (g *going, person *os.File) {
	t.Helper()
	program, person := terminal(t)
	ctx, stop := context.WithCancel(t.Context())
	g = &going{out: newFeed(), stop: stop, code: make(chan int, 1)}
	g.err = g.out
	go func() { _, _ = io.Copy(g.out, person) }()
	go func() { g.code <- cli.Main(ctx, args, program, program, program) }()
	t.Cleanup(stop)
	return g, person
}

func TestOnATerminalItIsAskedWhetherToDelete(t *testing.T) {
	endpoint, hook := listening(t)
	send(t, hook, "text/plain", "x")
	for _, c := range []struct {
		said string
		code int
		want string
	}{{"n\n", 1, "nothing was deleted"}, {"\n", 1, "nothing was deleted"}, {"y\n", 0, "Deleted 1 event."}} {
		g, person := onTerminal(t, "requests", "delete", "-e", endpoint, "-q", "x")
		g.out.wait(t, "Delete 1 event of "+endpoint+` for good\? \[y/N\] `)
		if _, err := person.WriteString(c.said); err != nil {
			t.Fatal(err)
		}
		g.out.wait(t, c.want)
		g.ends(t, c.code)
	}
}

func TestOnATerminalAnEndpointIsDeletedWhenAgreed(t *testing.T) {
	endpoint, hook := listening(t)
	post(t, hook, "x")
	for _, c := range []struct {
		said, want string
		code       int
	}{{"\n", "nothing was deleted", 1}, {"y\n", "Deleted " + endpoint, 0}} {
		g, person := onTerminal(t, "endpoints", "delete", endpoint)
		g.out.wait(t, "Delete "+endpoint+` \(.*\) with 1 event for good\? \[y/N\] `)
		if _, err := person.WriteString(c.said); err != nil {
			t.Fatal(err)
		}
		g.out.wait(t, c.want)
		g.ends(t, c.code)
	}
}

func TestOnATerminalNoSecretIsTyped(t *testing.T) {
	g, _ := onTerminal(t, "secrets", "set", "X")
	g.out.wait(t, "would be seen")
	g.ends(t, 2)
}

func TestOnATerminalLinesAreColouredAndDrawnAgain(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	local, _ := receiver(t)
	g, _ := onTerminal(t, "listen", local, "--exit-after", "2")
	hook := g.out.wait(t, hookPattern)
	g.out.wait(t, `connected, 0 delivered, 0 failed`)
	post(t, hook+"/"+strings.Repeat("long", 30), "status 404")
	post(t, hook+"/short", "")
	g.ends(t, 0)
	text := g.out.wait(t, `(?s)(.*2 events in \S+: .* failed)`)
	for _, want := range []string{"\x1b[33m 404\x1b[0m", "\x1b[32m 200\x1b[0m", "\x1b[1A\x1b[J", "1 delivered, 1 failed"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	for _, line := range regexp.MustCompile(`\x1b\[2m([^\x1b]*)`).FindAllStringSubmatch(text, -1) {
		if len(line[1]) >= 60 {
			t.Errorf("%q does not fit into 60 columns, and would not be taken away", line[1])
		}
	}

	t.Setenv("NO_COLOR", "1")
	g, _ = onTerminal(t, "listen", local, "--exit-after", "1")
	hook = g.out.wait(t, hookPattern)
	g.out.wait(t, `connected, 0 delivered`)
	post(t, hook, "")
	g.ends(t, 0)
	if text := g.out.wait(t, `(?s)(.*1 event in \S+: .* failed)`); regexp.MustCompile(`\x1b\[[0-9;]*m`).MatchString(text) {
		t.Errorf("colour in spite of NO_COLOR: %q", text)
	}
}

func TestOnANarrowTerminalLinesAreTakenAwayWhole(t *testing.T) {
	for _, c := range []struct {
		line    string
		columns int
		want    string
	}{{"connected", 9, "connected"}, {"connected", 8, "connecte"}, {"a注文b", 5, "a注文"}, {"a注文b", 4, "a注"}, {"é", 1, "é"}, {"x", 0, ""}} {
		if got := cli.Clipped(c.line, c.columns); got != c.want {
			t.Errorf("%q in %d columns is %q, want %q", c.line, c.columns, got, c.want)
		}
	}

	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("TERM", "xterm")
	program, person := terminal(t)
	if err := unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 18}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	g := &going{out: newFeed(), stop: stop, code: make(chan int, 1)}
	g.err = g.out
	t.Cleanup(stop)
	go func() { _, _ = io.Copy(g.out, person) }()
	go func() { g.code <- cli.Main(ctx, []string{"listen"}, program, program, program) }()
	g.out.wait(t, `connected, 0 deli`)
	if text := g.out.String(); strings.Contains(text, "connected, 0 deliv") {
		t.Errorf("the line is longer than the terminal is wide: %q", text)
	}
	stop()
	g.ends(t, 0)
}

func TestWhatGoesToATerminalHasNoOrdersForIt(t *testing.T) {
	endpoint, hook := listening(t)
	send(t, hook, "application/json", "{\"name\":\"\u009b31mred\u202e\x7f\"}")
	g, _ := onTerminal(t, "requests", "export", "-e", endpoint)
	text := g.out.wait(t, `(?s)(\{.*\})`)
	g.ends(t, 0)
	if strings.ContainsAny(text, "\u009b\u202e\x7f") || !strings.Contains(text, `\u009b31mred\u202e\u007f`) {
		t.Errorf("%q", text)
	}
}

func TestOnATerminalItAsksAboutWhatWasMissed(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("TERM", "xterm")
	local, got := receiver(t)
	for answer, delivered := range map[string]int{"\n": 2, "n\n": 0} {
		before := len(got())
		key, hook := missedTwo(t, a, local)
		g, person := onTerminal(t, "listen", local, "--key", key, "--exit-after", fmt.Sprint(delivered+1))
		g.out.wait(t, `2 events were missed while nobody listened. Deliver now\? \[Y/n\]`)
		_, _ = io.WriteString(person, answer)
		if delivered > 0 {
			g.out.wait(t, `offline \S+: 2 missed, 2 delivered, 0 failed`)
		}
		post(t, hook+"/live", "")
		g.ends(t, 0)
		if n := len(got()) - before; n != delivered+1 {
			t.Errorf("after %q %d were delivered: %q", answer, n, got())
		}
	}
}

func TestAQuestionThatTheConnectionTookAwayIsAskedAgain(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("TERM", "xterm")
	local, got := receiver(t)
	key, _ := missedTwo(t, a, local)
	wire := newWire(t, a.server)
	g, person := onTerminal(t, "listen", local, "--key", key, "--server", wire.url, "--exit-after", "2")
	g.out.wait(t, `2 events were missed while nobody listened. Deliver now\? \[Y/n\]`)
	wire.drop()
	g.out.wait(t, `(?s)connected again.*2 events were missed while nobody listened. Deliver now\? \[Y/n\]`)
	_, _ = io.WriteString(person, "\n")
	g.ends(t, 0)
	if all := got(); len(all) != 2 {
		t.Errorf("%q were delivered", all)
	}
}

func TestWhereNobodyCanBeAskedWhatWasMissedIsDelivered(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	local, got := receiver(t)
	key, _ := missedTwo(t, a, local)
	g := begin(t, strings.NewReader(""), "listen", local, "--key", key, "--recover", "ask", "--exit-after", "2", "--timeout", patience.String())
	g.ends(t, 0)
	if all := got(); len(all) != 2 {
		t.Errorf("%q were delivered", all)
	}
}

// A question would stop the program there, and with it the events. Lines that are drawn again would take away those of
// the program in the foreground.
func TestInTheBackgroundOfATerminalNobodyIsAskedAndNothingIsDrawnAgain(t *testing.T) {
	a := running(t)
	local, got := receiver(t)
	key, _ := missedTwo(t, a, local)
	program, person := terminal(t)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	// With -m each job has a process group of its own.
	shell := exec.CommandContext(ctx, "/bin/sh", "-m", "-c", `"$@" & wait $!`, "sh", os.Args[0], "listen", local, "--key", key, "--exit-after", "2")
	shell.Env = append(os.Environ(), "HOOKGLASS_TEST_MAIN=1", "HOOKGLASS_SERVER="+a.server, "TERM=xterm", "NO_COLOR=1")
	shell.Stdin, shell.Stdout, shell.Stderr = program, program, program
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	out := newFeed()
	go func() { _, _ = io.Copy(out, person) }()
	if err := shell.Run(); err != nil {
		t.Fatalf("%v; printed:\n%s", err, out)
	}
	if text := out.wait(t, `(?s)(.*2 events in .*)`); len(got()) != 2 || strings.Contains(text, "Deliver now?") || strings.Contains(text, "\x1b") {
		t.Errorf("%q were delivered; printed:\n%q", got(), text)
	}
}

// missedTwo has a temporary endpoint of that key miss two events after its listener was cut off.
func missedTwo(t *testing.T, a at, local string) (key, hook string) {
	t.Helper()
	wire := newWire(t, a.server)
	first := begin(t, strings.NewReader(""), "listen", local, "--server", wire.url)
	key, hook = first.err.wait(t, `--key (tk_\w+)`), first.err.wait(t, hookPattern)
	first.err.wait(t, "connected;")
	wire.cut()
	first.err.wait(t, "connection lost")
	first.stop()
	first.ends(t, 0)
	post(t, hook+"/1", "")
	post(t, hook+"/2", "")
	return key, hook
}

// wire lies between a program and a server, and can be cut.
type wire struct {
	url      string
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
}

func newWire(t *testing.T, server string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{url: "http://" + l.Addr().String(), listener: l}
	t.Cleanup(w.cut)
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(server, "http://"))
			if err != nil {
				near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, near, far)
			w.mu.Unlock()
			go func() { _, _ = io.Copy(near, far); near.Close() }()
			go func() { _, _ = io.Copy(far, near); far.Close() }()
		}
	}()
	return w
}

func (w *wire) cut() {
	w.listener.Close()
	w.drop()
}

// drop ends the connections; new ones are made.
func (w *wire) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
}
