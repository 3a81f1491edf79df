package cli

import (
	"context"
	"errors"
	"io"
	"os"
)

// input is standard input until ctx ends: a signal is heard by the context, and would not end a read that waits for
// what nobody types.
type input struct {
	ctx context.Context
	in  io.Reader
}

var errStopped = errors.New("stopped, while there was nothing on standard input")

// Read implements io.Reader. What it waits for when ctx ends is waited for until the program ends.
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

// fileOf is the file that a stream is.
func fileOf(stream any) (*os.File, bool) {
	if r, ok := stream.(*input); ok {
		stream = r.in
	}
	f, ok := stream.(*os.File)
	return f, ok
}
