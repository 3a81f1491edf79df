package ingest_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"hookglass/internal/ingest"
)

// bubble is a front whose connections are pipes, so that it can be in a synctest bubble: its time costs nothing, and a
// busy machine has no part in it.
type bubble struct {
	t      *testing.T
	front  *ingest.Front
	ln     pipes
	served chan error
}

func inBubble(t *testing.T, tlsConfig *tls.Config, cfg ingest.Config, s *stub) *bubble {
	return inBubbleWith(t, slog.New(slog.DiscardHandler), tlsConfig, cfg, s, echo)
}

func inBubbleWith(t *testing.T, log *slog.Logger, tlsConfig *tls.Config, cfg ingest.Config, s *stub, next http.HandlerFunc) *bubble {
	b := &bubble{t, ingest.New(cfg, s, log), make(pipes), make(chan error, 1)}
	rest := &http.Server{Handler: b.front.Handler(next)}
	go func() { b.served <- b.front.Serve(b.ln, tlsConfig, rest) }()
	return b
}

func (b *bubble) stop() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.front.Shutdown(ctx); err != nil {
		b.t.Errorf("shutdown: %v", err)
	}
	if err := <-b.served; !errors.Is(err, http.ErrServerClosed) {
		b.t.Errorf("serve: %v", err)
	}
}

// piped is a client of a bubble.
type piped struct {
	t  *testing.T
	nc net.Conn
	r  *bufio.Reader
}

func (b *bubble) dial() *piped {
	ours, theirs := net.Pipe()
	b.ln <- theirs
	return &piped{b.t, ours, bufio.NewReader(ours)}
}

// answer reads one answer.
func (p *piped) answer() *http.Response {
	p.t.Helper()
	res, err := http.ReadResponse(p.r, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		p.t.Fatal(err)
	}
	return res
}

// end reads to the end of the connection, before which nothing comes, and closes it.
func (p *piped) end() {
	p.t.Helper()
	if rest, err := io.ReadAll(p.r); err != nil || len(rest) > 0 {
		p.t.Errorf("%q, %v, want the end", rest, err)
	}
	p.nc.Close()
}

// pipes is a listener of connections that are given to it.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if nc, ok := <-p; ok {
		return nc, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p); return nil }

func (p pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
