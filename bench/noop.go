package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

// noopCommand, with an address, makes this program the ceiling: a server that reads each body and answers 200.
const noopCommand = "serve-noop"

func serveNoop(address string) error {
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // the sender is gone
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"received":true,"id":"req_00000000000000000000000000"}`) // the sender may be gone
	}))
}

// startNoop starts the ceiling as a process of its own.
func startNoop(ctx context.Context, dir string) (*process, error) {
	return startOther(ctx, dir, noopCommand, "/")
}

// startOther starts this program as another server, as beOther makes it one, and waits until it answers at the path.
func startOther(ctx context.Context, dir, command, path string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p := &process{base: "http://" + address}
	_, err = p.run(ctx, exec.Command(self, command, address), filepath.Join(dir, command+".log"), path)
	return p, err
}
