package cable

import (
	"context"
	"io"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/time/rate"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/tunnel"
)

// Subscribing costs a transaction each time. A client with a thousand endpoints may subscribe to them; one that does
// nothing else is slowed down.
const (
	changesASecond = 50
	changesAtOnce  = 1000
)

// reportsAtOnce bounds the reports of one socket that are stored side by side, so that they share commits. When it is
// reached the socket is read no further.
const reportsAtOnce = 32

// serve carries out the client's commands until its socket ends, and returns why it did.
func (c *conn) serve(ctx context.Context, session *tunnel.Session) error {
	changes := rate.NewLimiter(changesASecond, changesAtOnce)
	r := &reporter{c, session, ctx, make(chan struct{}, reportsAtOnce)}
	defer r.end()
	for {
		text, err := c.read()
		if err != nil {
			return err
		}
		session.Heard()
		m, err := parseCommand(text)
		if err != nil {
			continue // as the servers of this protocol do: what is no command is none
		}
		switch m.Command {
		case "subscribe":
			if err := changes.Wait(ctx); err != nil {
				return err
			}
			wish, err := parseIdentifier(m.Identifier)
			if err != nil {
				err = c.Reject(ctx, m.Identifier)
			} else {
				err = session.Subscribe(m.Identifier, wish)
			}
			if err != nil {
				return err
			}
		case "unsubscribe":
			if err := changes.Wait(ctx); err != nil {
				return err
			}
			session.Unsubscribe(m.Identifier)
		case "message":
			if report, ok := parseAction(m.Data); ok {
				r.add(m.Identifier, report)
			}
		}
	}
}

// read returns the next message. It has no deadline of its own: who vanished does not answer pings.
func (c *conn) read() ([]byte, error) {
	kind, reader, err := c.ws.Reader(context.Background())
	var text []byte
	if err == nil {
		text, err = io.ReadAll(reader)
	}
	switch {
	case err != nil:
		// The library says itself what most violations are, and leaves some without a word. On a socket that has ended
		// this does nothing.
		c.violated(websocket.StatusProtocolError, "")
	case kind != websocket.MessageText:
		c.violated(websocket.StatusUnsupportedData, "text messages alone")
		err = io.EOF
	case !utf8.Valid(text): // RFC 6455, section 8.1
		c.violated(websocket.StatusInvalidFramePayloadData, "text is UTF-8")
		err = io.EOF
	}
	return text, err
}

func parseCommand(text []byte) (m api.CableMessage, err error) {
	var command struct {
		Command    string `json:"command"`
		Identifier string `json:"identifier"`
		Data       string `json:"data"`
	}
	err = json.Unmarshal(text, &command)
	return api.CableMessage{Command: command.Command, Identifier: command.Identifier, Data: command.Data}, err
}

// parseIdentifier reads the JSON text by which a client names what it subscribes to.
func parseIdentifier(text string) (w tunnel.Wish, err error) {
	// Of what a client says of itself nothing matters so much that it should be turned away for its form: its client_id
	// is not looked at.
	var id struct {
		api.TunnelSubscription
		ClientID jsontext.Value `json:"client_id"`
	}
	if err := json.Unmarshal([]byte(text), &id, json.WithUnmarshalers(json.UnmarshalFromFunc(lenientMetadata)), jsontext.AllowDuplicateNames(true)); err != nil {
		return w, err
	}
	if id.Channel != api.TunnelChannel || id.EndpointID == "" {
		return w, hookglass.NotFound("channel")
	}
	w = tunnel.Wish{Endpoint: id.EndpointID, TargetURL: id.TargetURL}
	if id.ClientMetadata != nil {
		w.Hostname = id.ClientMetadata.Hostname
	}
	return w, nil
}

// lenientMetadata takes from client_metadata what is of the right form.
func lenientMetadata(dec *jsontext.Decoder, m *api.TunnelMetadata) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	var members map[string]any
	if json.Unmarshal(value, &members, jsontext.AllowDuplicateNames(true)) == nil {
		m.Hostname, _ = members["hostname"].(string)
		m.OS, _ = members["os"].(string)
		m.Arch, _ = members["arch"].(string)
	}
	return nil
}

// parseAction reads what a client performs. A heartbeat needs nothing done: it was heard.
func parseAction(text string) (r api.DeliveryReport, ok bool) {
	var action struct {
		Action string `json:"action"`
	}
	if json.Unmarshal([]byte(text), &action) != nil || action.Action != "delivery_report" {
		return r, false
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		r = api.DeliveryReport{} // it will be refused, and its sender told, as far as it says which it is
		var attempt struct {
			ID string `json:"delivery_attempt_id"`
		}
		_ = json.Unmarshal([]byte(text), &attempt)
		r.DeliveryAttemptID = attempt.ID
	}
	return r, true
}

// reporter stores the reports of a socket, several at a time: each alone would wait for a commit of its own.
type reporter struct {
	conn    *conn
	session *tunnel.Session
	ctx     context.Context
	turns   chan struct{}
}

// add stores a report beside others. When many are under way it waits.
func (r *reporter) add(key string, report api.DeliveryReport) {
	r.turns <- struct{}{}
	go func() {
		defer func() { <-r.turns }()
		r.store(key, report)
	}()
}

// end waits for what is under way.
func (r *reporter) end() {
	for range cap(r.turns) {
		r.turns <- struct{}{}
	}
}

// store tries until the storage takes the report, and tells the client what became of it where it can say of which one.
func (r *reporter) store(key string, report api.DeliveryReport) {
	var err error
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		if err = r.session.Report(key, report); !hookglass.Is(err, hookglass.CodeUnavailable) || wait > 2*time.Second {
			break
		}
		time.Sleep(wait)
	}
	if report.DeliveryAttemptID == "" || hookglass.Is(err, hookglass.CodeUnavailable) {
		return
	}
	ack := api.DeliveryReportAck{Type: api.TunnelReportAck, DeliveryAttemptID: report.DeliveryAttemptID, Status: "ok"}
	if err != nil {
		ack.Status, ack.Error = "refused", string(hookglass.CodeOf(err))
	}
	text, err := json.Marshal(ack)
	if err == nil {
		_ = r.conn.Deliver(r.ctx, key, text) // without it the client reports again
	}
}
