//go:build linux

package faults_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// site is one installation: a database, a keyset and an owner's token. Nodes are processes on it.
type site struct {
	t     *testing.T
	dir   string
	dsn   string // empty: SQLite
	token string
	nodes int
}

// newSite makes a database with a user and a token, by the administration commands, in a directory of its own
// below dir, which a test that wants a certain disk gives.
func newSite(t *testing.T, dir, dsn string) *site {
	t.Helper()
	token, err := makeSite(dir, dsn)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, dir: dir, dsn: dsn, token: token}
}

// data is the data directory of the n-th node. SQLite has one node, and so one directory.
func (s *site) data(n int) string { return filepath.Join(s.dir, "data"+strconv.Itoa(n)) }

func (s *site) storage(n int) []string { return storage(s.data(n), s.dsn, s.dir) }

// storage are the flags that name a database, and the keyset that it has in dir where it is not in the data directory.
func storage(data, dsn, dir string) []string {
	flags := []string{"--data", data}
	if dsn != "" {
		flags = append(flags, "--database-url", dsn, "--secret-key-file", filepath.Join(dir, "keys.json"))
	}
	return flags
}

// admin runs an administration command in a process of its own and decodes what it prints.
func (s *site) admin(v any, args ...string) {
	s.t.Helper()
	s.command(v, "", administration(s.storage(0), args...)...)
}

func administration(storage []string, args ...string) []string {
	return append(append([]string{"admin"}, args...), append(storage, "--json")...)
}

// command runs the program to its end and decodes what it prints.
func (s *site) command(v any, stdin string, args ...string) {
	s.t.Helper()
	if err := command(v, stdin, args...); err != nil {
		s.t.Fatal(err)
	}
}

func command(v any, stdin string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Env = environment()
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil && v != nil {
		err = json.Unmarshal(out, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return nil
}

// environment is this process's without what would configure the program.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HOOKGLASS_") {
			env = append(env, v)
		}
	}
	return env
}

// node is one server process on a site; it keeps its address when it is started again.
type node struct {
	*site
	n       int
	flags   []string
	wrapper []string // what starts the program, strace for one
	binary  string   // another program than that of all tests
	env     []string // beside what all nodes have
	// terminal controls the process; nil: none does.
	terminal *os.File
	addr     string
	logFile  string
	proc     *os.Process
	ended    chan struct{} // closed when the process has been waited for
	state    *os.ProcessState
}

// node prepares a node; start runs it.
func (s *site) node(flags ...string) *node {
	n := &node{site: s, n: s.nodes, flags: flags, addr: freePort(s.t), logFile: filepath.Join(s.t.TempDir(), "log")}
	s.nodes++
	s.t.Cleanup(func() {
		n.kill()
		if s.t.Failed() {
			s.t.Logf("the end of the log of node %d:\n%s", n.n, tail(n.log(), 3000))
		}
	})
	return n
}

// serve starts a node and returns when it is ready.
func (s *site) serve(flags ...string) *node {
	s.t.Helper()
	n := s.node(flags...)
	n.start()
	n.ready(patience)
	return n
}

// start starts the process and returns when it listens.
func (n *node) start() {
	n.t.Helper()
	if err := n.tryStart(); err != nil {
		n.t.Fatalf("start: %v\n%s", err, tail(n.log(), 3000))
	}
}

// tryStart is start for a process that may end at once.
func (n *node) tryStart() error {
	log, err := os.OpenFile(n.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append(append(n.wrapper, cmp.Or(n.binary, program), "serve", "--listen", n.addr, "--smtp-listen", "off"), n.storage(n.n)...)
	args = append(args, n.flags...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(environment(), n.env...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true} // away from the terminal that tests may have
	if n.terminal != nil {
		cmd.Stdin, cmd.SysProcAttr.Setctty = n.terminal, true
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// The death signal comes when the thread ends that started the process, not this process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its state
			n.state = cmd.ProcessState
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	n.proc, n.ended = cmd.Process, ended
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		<-ended
		return fmt.Errorf("it ended: %v", n.state)
	}
	_, addr, ok := strings.Cut(strings.TrimSpace(line), "http://")
	if !ok {
		return fmt.Errorf("it printed %q", line)
	}
	if n.addr != addr { // a load may be reading it
		n.addr = addr
	}
	return nil
}

// ready waits until the node says so, and returns how long that took.
func (n *node) ready(limit time.Duration) time.Duration {
	n.t.Helper()
	return eventually(n.t, limit, "ready", func() bool {
		select {
		case <-n.ended:
			n.t.Fatalf("it ended: %v\n%s", n.state, tail(n.log(), 3000))
		default:
		}
		status, _, err := n.get("/readyz")
		return err == nil && status == http.StatusOK
	})
}

func (n *node) signal(sig syscall.Signal) {
	n.t.Helper()
	if err := n.proc.Signal(sig); err != nil {
		n.t.Fatal(err)
	}
}

// kill ends the process at once, as kill -9 does, if it runs.
func (n *node) kill() {
	if n.proc == nil {
		return
	}
	// The whole group: a wrapper's child goes with it.
	if err := syscall.Kill(-n.proc.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		n.t.Error(err)
	}
	<-n.ended
	n.proc = nil
}

// exit waits for the process to end and returns its exit code.
func (n *node) exit(limit time.Duration) int {
	n.t.Helper()
	select {
	case <-n.ended:
		n.proc = nil
		return n.state.ExitCode()
	case <-time.After(limit):
		n.t.Fatalf("still running after %v", limit)
		return -1
	}
}

func (n *node) log() string {
	b, err := os.ReadFile(n.logFile)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// memory is the resident memory of the process now and at its highest, in bytes.
func (n *node) memory() (now, peak int64) {
	n.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.proc.Pid))
	if err != nil {
		n.t.Fatal(err)
	}
	field := func(name string) int64 {
		_, rest, _ := strings.Cut(string(b), "\n"+name+":")
		kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			n.t.Fatal(err)
		}
		return kb << 10
	}
	return field("VmRSS"), field("VmHWM")
}

// plain asks on a connection of its own each time: the server comes and goes.
var plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}

// get asks for a path without a token.
func (n *node) get(path string) (status int, body []byte, err error) {
	resp, err := plain.Get("http://" + n.addr + path)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// storageFacts is what /readyz says of the database.
func (n *node) storageFacts() map[string]string {
	n.t.Helper()
	status, body, err := n.get("/readyz")
	if err != nil || status != http.StatusOK {
		n.t.Fatalf("readyz: %d %s %v", status, body, err)
	}
	var r struct {
		Storage map[string]string `json:"storage"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		n.t.Fatal(err)
	}
	return r.Storage
}

// call makes an API call and returns its status and body.
func (n *node) call(token, method, path, body string) (status int, answer []byte, err error) {
	req, err := http.NewRequest(method, "http://"+n.addr+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := plain.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// api makes an API call that must succeed, and decodes its answer.
func (n *node) api(method, path, body string, v any) {
	n.t.Helper()
	status, answer, err := n.call(n.token, method, path, body)
	if err != nil || status/100 != 2 {
		n.t.Fatalf("%s %s: %d %v %s", method, path, status, err, tail(string(answer), 500))
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(answer, v); err != nil {
		n.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// endpoint makes an endpoint and returns the ledger of its senders.
func (n *node) endpoint() *ledger {
	n.t.Helper()
	var made struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	n.api(http.MethodPost, "/endpoints", `{"endpoint":{"name":"faults"}}`, &made)
	return &ledger{endpoint: made.Data.ID, checked: make(map[string]bool)}
}
