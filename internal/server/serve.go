package server

import (
	"context"
	"fmt"
)

// ServeCmd is `hookglass serve`.
type ServeCmd struct {
	Config
}

// Run runs one node until ctx ends. It prints the address in use, and logs to standard error.
func (c *ServeCmd) Run(ctx context.Context, t *Terminal) error {
	log, closeLog := newLogger(t.Err, c.LogFormat, c.LogLevel)
	defer closeLog()
	s, err := New(c.Config, log)
	if err != nil {
		return err
	}
	scheme := "http"
	if s.cfg.secure() {
		scheme = "https"
	}
	fmt.Fprintf(t.Out, "hookglass listens on %s://%s\n", scheme, s.Addr())
	if s.clear != nil {
		fmt.Fprintf(t.Out, "and on http://%s\n", s.clear.Addr())
	}
	return s.Run(ctx, func(ctx context.Context) error {
		s.sayHowToBegin(ctx)
		return nil
	})
}

// sayHowToBegin logs how to create the first user if there is none and signup is closed. With open signup the web app
// creates it.
func (s *Server) sayHowToBegin(ctx context.Context) {
	if s.cfg.Signup == "open" {
		return
	}
	if empty, err := s.accounts.Empty(ctx); err == nil && empty {
		s.log.Info("nobody can sign in yet", "remedy", "hookglass admin user create --email you@example.com --password-stdin")
	}
}
