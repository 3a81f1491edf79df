package httpd

import (
	"context"
	"log/slog"
)

// Knowing returns a logger that adds the client's address and the request's id to lines logged in the context of a
// request. It is for capabilities, which know nothing of requests.
func Knowing(log *slog.Logger) *slog.Logger { return slog.New(knowing{log.Handler()}) }

type knowing struct{ slog.Handler }

// Handle implements slog.Handler.
func (k knowing) Handle(ctx context.Context, line slog.Record) error {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		line = line.Clone()
		line.AddAttrs(slog.String("client", r.Client.String()), slog.String("request", r.ID))
	}
	return k.Handler.Handle(ctx, line)
}

// WithAttrs implements slog.Handler.
func (k knowing) WithAttrs(attrs []slog.Attr) slog.Handler {
	return knowing{k.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (k knowing) WithGroup(name string) slog.Handler { return knowing{k.Handler.WithGroup(name)} }
