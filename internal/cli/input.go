package cli

import (
	"context"
	"errors"
	"io"
	"os"
)

// input is standard input until ctx ends: signals cancel the context, which would not interrupt a read that waits for
// the keyboard.
type input struct {
	ctx context.Context
	in  io.Reader
}

var errStopped = errors.New("stopped, while there was nothing on standard input")

// Read implements io.Reader. A read that is interrupted by ctx keeps waiting in the background until the program ends.
func (r *input) Read(p []byte) (int, error) {
	type piece struct {
		text []byte
		err  error
	}
	came := make(chan piece, 1)
	go func() {
		text := make([]byte, len(p))
		n, err := r.in.Read(text)
		came <- piece{text[:n], err}
	}()
	select {
	case next := <-came:
		return copy(p, next.text), next.err
	case <-r.ctx.Done():
		return 0, errStopped
	}
}

// fileOf returns the file behind a stream.
func fileOf(stream any) (*os.File, bool) {
	if r, ok := stream.(*input); ok {
		stream = r.in
	}
	f, ok := stream.(*os.File)
	return f, ok
}
