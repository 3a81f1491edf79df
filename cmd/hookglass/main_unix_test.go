//go:build unix

package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is the program itself where a test has started it.
func TestMain(m *testing.M) {
	if os.Getenv("HOOKGLASS_TEST_MAIN") == "1" {
		main()
	}
	os.Exit(m.Run())
}

// Whoever reads the log may go, as a pipeline's next program does that is started anew: what is served is served on, and
// what is under way at the end comes to its end.
func TestAServerOutlivesTheReaderOfItsLog(t *testing.T) {
	program := exec.CommandContext(t.Context(), os.Args[0], "serve", "--listen", "127.0.0.1:0", "--smtp-listen", "off", "--data", t.TempDir())
	program.Env = append(os.Environ(), "HOOKGLASS_TEST_MAIN=1")
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := program.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr.Close()
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	address := ""
	for lines := bufio.NewScanner(stdout); address == "" && lines.Scan(); {
		address = regexp.MustCompile(`http://\S+`).FindString(lines.Text())
	}
	for {
		res, err := http.Get(address + "/readyz")
		if err != nil {
			t.Fatalf("it does not serve: %v", err)
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("it ended by %v", err)
	}
}

// At its first Ctrl-C a server waits 20 s for a request that is under way; who cannot wait says so by a second.
func TestASecondInterruptEndsItAtOnce(t *testing.T) {
	// What is started from here hears of an interrupt, also where the tests run in the background of a script.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt)
	t.Cleanup(func() { signal.Stop(heard) })
	program := exec.CommandContext(t.Context(), os.Args[0], "dev", "--listen", "127.0.0.1:0", "--smtp-listen", "off", "--data", t.TempDir())
	program.Env = append(os.Environ(), "HOOKGLASS_TEST_MAIN=1")
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	var hook []string
	for lines := bufio.NewScanner(stdout); hook == nil && lines.Scan(); {
		hook = regexp.MustCompile(`http://(\S+?)(/hooks/ep_\w+)`).FindStringSubmatch(lines.Text())
	}
	if hook == nil {
		t.Fatal("no address was printed")
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	sender, err := net.Dial("tcp", hook[1])
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	if _, err := io.WriteString(sender, "POST "+hook[2]+" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := sender.Read(make([]byte, 1)); err != nil { // it is told to go on, and under way
		t.Fatal(err)
	}
	interrupt := func() {
		if err := program.Process.Signal(os.Interrupt); err != nil && !strings.Contains(err.Error(), "finished") {
			t.Fatal(err)
		}
	}
	interrupt()
	for { // until it takes no more connections
		another, err := net.Dial("tcp", hook[1])
		if err != nil {
			break
		}
		another.Close()
		time.Sleep(10 * time.Millisecond)
	}
	ended := make(chan struct{})
	go func() {
		_ = program.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			if how := program.ProcessState.Sys().(syscall.WaitStatus); !how.Signaled() || how.Signal() != syscall.SIGINT {
				t.Errorf("it ended otherwise: %s", program.ProcessState)
			}
			return
		case <-time.After(50 * time.Millisecond):
			interrupt()
		}
	}
}
