//go:build linux

package faults_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// relay is a mail server that has whole mails and answers them once it may.
type relay struct {
	addr string
	had  atomic.Int64 // mails that it had whole
	mu   sync.Mutex
	held chan struct{} // closed: it answers
	last string
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{addr: ln.Addr().String(), held: make(chan struct{})}
	ended := make(chan struct{})
	var conns sync.WaitGroup
	t.Cleanup(func() {
		ln.Close()
		close(ended)
		conns.Wait()
	})
	conns.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				r.serve(conn, ended)
			})
		}
	})
	return r
}

func (r *relay) serve(conn net.Conn, ended <-chan struct{}) {
	in := bufio.NewReader(conn)
	fmt.Fprint(conn, "220 relay\r\n")
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch {
		case strings.HasPrefix(line, "EHLO"):
			fmt.Fprint(conn, "250-relay\r\n250-SIZE\r\n250 8BITMIME\r\n")
		case line != "DATA\r\n":
			fmt.Fprint(conn, "250 ok\r\n")
		default:
			fmt.Fprint(conn, "354 go on\r\n")
			var mail strings.Builder
			for line != ".\r\n" {
				if line, err = in.ReadString('\n'); err != nil {
					return
				}
				mail.WriteString(line)
			}
			r.mu.Lock()
			r.last = mail.String()
			r.mu.Unlock()
			r.had.Add(1)
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				io.Copy(io.Discard, in)
			}()
			select {
			case <-r.held:
				fmt.Fprint(conn, "250 2.0.0 queued\r\n")
			case <-ended:
			case <-gone:
			}
			conn.Close()
			<-gone
			return
		}
	}
}

// A process that dies while the relay has a mail and has not answered leaves a release of which nobody knows what
// became, for good: nothing is sent twice. The next one is as any.
func TestKill9WhileTheRelayHoldsAMail(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		r := newRelay(t)
		smtp := freePort(t)
		n := s.serve("--smtp-listen", smtp, "--mail-dns", os.DevNull, "--smtp-relay", r.addr, "--release-to", "dev@example.com")
		var made struct {
			Data struct {
				ID           string `json:"id"`
				EmailAddress string `json:"email_address"`
			} `json:"data"`
		}
		n.api(http.MethodPost, "/endpoints", `{"endpoint":{"name":"faults","kind":"email"}}`, &made)
		const text = "Subject: hello\r\n\r\n.secret body\r\n"
		if err := mail(smtp, made.Data.EmailAddress, text); err != nil {
			t.Fatal(err)
		}
		var event struct {
			Data []struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		n.api(http.MethodGet, "/endpoints/"+made.Data.ID+"/requests", "", &event)
		path := "/endpoints/" + made.Data.ID + "/requests/" + event.Data[0].ID + "/releases"
		type release struct {
			ID         string  `json:"id"`
			Status     string  `json:"status"`
			FinishedAt *string `json:"finished_at"`
		}
		var list struct {
			Data []release `json:"data"`
		}
		rounds := int64(pick(2, 10))
		for i := range rounds {
			var asked sync.WaitGroup
			asked.Go(func() {
				n.call(n.token, http.MethodPost, path, `{"to":["dev@example.com"]}`) // which nobody answers
			})
			eventually(t, patience, "the relay has the mail", func() bool { return r.had.Load() == i+1 })
			n.kill()
			asked.Wait()
			n.start()
			n.ready(patience)
		}
		n.api(http.MethodGet, path, "", &list)
		for _, release := range list.Data {
			if release.Status != "unknown" || release.FinishedAt != nil {
				t.Errorf("%+v", release)
			}
		}
		if len(list.Data) != int(rounds) || r.had.Load() != rounds {
			t.Errorf("%d releases, the relay had %d mails, of %d", len(list.Data), r.had.Load(), rounds)
		}
		close(r.held)
		var sent struct {
			Data release `json:"data"`
		}
		n.api(http.MethodPost, path, `{"to":["dev@example.com"]}`, &sent)
		if sent.Data.Status != "sent" || !strings.HasSuffix(r.last, "Subject: hello\r\n\r\n..secret body\r\n.\r\n") {
			t.Errorf("%+v, %q", sent.Data, r.last)
		}
		if log := n.log(); strings.Contains(log, "secret body") || strings.Contains(log, "dev@example.com") {
			t.Errorf("the log holds a mail or an address:\n%s", log)
		}
	})
}
