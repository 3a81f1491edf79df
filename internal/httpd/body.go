package httpd

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"hookglass"
)

// bodyTime bounds how long a body may take to arrive.
const bodyTime = 30 * time.Second

// MaxBody is how many bytes of JSON a request may have. The largest field, the body of a response or of a test request,
// has half of it.
const MaxBody = 2 << 20

// ReadBody reads the body of a request, at most [MaxBody]; what names it in errors. It answers unsupported_media_type
// for a compressed one, payload_too_large, and invalid_json if it does not arrive completely in time.
func ReadBody(w http.ResponseWriter, r *http.Request, what string) ([]byte, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity") // RFC 9110, section 15.5.16
		return nil, hookglass.Errorf(hookglass.CodeUnsupportedMediaType, "The %s may not be compressed.", what)
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime)) // if the connection has no deadlines, the server's timeouts apply
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, hookglass.Errorf(hookglass.CodePayloadTooLarge, "The %s may have %d bytes at most.", what, MaxBody)
	case err != nil:
		return nil, hookglass.Errorf(hookglass.CodeInvalidJSON, "The %s did not arrive completely.", what)
	}
	return text, nil
}
