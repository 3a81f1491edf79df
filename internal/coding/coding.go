// Package coding undoes content codings and charsets, puts gzip back, and takes multipart bodies apart: what a body
// says that was compressed on its way, written in other bytes than those of UTF-8, or packed with others. It hides the
// formats and that a few bytes can grow without end. Pure, and safe for concurrent use.
package coding

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"

	"hookglass"
)

// What [Decoded] says of a body that it does not return whole.
var (
	ErrLonger  = errors.New("the body goes on when it is decoded")
	ErrUnknown = errors.New("the coding of the body is not known")
)

// maxCodings is how many codings one body may have. Nobody needs two, and each of them multiplies what a few bytes can
// grow to.
const maxCodings = 3

// Of returns what headers say of the coding of their body, "" where it has none.
func Of(h hookglass.Headers) string {
	var codings []string
	for _, value := range h.Values("Content-Encoding") {
		for coding := range strings.SplitSeq(strings.ToLower(value), ",") {
			if coding = strings.TrimSpace(coding); coding != "" && coding != "identity" {
				codings = append(codings, coding)
			}
		}
	}
	return strings.Join(codings, ",")
}

// Decoded undoes the coding that Of returned (RFC 9110, section 8.4): gzip and deflate. It returns most bytes at most,
// with ErrLonger when there are more. Of a damaged body it returns what comes before the fault, with the fault as the
// error. For a coding that is not known it returns nothing, with ErrUnknown. A body without a coding is returned as it
// is, whatever its length.
func Decoded(body []byte, of string, most int) ([]byte, error) {
	if of == "" || len(body) == 0 {
		return body, nil
	}
	codings := strings.Split(of, ",")
	if len(codings) > maxCodings {
		return nil, ErrUnknown
	}
	// A stream can be long and mean nothing, so what is read of one is bounded as well as what comes out of it.
	bound := int64(most)*2 + 64<<10
	var r io.Reader = bytes.NewReader(body)
	for len(codings) > 0 {
		last := len(codings) - 1
		opened, err := open(io.LimitReader(r, bound), codings[last])
		if err != nil {
			return nil, err
		}
		r, codings = opened, codings[:last]
	}
	plain, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if len(plain) > most {
		return plain[:most], ErrLonger
	}
	return plain, err
}

// Gzipped is the inverse of Decoded for gzip: of a text that was taken out of it, changed, and is put back.
func Gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// Beginning is what Decoded returns of a body. Of a body that is longer than most, or was cut off, it is the beginning.
// ok is false when the body has no coding, or nothing of it can be decoded.
func Beginning(body []byte, of string, most int) (plain []byte, ok bool) {
	if of == "" {
		return nil, false
	}
	plain, err := Decoded(body, of, most)
	return plain, len(plain) > 0 && (err == nil || errors.Is(err, ErrLonger) || errors.Is(err, io.ErrUnexpectedEOF))
}

// Plain is a body without its content coding, most bytes of it at most. A body that cannot be decoded is returned as it
// is, because some senders name a coding that they do not use.
func Plain(body []byte, h hookglass.Headers, most int) []byte {
	plain, err := Decoded(body, Of(h), most)
	if err != nil && !errors.Is(err, ErrLonger) {
		return body
	}
	return plain
}

func open(r io.Reader, coding string) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "deflate": // zlib by RFC 9110, the bare form of RFC 1951 by habit
		b := bufio.NewReader(r)
		if head, err := b.Peek(2); err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
			return zlib.NewReader(b)
		}
		return flate.NewReader(b), nil
	}
	return nil, ErrUnknown
}
