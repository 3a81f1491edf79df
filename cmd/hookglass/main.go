// Command hookglass is the server, its administration and its client in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"hookglass/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
