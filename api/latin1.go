package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hookglass"
)

// JSON carries text, and HTTP any bytes. What may hold some has a member latin1: JSON Pointers (RFC 6901) to those of
// its strings that are bytes written as ISO 8859-1, one character a byte, because they are not UTF-8. Whoever sends
// them on writes them in that encoding; who only shows them need not know.

// latin1Of returns the pointers to what is not UTF-8 of header_list, and of strings that follow their names.
func latin1Of(fields hookglass.Headers, named ...string) (pointers []string) {
	for i := 0; i+1 < len(named); i += 2 {
		if !utf8.ValidString(named[i+1]) {
			pointers = append(pointers, "/"+named[i])
		}
	}
	return append(pointers, latin1In(headerList, fields)...)
}

// latin1In returns the pointers to what is not UTF-8 of fields, which stand in a list. In a mail names may be it too.
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

// The lists of fields, as pointers begin that lead into them.
const (
	headerList         = "/header_list/"
	trailerList        = "/trailer_list/"
	responseHeaderList = "/response_header_list/"
)

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

// received undoes what pointers say of strings, by their pointers.
func received(pointers []string, named map[string]*string) {
	for _, p := range pointers {
		if s := named[p]; s != nil {
			*s = bytesOf(*s)
		}
	}
}

// receivedIn undoes what pointers say of the fields of a list, which it copies.
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

// Exact is the event as it came, to the byte: its URL, path, query string and lists of fields hold the bytes that JSON
// has as text. For JSON it is the event itself that fits.
func (d EventDetail) Exact() EventDetail {
	received(d.Latin1, map[string]*string{"/url": &d.URL, "/path": &d.Path, "/query_string": &d.QueryString})
	d.HeaderList = receivedIn(headerList, d.Latin1, d.HeaderList)
	d.TrailerList = receivedIn(trailerList, d.Latin1, d.TrailerList)
	d.ResponseHeaderList = receivedIn(responseHeaderList, d.Latin1, d.ResponseHeaderList)
	d.Latin1 = nil
	return d
}

// Received are path, query string and header list as they were received, to the byte.
func (r *TunnelRequest) Received() (path, query string, fields [][2]string) {
	path, query = r.Path, r.QueryString
	received(r.Latin1, map[string]*string{"/path": &path, "/query_string": &query})
	return path, query, receivedIn(headerList, r.Latin1, r.HeaderList)
}

// Wanted are address and header list as they shall be sent, to the byte.
func (c *TunnelReplayCommand) Wanted() (url string, fields [][2]string) {
	url = c.URL
	received(c.Latin1, map[string]*string{"/url": &url})
	return url, receivedIn(headerList, c.Latin1, c.HeaderList)
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
