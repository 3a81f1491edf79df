package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hookglass"
)

// JSON carries text, and HTTP any bytes. A message of the tunnel has a member latin1: JSON Pointers (RFC 6901) to those
// of its strings that are bytes written as ISO 8859-1, one character a byte, because they are not UTF-8. Whoever sends
// them on writes them in that encoding; who only shows them need not know.

// latin1Of returns the pointers to what is not UTF-8 of header fields, and of strings that follow their names.
func latin1Of(fields hookglass.Headers, named ...string) (pointers []string) {
	for i := 0; i+1 < len(named); i += 2 {
		if !utf8.ValidString(named[i+1]) {
			pointers = append(pointers, "/"+named[i])
		}
	}
	for i, h := range fields {
		if !utf8.ValidString(h.Value) {
			pointers = append(pointers, "/header_list/"+strconv.Itoa(i)+"/1")
		}
	}
	return pointers
}

// bytesOf gives back the bytes that [Text] made into text. What it cannot have made stays as it is.
func bytesOf(text string) string {
	b := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			return text
		}
		b = append(b, byte(r))
	}
	return string(b)
}

// received undoes what pointers say of a header list, which it copies, and of strings by their pointers.
func received(pointers []string, list [][2]string, named map[string]*string) [][2]string {
	if len(pointers) > 0 {
		list = slices.Clone(list)
	}
	for _, p := range pointers {
		if s := named[p]; s != nil {
			*s = bytesOf(*s)
			continue
		}
		place, _ := strings.CutPrefix(p, "/header_list/")
		place, value := strings.CutSuffix(place, "/1")
		if i, err := strconv.Atoi(place); value && err == nil && i >= 0 && i < len(list) {
			list[i][1] = bytesOf(list[i][1])
		}
	}
	return list
}

// Received are path, query string and header list as they were received, to the byte.
func (r *TunnelRequest) Received() (path, query string, fields [][2]string) {
	path, query = r.Path, r.QueryString
	fields = received(r.Latin1, r.HeaderList, map[string]*string{"/path": &path, "/query_string": &query})
	return path, query, fields
}

// Wanted are address and header list as they shall be sent, to the byte.
func (c *TunnelReplayCommand) Wanted() (url string, fields [][2]string) {
	url = c.URL
	fields = received(c.Latin1, c.HeaderList, map[string]*string{"/url": &url})
	return url, fields
}

// SetResponseHeaders takes the fields of an answer, whose values may hold any bytes.
func (e *TunnelEvidence) SetResponseHeaders(fields map[string]string) {
	e.ResponseHeaders, e.Latin1 = make(map[string]string, len(fields)), nil
	for name, value := range fields {
		e.ResponseHeaders[name] = Text(value)
		if !utf8.ValidString(value) {
			e.Latin1 = append(e.Latin1, responseHeaders+escaped.Replace(name))
		}
	}
	slices.Sort(e.Latin1)
}

// ReceivedHeaders are the fields of the answer as they came, to the byte.
func (e *TunnelEvidence) ReceivedHeaders() map[string]string {
	fields := maps.Clone(e.ResponseHeaders)
	pointed := make(map[string]bool) // each once, however often a report points to it
	for _, p := range e.Latin1 {
		pointed[p] = true
	}
	for name, value := range fields {
		if pointed[responseHeaders+escaped.Replace(name)] {
			fields[name] = bytesOf(value)
		}
	}
	return fields
}

const responseHeaders = "/response_headers/"

var escaped = strings.NewReplacer("~", "~0", "/", "~1") // RFC 6901, section 3
