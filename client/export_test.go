package client

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Hurry makes a client wait no longer than this for its answers to begin.
func (c *Client) Hurry(wait time.Duration) {
	c.http.Transport.(*http.Transport).ResponseHeaderTimeout = wait
}

// Through makes a client reach its server by other connections.
func (c *Client) Through(dial func() (net.Conn, error)) {
	for _, h := range []*http.Client{c.http, c.patient} {
		h.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return dial() }
	}
}

// Limit makes a client read no more of an answer than so many bytes.
func (c *Client) Limit(bytes int64) { c.most = bytes }
