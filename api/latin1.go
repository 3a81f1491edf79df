package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hookglass"
)

// JSON carries text, but HTTP any bytes. An object that may contain non-text bytes has a member latin1: JSON Pointers
// (RFC 6901) to its strings that are not UTF-8 and so are written as ISO 8859-1, one character per byte. To send such a
// string on, encode it in ISO 8859-1; to display it, nothing is needed.

// latin1Of returns the pointers to what is not UTF-8 in header_list, and among strings that follow their names.
func latin1Of(fields hookglass.Headers, named ...string) (pointers []string) {
	for i := 0; i+1 < len(named); i += 2 {
		if !utf8.ValidString(named[i+1]) {
			pointers = append(pointers, "/"+named[i])
		}
	}
	return append(pointers, latin1In(headerList, fields)...)
}

// latin1In returns the pointers to what is not UTF-8 in a list of fields. In mail this includes names.
func latin1In(list string, fields hookglass.Headers) (pointers []string) {
	for i, h := range fields {
		for part, s := range []string{h.Name, h.Value} {
			if !utf8.ValidString(s) {
				pointers = append(pointers, list+strconv.Itoa(i)+"/"+strconv.Itoa(part))
			}
		}
	}
	return pointers
}

// The lists of fields, as the beginnings of pointers into them.
const (
	headerList         = "/header_list/"
	trailerList        = "/trailer_list/"
	requestHeaderList  = "/request_header_list/"
	responseHeaderList = "/response_header_list/"
)

// bytesOf returns the bytes that [Text] converted to text. Other text stays as it is.
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

// received restores the bytes of the strings that pointers name.
func received(pointers []string, named map[string]*string) {
	for _, p := range pointers {
		if s := named[p]; s != nil {
			*s = bytesOf(*s)
		}
	}
}

// receivedIn restores the bytes of the fields that pointers name, in a copy of the list.
func receivedIn(list string, pointers []string, fields [][2]string) [][2]string {
	copied := false
	for _, p := range pointers {
		place, in := strings.CutPrefix(p, list)
		place, part, _ := strings.Cut(place, "/")
		i, err := strconv.Atoi(place)
		if !in || err != nil || i < 0 || i >= len(fields) || part != "0" && part != "1" {
			continue
		}
		if !copied {
			fields, copied = slices.Clone(fields), true
		}
		s := &fields[i][part[0]-'0']
		*s = bytesOf(*s)
	}
	return fields
}

// Exact returns the event with the exact received bytes in its URL, path, query string and lists of fields. Marshal the
// event itself to JSON, not this one.
func (d EventDetail) Exact() EventDetail {
	received(d.Latin1, map[string]*string{"/url": &d.URL, "/path": &d.Path, "/query_string": &d.QueryString})
	d.HeaderList = receivedIn(headerList, d.Latin1, d.HeaderList)
	d.TrailerList = receivedIn(trailerList, d.Latin1, d.TrailerList)
	d.ResponseHeaderList = receivedIn(responseHeaderList, d.Latin1, d.ResponseHeaderList)
	d.Latin1 = nil
	return d
}

// Received returns path, query string and header list exactly as received.
func (r *TunnelRequest) Received() (path, query string, fields [][2]string) {
	path, query = r.Path, r.QueryString
	received(r.Latin1, map[string]*string{"/path": &path, "/query_string": &query})
	return path, query, receivedIn(headerList, r.Latin1, r.HeaderList)
}

// Wanted returns URL and header list exactly as they are to be sent.
func (c *TunnelReplayCommand) Wanted() (url string, fields [][2]string) {
	url = c.URL
	received(c.Latin1, map[string]*string{"/url": &url})
	return url, receivedIn(headerList, c.Latin1, c.HeaderList)
}

// SetResponseHeaders sets the fields of an answer, whose values may contain any bytes.
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

// ReceivedHeaders returns the fields of the answer exactly as received.
func (e *TunnelEvidence) ReceivedHeaders() map[string]string {
	fields := maps.Clone(e.ResponseHeaders)
	pointed := make(map[string]bool) // each once, even if a report repeats a pointer
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
