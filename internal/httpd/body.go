package httpd

import (
	"errors"
	"io"
	"net/http"
	"time"

	"hookglass"
)

// bodyTime is for a body to arrive.
const bodyTime = 30 * time.Second

// ReadBody reads the whole body of a request, which may have so many bytes and is called what where it is refused. It
// answers payload_too_large, and invalid_json where it does not come to its end in time.
func ReadBody(w http.ResponseWriter, r *http.Request, what string, most int64) ([]byte, error) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime)) // a connection without deadlines has the server's
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, hookglass.Errorf(hookglass.CodePayloadTooLarge, "The %s may have %d bytes at most.", what, most)
	case err != nil:
		return nil, hookglass.Errorf(hookglass.CodeInvalidJSON, "The %s did not arrive whole.", what)
	}
	return text, nil
}
