//go:build linux

package faults_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onEach runs a test on both databases, in directories of their own.
func onEach(t *testing.T, test func(t *testing.T, s *site)) {
	t.Run("sqlite", func(t *testing.T) {
		beside(t)
		test(t, sqliteSite(t, t.TempDir()))
	})
	t.Run("postgres", func(t *testing.T) {
		beside(t)
		test(t, postgresSite(t))
	})
}

// between is a random time, so that a kill hits any moment.
func between(from, to time.Duration) time.Duration { return from + rand.N(to-from) }

func TestKill9LosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		n := s.serve()
		l := n.endpoint()
		fastest := patience
		rounds := pick(3, 20)
		for range rounds {
			had := l.count(http.StatusOK)
			under := load{to: []*node{n}, ledger: l, conns: 16, rate: pick(800, 1500)}.start()
			<-time.After(between(200*time.Millisecond, pick(700*time.Millisecond, 2*time.Second)))
			eventually(t, patience, "captures", func() bool { return l.count(http.StatusOK) > had })
			n.kill()
			under.stop()
			n.start()
			fastest = min(fastest, n.ready(patience))
			if r := l.check(t, n); t.Failed() {
				t.Fatal(r)
			}
		}
		all := l.check(t, n)
		if all.acked == 0 {
			t.Error("nothing was acknowledged: nothing was tried")
		}
		// Spec: decisions, section 14, "Operation". Other tests, which run beside it, may take the processors for a
		// while.
		if fastest > 3*time.Second {
			t.Errorf("ready %v after a kill at best, the limit is 3s", fastest)
		}
		t.Logf("%d kills: %v; ready %v after it listened at best", rounds, all, fastest)
	})
}

func TestASignalToEndAnswersWhatWasAccepted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		n := s.serve()
		l := n.endpoint()
		for i := range pick(2, 10) {
			had := l.count(http.StatusOK)
			under := load{to: []*node{n}, ledger: l, conns: 16}.start()
			eventually(t, patience, "captures", func() bool { return l.count(http.StatusOK) > had })
			<-time.After(between(50*time.Millisecond, 250*time.Millisecond))
			began := time.Now()
			n.signal([]syscall.Signal{syscall.SIGTERM, syscall.SIGINT}[i%2])
			if code := n.exit(patience); code != 0 {
				t.Errorf("exit code %d", code)
			}
			took := time.Since(began)
			under.stop()
			n.start()
			n.ready(patience)
			r := l.check(t, n)
			if r.unsure > 0 {
				t.Errorf("%d requests were stored, and their senders not answered", r.unsure)
			}
			t.Logf("ended %v after the signal: %v", took, r)
		}
	})
}

// A hangup ends what its terminal left behind. To a daemon it says that files are to be read again, and a node that has
// none goes on.
func TestAHangupEndsWhatHasATerminalAndNoDaemon(t *testing.T) {
	beside(t)
	// What is started from here hears of a hangup, also where the tests run under nohup.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangup) })

	daemon := sqliteSite(t, t.TempDir()).serve()
	daemon.signal(syscall.SIGHUP)
	select {
	case <-daemon.ended:
		t.Fatalf("a hangup ended a daemon:\n%s", tail(daemon.log(), 1000))
	case <-time.After(time.Second):
	}
	daemon.endpoint()

	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := sqliteSite(t, t.TempDir()).node()
	if n.terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	n.start()
	n.terminal.Close()
	n.ready(patience)
	person.Close()
	if code := n.exit(patience); code != 0 {
		t.Errorf("exit code %d when the terminal was closed", code)
	}
}

