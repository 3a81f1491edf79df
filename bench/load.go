package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// outcome is what one load saw.
type outcome struct {
	acked     int64         // answers 200, those of the warm-up included
	unsure    int64         // requests that may have been taken although no answer was counted
	failed    int64         // other answers, and requests without one
	firstFail string        // what the first failure was
	perSecond float64       // answers 200 a second, after the warm-up
	p50, p99  time.Duration // of those
}

// answerLimit bounds how long a request may wait for its answer.
const answerLimit = 60 * time.Second

// load sends requests over so many kept-alive connections, each waiting for its answer before it sends again.
type load struct {
	conns int
	warm  time.Duration
	time  time.Duration // 0: until count
	count int64         // 0: until time
	rate  int           // requests begun a second, evenly; 0: as many as there are answers
}

// send runs the load with this program's own generator. Every request that is sent is waited for, so outcome.unsure
// counts only requests whose connection broke.
func (l load) send(ctx context.Context, address string) (outcome, error) {
	u, err := url.Parse(address)
	if err != nil {
		return outcome{}, err
	}
	var (
		template = push(u)
		next     atomic.Int64
		wait     sync.WaitGroup
		senders  = make([]sender, l.conns)
		start    = time.Now()
		from     = start.Add(l.warm)
		until    = from.Add(l.time)
	)
	more := func() (int64, bool) {
		n := next.Add(1)
		if l.rate > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(l.rate))))
		}
		if l.count > 0 {
			return n, n <= l.count && ctx.Err() == nil
		}
		return n, time.Now().Before(until) && ctx.Err() == nil
	}
	for i := range senders {
		s := &senders[i]
		s.host, s.request, s.from = u.Host, template.copy(), from
		wait.Go(func() { s.run(ctx, more) })
	}
	wait.Wait()
	elapsed := time.Since(from)
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	return sum(senders, elapsed), nil
}

func sum(senders []sender, elapsed time.Duration) outcome {
	var (
		o   outcome
		all []time.Duration
	)
	for i := range senders {
		s := &senders[i]
		o.acked += s.acked
		o.failed += s.failed
		o.unsure += s.unsure
		if o.firstFail == "" && s.firstFail != nil {
			o.firstFail = s.firstFail.Error()
		}
		all = append(all, s.took...)
	}
	slices.Sort(all)
	o.perSecond = float64(len(all)) / elapsed.Seconds()
	o.p50, o.p99 = quantile(all, 0.50), quantile(all, 0.99)
	return o
}

// sender is one connection of a load.
type sender struct {
	host    string
	request request
	from    time.Time // answers before it are warm-up

	acked, failed, unsure int64
	firstFail             error
	took                  []time.Duration
}

// errStatus is an answer other than 200; the connection can go on.
var errStatus = errors.New("status")

func (s *sender) run(ctx context.Context, more func() (int64, bool)) {
	var (
		conn net.Conn
		in   *bufio.Reader
	)
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	for {
		n, ok := more()
		if !ok {
			return
		}
		if conn == nil {
			var err error
			if conn, err = (&net.Dialer{Timeout: answerLimit}).DialContext(ctx, "tcp", s.host); err != nil {
				s.fail(err)
				return // a server that takes no connection takes no load
			}
			in = bufio.NewReaderSize(conn, 4<<10)
		}
		s.request.number(n)
		began := time.Now()
		reusable, err := s.exchange(conn, in, began)
		if err != nil {
			s.fail(err)
			if !errors.Is(err, errStatus) {
				s.unsure++
				reusable = false
			}
		} else {
			s.acked++
			if ended := time.Now(); began.After(s.from) {
				s.took = append(s.took, ended.Sub(began))
			}
		}
		if !reusable {
			conn.Close()
			conn = nil
		}
	}
}

func (s *sender) fail(err error) {
	s.failed++
	if s.firstFail == nil {
		s.firstFail = err
	}
}

// exchange sends the request and reads the whole answer.
func (s *sender) exchange(conn net.Conn, in *bufio.Reader, now time.Time) (reusable bool, err error) {
	if err := conn.SetDeadline(now.Add(answerLimit)); err != nil {
		return false, err
	}
	if _, err := conn.Write(s.request.bytes); err != nil {
		return false, err
	}
	return readAnswer(in)
}

// readAnswer reads one answer and reports whether another may follow on its connection.
func readAnswer(in *bufio.Reader) (reusable bool, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return false, err
	}
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return false, fmt.Errorf("not an HTTP answer: %q", line)
	}
	status := string(line[9:12])
	length, chunked, reusable := 0, false, true
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return false, err
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			break // the empty line
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return false, err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		case bytes.EqualFold(name, []byte("Connection")):
			reusable = !bytes.EqualFold(value, []byte("close"))
		}
	}
	if chunked {
		err = discardChunks(in)
	} else {
		_, err = in.Discard(length)
	}
	if err == nil && status != "200" {
		err = fmt.Errorf("%w %s", errStatus, status)
	}
	return reusable, err
}

// discardChunks reads a chunked body to its end.
func discardChunks(in *bufio.Reader) error {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		text, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(";"))
		size, err := strconv.ParseInt(string(text), 16, 32)
		if err != nil {
			return err
		}
		if size == 0 {
			break
		}
		if _, err := in.Discard(int(size) + 2); err != nil {
			return err
		}
	}
	for { // trailers and the empty line
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
	}
}

// quantile is the value below which that part of the sorted values lies (nearest rank).
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// sendAtOnce posts one body over each of so many connections at the same time.
func sendAtOnce(ctx context.Context, address string, conns, bodyBytes int) (outcome, error) {
	u, err := url.Parse(address)
	if err != nil {
		return outcome{}, err
	}
	r := post(u, bytes.Repeat([]byte("0123456789abcdef"), bodyBytes/16)) // shared: none has a serial number
	senders := make([]sender, conns)
	start := time.Now()
	var wait sync.WaitGroup
	for i := range senders {
		s := &senders[i]
		s.host, s.request, s.from = u.Host, r, start.Add(-1)
		once := true
		wait.Go(func() {
			s.run(ctx, func() (int64, bool) { first := once; once = false; return 0, first })
		})
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	return sum(senders, time.Since(start)), nil
}

// drain reads what is left, so that a connection can be used again.
func drain(r io.ReadCloser) error {
	_, err := io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}
