// Command hookglass is the server, its administration and its client in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"hookglass/internal/cli"
)

// patience is how long after the first signal a Ctrl-C is the same one: what starts a program may pass on what the
// terminal has sent already. The next ends the program at once, whatever it still has to do.
const patience = 200 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		time.Sleep(patience)
		signal.Reset(os.Interrupt)
	})
	code := cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
