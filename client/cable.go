package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"hookglass/api"
	"hookglass/internal/neterr"
)

const (
	// cableSilence is how long a socket may be silent. The server pings every 3 s, and clients of Action Cable give up
	// after two missing pings; this allows one more for a slow network.
	cableSilence = 12 * time.Second
	// maxCableMessage bounds one message: a server's largest body by default, 25 MiB, in base64, and twice that for
	// servers with a larger bound.
	maxCableMessage = 80 << 20

	cableOpening = 20 * time.Second // for the handshake
	cableWriting = 10 * time.Second // for one message to be taken by the network
)

// Cable is an open socket of the tunnel, in the Action Cable protocol. One goroutine reads it; the other methods may be
// called by any.
type Cable struct {
	conn  *websocket.Conn
	ctx   context.Context // ends when the socket falls silent or is closed
	close context.CancelCauseFunc
	buf   bytes.Buffer
	once  sync.Once
}

// Why a socket ended: no ping came in time, or the server closed the connection.
var (
	errSilent = errors.New("the server fell silent")
	errBroken = errors.New("the server closed the connection")
)

// OpenCable opens the socket of a ticket, at this client's server address or, if that fails, at the ticket's own.
func (c *Client) OpenCable(ctx context.Context, ticket api.TunnelTicket) (*Cable, error) {
	base, err := url.Parse(strings.TrimSuffix(c.base, "/api/v1") + "/cable")
	if err != nil {
		return nil, err
	}
	base.RawQuery = url.Values{"ticket": {ticket.Ticket}}.Encode()
	conn, err := c.dialCable(ctx, base)
	if own, bad := url.Parse(ticket.URL); err != nil && ctx.Err() == nil && bad == nil && own.Host != "" && own.Host != base.Host {
		query := own.Query()
		query.Set("ticket", ticket.Ticket)
		own.RawQuery = query.Encode()
		conn, err = c.dialCable(ctx, own)
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(maxCableMessage)
	s := &Cable{conn: conn}
	s.ctx, s.close = context.WithCancelCause(context.Background())
	return s, nil
}

func (c *Client) dialCable(ctx context.Context, address *url.URL) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cableOpening)
	defer cancel()
	address.Scheme = map[string]string{"http": "ws", "https": "wss"}[strings.Replace(address.Scheme, "ws", "http", 1)]
	conn, res, err := websocket.Dial(ctx, address.String(), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: c.http.Transport, CheckRedirect: c.http.CheckRedirect}, Subprotocols: []string{api.CableProtocol},
	})
	if err != nil {
		if res != nil && res.StatusCode != http.StatusSwitchingProtocols {
			return nil, fmt.Errorf("the socket was answered %s", res.Status)
		}
		// The library's error contains the URL, and with it the ticket.
		var wrong *url.Error
		if errors.As(err, &wrong) {
			return nil, errors.New("open the socket: " + reason(wrong.Err))
		}
		return nil, fmt.Errorf("open the socket: %w", err)
	}
	return conn, nil
}

// Read returns the next message. It fails when the server closes the socket, when nothing arrives for 12 seconds, and
// when ctx ends; then the socket is unusable. The time between two calls does not count.
func (s *Cable) Read(ctx context.Context) (m api.CableMessage, err error) {
	stop := context.AfterFunc(ctx, func() { s.close(context.Cause(ctx)) })
	defer stop()
	alarm := time.AfterFunc(cableSilence, func() { s.close(errSilent) })
	defer alarm.Stop()
	_, r, err := s.conn.Reader(s.ctx)
	if err == nil {
		s.buf.Reset()
		_, err = s.buf.ReadFrom(alive{alarm, r})
	}
	if err != nil {
		if s.ctx.Err() != nil {
			err = context.Cause(s.ctx)
		}
		if errors.Is(err, io.EOF) || neterr.Closed(err) {
			err = errBroken
		}
		return m, err
	}
	if err := json.Unmarshal(s.buf.Bytes(), &m); err != nil {
		return m, fmt.Errorf("a message of the server: %w", err)
	}
	return m, nil
}

// alive is a reader that counts each byte as a sign of life: a large message on a slow network is not silence.
type alive struct {
	alarm *time.Timer
	r     io.Reader
}

func (a alive) Read(p []byte) (int, error) {
	a.alarm.Reset(cableSilence)
	return a.r.Read(p)
}

// Subscribe asks for the events of an endpoint. Read later returns the confirmation or rejection, with the identifier
// that Subscribe returns.
func (s *Cable) Subscribe(sub api.TunnelSubscription) (identifier string, err error) {
	text, err := json.Marshal(sub)
	if err != nil {
		return "", err
	}
	return string(text), s.write(api.CableMessage{Command: "subscribe", Identifier: string(text)})
}

// Unsubscribe ends a subscription in good order: no gap opens.
func (s *Cable) Unsubscribe(identifier string) error {
	return s.write(api.CableMessage{Command: "unsubscribe", Identifier: identifier})
}

// Perform performs an action on a subscription. data is an object, or nil for none.
func (s *Cable) Perform(identifier, action string, data any) error {
	members := []byte("{}")
	if data != nil {
		var err error
		if members, err = json.Marshal(data); err != nil {
			return err
		}
	}
	name, err := json.Marshal(action)
	if err != nil {
		return err
	}
	text := `{"action":` + string(name)
	if len(members) > 2 {
		text += ","
	}
	return s.write(api.CableMessage{Command: "message", Identifier: identifier, Data: text + string(members[1:])})
}

func (s *Cable) write(m api.CableMessage) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, cableWriting)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, text)
}

// Close ends the socket in good order (code 1000). It waits a moment for the server to agree, unless the socket has
// failed already.
func (s *Cable) Close() {
	s.once.Do(func() {
		if s.ctx.Err() == nil {
			_ = s.conn.Close(websocket.StatusNormalClosure, "") // the server may be gone already
		}
		s.close(io.ErrClosedPipe)
		_ = s.conn.CloseNow()
	})
}
