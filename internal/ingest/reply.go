package ingest

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/capture"
)

// replyForm holds what depends on the request and the connection rather than on the reply.
type replyForm struct {
	minor     int  // the sender's version, 1.x
	head      bool // answers HEAD: the fields as for GET, no body
	close     bool
	keepAlive bool // to be stated to an HTTP/1.0 sender
	date      string
}

// appendReplyHead appends the header of an answer.
func appendReplyHead(dst []byte, r *hookglass.Reply, form replyForm) []byte {
	if form.minor == 0 {
		dst = append(dst, "HTTP/1.0 "...)
	} else {
		dst = append(dst, "HTTP/1.1 "...)
	}
	dst = strconv.AppendInt(dst, int64(r.Status), 10)
	dst = append(dst, ' ')
	dst = append(dst, http.StatusText(r.Status)...)
	dst = append(dst, "\r\n"...)
	for _, h := range r.Headers {
		if !capture.Sendable(h) {
			continue
		}
		dst = append(dst, h.Name...)
		dst = append(dst, ": "...)
		dst = append(dst, h.Value...)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, "Date: "...)
	if date := r.Headers.Get("Date"); len(date) == len(http.TimeFormat) {
		dst = append(dst, date...) // as recorded
	} else {
		dst = append(dst, form.date...)
	}
	dst = append(dst, "\r\n"...)
	// For HEAD the length must be that of the answer to GET, or be left out (RFC 9110, section 8.6): captures keep no
	// body for HEAD.
	if !neverBody(r.Status) && !(form.head && len(r.Body) == 0) {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(r.Body)), 10)
		dst = append(dst, "\r\n"...)
	}
	switch {
	case form.close:
		dst = append(dst, "Connection: close\r\n"...)
	case form.keepAlive:
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// appendReply appends a whole answer.
func appendReply(dst []byte, r *hookglass.Reply, form replyForm) []byte {
	dst = appendReplyHead(dst, r, form)
	if !form.head && !neverBody(r.Status) {
		dst = append(dst, r.Body...)
	}
	return dst
}

// neverBody reports whether an answer of this status has no body (RFC 9110, sections 15.3.5 and 15.4.5).
func neverBody(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// clock caches the text of Date, which changes once a second.
type clock struct{ line atomic.Pointer[dateLine] }

type dateLine struct {
	second int64
	text   string
}

func (c *clock) date(now time.Time) string {
	second := now.Unix()
	line := c.line.Load()
	if line == nil || line.second != second {
		line = &dateLine{second, now.UTC().Format(http.TimeFormat)}
		c.line.Store(line)
	}
	return line.text
}
