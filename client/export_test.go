package client

import (
	"net/http"
	"time"
)

// Hurry makes a client wait no longer than this for its answers to begin.
func (c *Client) Hurry(wait time.Duration) {
	c.http.Transport.(*http.Transport).ResponseHeaderTimeout = wait
}
