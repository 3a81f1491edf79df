package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What the mail part loads with, and its goals.
const (
	mailBytes    = 4 << 10
	mailConns    = 10
	mailGoal     = 2000 // messages a second on SQLite
	mailPeerGoal = 3    // times the peer's
)

// mailRow is what the mail part found for one system: medians of the rounds.
type mailRow struct {
	system    string
	perSecond float64
	p50, p99  time.Duration
	failed    int64
	ratio     float64 // of ours to this one, where this one is a peer
}

// measureMail sends mail over SMTP to each database and to each peer, round by round.
func (p *plan) measureMail(ctx context.Context, dir string, r *report) (err error) {
	var offices []*system
	for _, database := range p.databases {
		s, err := p.service(ctx, dir, database)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.remove()) }()
		var made struct {
			Data struct {
				ID           string `json:"id"`
				EmailAddress string `json:"email_address"`
			} `json:"data"`
		}
		if err := s.call(ctx, http.MethodPost, "/endpoints", `{"endpoint":{"name":"mail","kind":"email"}}`, &made); err != nil {
			return err
		}
		s.endpoint = made.Data.ID // whose events are counted afterwards
		offices = append(offices, &system{name: "hookglass, " + title(database), url: s.smtp, to: made.Data.EmailAddress, service: s})
	}
	for _, peer := range p.mailPeers {
		offices = append(offices, &system{name: peer.name, url: peer.url, to: "bench@localhost"})
	}
	if len(p.mailPeers) == 0 {
		p.log("mail: NO PEER IS MEASURED: name one with -mail-peer mailpit=127.0.0.1:1025")
		r.mailPeerMissing = true
	}
	rounds, err := p.inTurns(ctx, dir, "mail", offices, func(s *system) (outcome, error) { return sendMail(ctx, s.url, s.to, p.warm, p.time) })
	if err != nil {
		return err
	}
	for i, office := range offices {
		row := mailRow{system: office.name, failed: office.seen.failed}
		row.perSecond = medianOf(rounds[i], func(_ int, o outcome) float64 { return o.perSecond })
		row.p50 = time.Duration(medianOf(rounds[i], func(_ int, o outcome) float64 { return float64(o.p50) }))
		row.p99 = time.Duration(medianOf(rounds[i], func(_ int, o outcome) float64 { return float64(o.p99) }))
		if office.service == nil {
			row.ratio = medianOf(rounds[i], func(n int, o outcome) float64 { return rounds[0][n].perSecond / o.perSecond })
		} else if err := office.service.checkStored(ctx, 0, office.seen); err != nil {
			return err
		}
		r.mails = append(r.mails, row)
	}
	return nil
}

// sendMail sends messages over so many connections, one after another on each, command by command as most clients do.
func sendMail(ctx context.Context, addr, to string, warm, length time.Duration) (outcome, error) {
	var (
		next    atomic.Int64
		wait    sync.WaitGroup
		senders = make([]mailSender, mailConns)
		from    = time.Now().Add(warm)
		until   = from.Add(length)
	)
	for i := range senders {
		s := &senders[i]
		s.addr, s.to, s.sender.from = addr, to, from
		wait.Go(func() {
			for time.Now().Before(until) && ctx.Err() == nil {
				if !s.one(next.Add(1)) {
					return
				}
			}
			s.hangUp()
		})
	}
	wait.Wait()
	elapsed := time.Since(from)
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	all := make([]sender, len(senders))
	for i := range senders {
		all[i] = senders[i].sender
	}
	return sum(all, elapsed), nil
}

// mailSender is one connection of a load of mail.
type mailSender struct {
	sender
	addr, to string
	conn     net.Conn
	in       *bufio.Reader
}

// one sends a message and reports whether the connection can go on.
func (s *mailSender) one(n int64) bool {
	if s.conn == nil {
		conn, err := net.DialTimeout("tcp", s.addr, answerLimit)
		if err != nil {
			s.fail(err)
			return false
		}
		s.conn, s.in = conn, bufio.NewReader(conn)
		if err := errors.Join(s.expect(220), s.say("EHLO bench.localhost\r\n", 250)); err != nil {
			s.fail(err)
			return false
		}
	}
	began := time.Now()
	if err := s.conn.SetDeadline(began.Add(answerLimit)); err != nil {
		s.fail(err)
		return false
	}
	for _, step := range []struct {
		text string
		code int
	}{
		{"MAIL FROM:<bench@bench.localhost>\r\n", 250}, {"RCPT TO:<" + s.to + ">\r\n", 250}, {"DATA\r\n", 354}, {letter(n, s.to), 250},
	} {
		if err := s.say(step.text, step.code); err != nil {
			s.fail(err)
			s.unsure++
			s.hangUp()
			return false
		}
	}
	s.acked++
	if ended := time.Now(); began.After(s.from) {
		s.took = append(s.took, ended.Sub(began))
	}
	return true
}

func (s *mailSender) hangUp() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

func (s *mailSender) say(text string, code int) error {
	if _, err := s.conn.Write([]byte(text)); err != nil {
		return err
	}
	return s.expect(code)
}

// expect reads one reply, all its lines.
func (s *mailSender) expect(code int) error {
	want := []byte(fmt.Sprint(code))
	for {
		line, err := s.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(line, want) || len(line) < 4 {
			return fmt.Errorf("%q instead of %d", line, code)
		}
		if line[3] == ' ' {
			return nil
		}
	}
}

// letter is a message of 4 KiB with its end, each another.
func letter(n int64, to string) string {
	head := fmt.Sprintf("From: Bench <bench@bench.localhost>\r\nTo: %s\r\nSubject: Your code is %06d\r\nMessage-ID: <%d@bench.localhost>\r\nMIME-Version: 1.0\r\n"+
		"Content-Type: text/plain; charset=utf-8\r\n\r\nHello,\r\n", to, n%1_000_000, n)
	const line = "this is one of the many lines of which an ordinary message is made, more or less.\r\n"
	return head + strings.Repeat(line, max(1, (mailBytes-len(head))/len(line))) + ".\r\n"
}