// What had begun when the signal came is answered: a body half sent, and a reply that its endpoint delays.
func TestSIGTERMWaitsForWhatHasBegun(t *testing.T) {
	beside(t)
	n := sqliteSite(t, t.TempDir()).serve()
	l, delayed := n.endpoint(), n.endpoint()
	n.api(http.MethodPatch, "/endpoints/"+delayed.endpoint, `{"endpoint":{"response":{"status":200,"headers":{},"body":"{{event.id}}","delay_ms":30000}}}`, nil)
	begin := func(l *ledger, part, rest string) (conn net.Conn) {
		t.Helper()
		conn, err := net.Dial("tcp", n.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "POST /hooks/%s/1 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", l.endpoint, len(part)+len(rest), part); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	half, waiting, idle := begin(l, "one", "two"), begin(delayed, "whole", ""), begin(l, "whole", "")
	answer := func(conn net.Conn) (status int, body string) {
		t.Helper()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if status, _ := answer(idle); status != http.StatusOK {
		t.Fatal(status)
	}
	eventually(t, patience, "the delayed one is stored", func() bool { return n.eventCount(delayed.endpoint) == 1 })
	n.signal(syscall.SIGTERM)
	signalled := time.Now()
	eventually(t, patience, "nothing new is taken", func() bool {
		_, _, err := n.get("/healthz")
		return err != nil
	})
	if _, err := half.Write([]byte("two")); err != nil {
		t.Fatal(err)
	}
	if status, body := answer(half); status != http.StatusOK {
		t.Errorf("the half-sent request was answered %d %s", status, body)
	}
	if status, body := answer(waiting); status != http.StatusOK || !strings.HasPrefix(body, "req_") {
		t.Errorf("the delayed request was answered %d %s", status, body)
	}
	if took := passed(signalled, time.Now()); took > 20*time.Second {
		t.Errorf("who was to be answered in 30 s was answered %v after the signal", took)
	}
	if code := n.exit(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	n.start()
	n.ready(patience)
	if a, b := n.eventCount(l.endpoint), n.eventCount(delayed.endpoint); a != 2 || b != 1 {
		t.Errorf("%d and %d events are stored, want 2 and 1", a, b)
	}
}

// A target may keep a replay for longer than a server that stops can wait. Who asked for it is told.
func TestSIGTERMAnswersWhoWaitsForATarget(t *testing.T) {
	beside(t)
	target, err := net.Listen("tcp", "127.0.0.1:0") // nobody reads
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	n := sqliteSite(t, t.TempDir()).serve("--outbound-allow", "127.0.0.0/8")
	e := n.endpoint().endpoint
	n.api(http.MethodPost, "/endpoints/"+e+"/test_requests", `{"provider":"github","event_type":"push"}`, nil)
	var events struct{ Data []struct{ ID string } }
	n.api(http.MethodGet, "/endpoints/"+e+"/requests", "", &events)
	id, to := events.Data[0].ID, "http://"+target.Addr().String()

	answers := make(chan string, 2)
	go func() {
		_, text, err := n.call(n.token, http.MethodPost, "/endpoints/"+e+"/requests/"+id+"/replay", fmt.Sprintf(`{"target_url":%q}`, to))
		answers <- fmt.Sprint(string(text), err)
	}()
	go func() {
		text, err := n.tool("replay_request", fmt.Sprintf(`{"endpoint_id":%q,"request_id":%q,"target_url":%q}`, e, id, to))
		answers <- fmt.Sprint(text, err)
	}()
	if err := target.(*net.TCPListener).SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for range cap(answers) { // until both are on their way
		conn, err := target.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	n.signal(syscall.SIGTERM)
	for range cap(answers) {
		if text := <-answers; !strings.Contains(text, `"delivered":false`) || !strings.Contains(text, `"canceled"`) {
			t.Errorf("a replay that the end of the server cut off was answered %s", text)
		}
	}
	if code := n.exit(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// Nobody behind a balancer notices that the nodes are stopped and started in turn, and nothing is stored twice.
func TestRollingRestartFailsNobody(t *testing.T) {
	beside(t)
	a, b := twoNodes(t)
	l := a.endpoint()
	proxy := newBalancer(t, a, b)
	under := load{to: []*node{proxy.front()}, ledger: l, conns: 8, rate: 200}.start()
	for range pick(1, 5) {
		for _, n := range proxy.nodes {
			<-time.After(500 * time.Millisecond)
			n.signal(syscall.SIGTERM)
			if code := n.exit(patience); code != 0 {
				t.Errorf("exit code %d", code)
			}
			n.start()
			n.ready(patience)
		}
	}
	<-time.After(300 * time.Millisecond)
	under.stop()
	checkRefusals(t, l.all(), 8*time.Second, http.StatusOK)
	t.Logf("%d tries were repeated; %v", proxy.again.Load(), l.check(t, a))
}
