package cable

import (
	"net/http"

	"github.com/coder/websocket"

	"hookglass/internal/tunnel"
)

// What reads the messages of a client.
var (
	ParseCommand    = parseCommand
	ParseIdentifier = parseIdentifier
	ParseAction     = parseAction
)

// Farewell is for the other side to answer the end of a socket.
const Farewell = farewell

// Dismiss accepts a socket, reads from it as a session does, and ends it. It returns when the reader has noticed.
func Dismiss(w http.ResponseWriter, r *http.Request) error {
	guarded := &guard{ResponseWriter: w}
	ws, err := websocket.Accept(guarded, r, nil)
	if err != nil {
		return err
	}
	c := &conn{ws: ws, net: guarded.conn}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for err := error(nil); err == nil; {
			_, err = c.read()
		}
	}()
	c.disconnect(tunnel.ReasonUnauthorized, false)
	<-read
	return nil
}
