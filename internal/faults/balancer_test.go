//go:build linux

package faults_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// balancer is a proxy before nodes that tries the next one where a request was not taken: the connection was refused,
// or the answer is 503. What a node may have taken it never sends again: that is for the sender to decide.
type balancer struct {
	*httptest.Server
	nodes  []*node
	client *http.Client
	next   atomic.Int64
	again  atomic.Int64 // requests that were tried again
}

func newBalancer(t *testing.T, nodes ...*node) *balancer {
	b := &balancer{nodes: nodes, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: answerLimit}}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

// front is the balancer as senders see it.
func (b *balancer) front() *node { return &node{addr: b.Listener.Addr().String()} }

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	first := b.next.Add(1)
	for try := range 400 {
		n := b.nodes[(int(first)+try)%len(b.nodes)]
		resp, err := b.pass(n, r, body)
		var refused *net.OpError
		switch {
		case err == nil && resp.StatusCode != http.StatusServiceUnavailable:
			defer resp.Body.Close()
			for name, values := range resp.Header {
				w.Header()[name] = values
			}
			w.WriteHeader(resp.StatusCode)
			_, _ = io.Copy(w, resp.Body) // a sender that left has no use for it
			return
		case err == nil:
			resp.Body.Close()
		case !errors.As(err, &refused) || refused.Op != "dial":
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		b.again.Add(1)
		if try%len(b.nodes) == len(b.nodes)-1 {
			select {
			case <-time.After(20 * time.Millisecond): // all were asked
			case <-r.Context().Done():
				return
			}
		}
	}
	http.Error(w, "nobody takes it", http.StatusServiceUnavailable)
}

func (b *balancer) pass(n *node, r *http.Request, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+n.addr+r.RequestURI, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = r.Header.Clone()
	return b.client.Do(req)
}
