package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
)

// maxMessage bounds the answer to a message. Tools limit their results to far less.
const maxMessage = 16 << 20

// Message sends one JSON-RPC message to the server's MCP interface and returns the JSON-RPC answer, or nothing for a
// notification. Any other answer, for example for an invalid token, is an *[Error].
func (c *Client) Message(ctx context.Context, message []byte, header http.Header) ([]byte, error) {
	accepting := http.Header{"Accept": {"application/json, text/event-stream"}}
	maps.Copy(accepting, header)
	res, err := c.request(ctx, http.MethodPost, strings.TrimSuffix(c.base, "/api/v1")+"/mcp", bytes.NewReader(message), accepting)
	if err != nil {
		return nil, err
	}
	heard := hear(res)
	defer heard.Close()
	if res.StatusCode == http.StatusAccepted {
		return nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(heard, maxMessage+1))
	if err == nil && len(text) > maxMessage {
		err = fmt.Errorf("it has more than %d bytes", maxMessage)
	}
	if err != nil {
		return nil, fmt.Errorf("the server's answer: %w", err)
	}
	if text = bytes.TrimSpace(text); json.Valid(text) && bytes.Contains(text, []byte(`"jsonrpc"`)) && strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		return text, nil
	}
	res.Body = io.NopCloser(bytes.NewReader(text))
	return nil, failure(res)
}
