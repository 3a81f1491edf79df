// Package cable is the socket of the tunnel, GET /cable: WebSocket (RFC 6455) with the public Action Cable protocol on
// it (actioncable-v1-json). It hides the frames, the commands and the words of both protocols; what is sent on a
// subscription, and when, is decided by package tunnel.
//
// Each socket has a goroutine that reads commands and waits for those that store its reports; its session has another
// while there is something to send. [tunnel.Service.Run] waits for all of them.
package cable

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/coder/websocket"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/httpd"
	"hookglass/internal/tunnel"
)

// Path is where the socket is (spec: decisions, section 1).
const Path = "/cable"

// maxCommand bounds one message of a client: a report with a body of 64 KiB in base64 and its fields, as text within
// text.
const maxCommand = 512 << 10

// Deps are what the socket stands on.
type Deps struct {
	Tunnels *tunnel.Service
	// PublicURL is the address of the service for people: pages from there may open sockets.
	PublicURL string
	Log       *slog.Logger
}

// Claims reports whether a path means the socket, however it is spelled. The handler answers all of them, so that no
// spelling gets past its checks.
func Claims(r *http.Request) bool { return strings.EqualFold(path.Clean("/"+r.URL.Path), Path) }

// New returns the handler of [Path]. It stands behind [httpd.Stack.Wrap].
func New(deps Deps) http.Handler { return &edge{deps} }

type edge struct{ Deps }

// ServeHTTP answers 403 to a page of another origin, before anything else: a browser would lend it the user's network.
// Whoever sends no Origin is no browser, and has the right that its ticket gives.
func (e *edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !e.sameOrigin(r):
		httpd.WriteError(w, r, hookglass.Errorf(hookglass.CodeForbidden, "Pages of other origins may not open this socket."))
		return
	case r.URL.Path != Path:
		httpd.WriteError(w, r, hookglass.NotFound("address"))
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		httpd.WriteError(w, r, httpd.ErrMethod)
		return
	case r.ProtoMajor > 1: // without Upgrade, with which a client could not read the answer (RFC 9113, section 8.2.2)
		httpd.WriteError(w, r, hookglass.Errorf(hookglass.CodeUpgradeRequired, "This address is for WebSocket, which is opened over HTTP/1.1."))
		return
	}
	guarded := &guard{ResponseWriter: w}
	ws, err := websocket.Accept(guarded, r, &websocket.AcceptOptions{
		Subprotocols:       []string{api.CableProtocol},
		InsecureSkipVerify: true, // judged above, by what is known of proxies
	})
	if err != nil {
		if guarded.refused {
			w.Header().Set("Connection", "Upgrade") // what it takes (RFC 9110, section 15.5.22)
			w.Header().Set("Upgrade", "websocket")
			httpd.WriteError(w, r, hookglass.Errorf(hookglass.CodeUpgradeRequired, "This address is for WebSocket: the request opens none, or not as RFC 6455 has it."))
		}
		return
	}
	ws.SetReadLimit(maxCommand)
	c := &conn{ws: ws, net: guarded.conn}
	given, id := ticket(r), httpd.From(r.Context()).ID
	// What net/http holds for a request is a multiple of what an idle socket takes: it goes when this function returns.
	if !e.Tunnels.Hold(func() { e.serve(c, given, id) }) {
		c.disconnect(tunnel.ReasonRestart, true)
	}
}

// serve is a socket from its ticket to its end.
func (e *edge) serve(c *conn, ticket, request string) {
	defer c.Abort()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	session, err := e.Tunnels.Open(ctx, ticket, c)
	if err != nil {
		c.refuse(err)
		if code := hookglass.CodeOf(err); code == hookglass.CodeInternal || code == hookglass.CodeUnavailable {
			e.Log.Warn("a tunnel could not be opened", "error", err, "request", request)
		}
		return
	}
	own := false
	defer func() { session.End(own) }()
	if c.send(ctx, `{"type":"welcome"}`) == nil {
		own = ownEnd(c.serve(ctx, session))
	}
}

// ticket reads the ticket of a request. A client that appends it to an address that has it already means the first.
func ticket(r *http.Request) string {
	t, _, _ := strings.Cut(r.URL.Query().Get("ticket"), "?")
	return t
}

// sameOrigin reports whether a request comes from no page, or from one of this service.
func (e *edge) sameOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 {
		return false
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Host == "" {
		return false
	}
	known := httpd.From(r.Context())
	own, err := url.Parse(e.PublicURL)
	return matches(u, known.Scheme, known.Host) || err == nil && matches(u, own.Scheme, own.Host)
}

func matches(u *url.URL, scheme, host string) bool {
	return strings.EqualFold(u.Scheme, scheme) && strings.EqualFold(withPort(u.Host, scheme), withPort(host, scheme))
}

// withPort spells an authority with its port.
func withPort(host, scheme string) string {
	if (&url.URL{Host: host}).Port() != "" {
		return host
	}
	if scheme == "https" {
		return host + ":443"
	}
	return host + ":80"
}

// ownEnd reports whether a socket ended as its client wanted (spec: decisions, section 10).
func ownEnd(err error) bool {
	code := websocket.CloseStatus(err)
	return code == websocket.StatusNormalClosure || code == websocket.StatusGoingAway
}

var _ tunnel.Conn = (*conn)(nil)
