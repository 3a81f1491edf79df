package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"hookglass/client"
	"hookglass/internal/server"
)

// MCPCmd is `hookglass mcp`: for agents that start a program and talk to it over standard input and output.
type MCPCmd struct {
	remote
}

const (
	// maxMessage bounds a message; the server accepts no longer one.
	maxMessage = 2 << 20
	// maxLine bounds what is read of a longer one, to answer it by its id.
	maxLine = 32 << 20
)

// Run implements the command. It ends when the agent closes its side and all calls are answered, or on a signal, with
// which agents also stop programs. It fails if its answers cannot be written.
func (c *MCPCmd) Run(ctx context.Context, t *server.Terminal) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{to: to, out: t.Out, calls: make(map[string]context.CancelFunc), stop: cancel}
	var calls sync.WaitGroup
	in := bufio.NewReaderSize(&input{ctx, t.In}, 64<<10)
	for ctx.Err() == nil {
		var line []byte
		if line, err = messageLine(in, maxLine); err != nil && len(line) == 0 {
			break
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		m := parseMessage(line)
		if len(line) > maxMessage {
			if m.ID != nil || m.Method == "" {
				b.answer(unanswered(m.ID, fmt.Errorf("a message may have %d bytes at most", maxMessage)))
			}
			continue
		}
		call, over := b.begin(ctx, m) // before reading the next message, which may cancel it
		if m.Method == "initialize" || m.Method == "notifications/initialized" || m.Method == cancelled {
			b.pass(call, m) // later messages depend on it
			over()
			continue
		}
		calls.Go(func() {
			defer over()
			b.pass(call, m)
		})
	}
	calls.Wait()
	if b.lost != nil {
		return fmt.Errorf("an answer could not be written: %w", b.lost)
	}
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// cancelled is the method that cancels a call.
const cancelled = "notifications/cancelled"

// messageLine reads a line, and drops what exceeds most.
func messageLine(in *bufio.Reader, most int) (line []byte, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece[:min(len(piece), most+1-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// bridge forwards messages. An answer is one line, as the transport requires.
type bridge struct {
	to      *client.Client
	mu      sync.Mutex
	out     io.Writer
	version string // the protocol version negotiated by the handshake, or empty
	calls   map[string]context.CancelFunc
	lost    error // why answers are no longer written
	stop    context.CancelFunc
}

// bridged are the parts of a message that the HTTP transport needs.
type bridged struct {
	text   []byte
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// parseMessage parses what it can: the server reports what is wrong with the rest.
func parseMessage(text []byte) bridged {
	m := bridged{}
	_ = json.Unmarshal(text, &m)
	m.text = text
	return m
}

// begin registers a call so that it can be cancelled, until over is called.
func (b *bridge) begin(ctx context.Context, m bridged) (call context.Context, over func()) {
	if m.ID == nil || m.Method == "" {
		return ctx, func() {}
	}
	call, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	b.calls[string(m.ID)] = cancel
	b.mu.Unlock()
	return call, func() {
		b.mu.Lock()
		delete(b.calls, string(m.ID))
		b.mu.Unlock()
		cancel()
	}
}

func (b *bridge) pass(ctx context.Context, m bridged) {
	if m.Method == cancelled {
		b.mu.Lock()
		cancel := b.calls[string(m.Params.RequestID)]
		b.mu.Unlock()
		if cancel != nil {
			cancel()
		}
		return
	}
	header := http.Header{}
	b.mu.Lock()
	version := b.version
	b.mu.Unlock()
	// Without a handshake each message has its own version, and headers repeat its method and name.
	if v := m.Params.Meta.Version; v != "" {
		version = v
		header.Set("Mcp-Method", m.Method)
		if m.Params.Name != "" {
			header.Set("Mcp-Name", m.Params.Name)
		}
	}
	if version != "" && m.Method != "initialize" {
		header.Set("Mcp-Protocol-Version", version)
	}
	answer, err := b.to.Message(ctx, m.text, header)
	switch {
	case err != nil && ctx.Err() != nil:
		return // cancelled calls are not answered
	case err != nil && (m.ID != nil || m.Method == ""):
		answer = unanswered(m.ID, err)
	case err != nil || answer == nil:
		return
	}
	if m.Method == "initialize" {
		var settled struct {
			Result struct {
				Version string `json:"protocolVersion"`
			} `json:"result"`
		}
		if json.Unmarshal(answer, &settled) == nil {
			b.mu.Lock()
			b.version = settled.Result.Version
			b.mu.Unlock()
		}
	}
	b.answer(answer)
}

// answer writes an answer. If that fails it ends the bridge, because the client would wait for the answer for ever.
func (b *bridge) answer(text []byte) {
	var compact bytes.Buffer
	if json.Compact(&compact, text) != nil {
		return
	}
	compact.WriteByte('\n')
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil {
		return
	}
	if _, b.lost = b.out.Write(compact.Bytes()); b.lost != nil {
		b.stop()
	}
}

// unanswered returns the error for a call that the server did not answer with a message.
func unanswered(id json.RawMessage, err error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	text, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": -32603, "message": "hookglass: " + explain(err)},
	})
	if err != nil { // the id, and so the message, was not JSON
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`)
	}
	return text
}
