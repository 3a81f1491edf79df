package provider

import (
	"io"
	"slices"
	"strings"
)

// filling writes the signed bytes of a scheme without copying the body.
type filling struct {
	in     *input
	parts  []payloadPart
	scheme *scheme
	url    string
	time   string
	id     string
	names  string
	secret string
}

func (f *filling) write(w io.Writer) {
	if f.scheme.Kind == "contentful" {
		writeContentful(w, f.in, f.url, f.parts[0].source == "encoded_url")
		return
	}
	for _, p := range f.parts {
		switch p.source {
		case "":
			io.WriteString(w, p.literal)
		case "body":
			w.Write(f.in.Body)
		case "escaped_body":
			writeEscaped(w, f.in.Body)
		case "time":
			io.WriteString(w, f.time)
		case "id":
			io.WriteString(w, f.id)
		case "url":
			io.WriteString(w, f.url)
		case "base_url":
			base, _, _ := strings.Cut(f.url, "?")
			io.WriteString(w, base)
		case "decoded_url":
			hubspotURL.WriteString(w, f.url)
		case "sorted_url":
			io.WriteString(w, sortedURL(f.url, f.in.params()))
		case "ordered_url":
			io.WriteString(w, orderedURL(f.url, f.in.params()))
		case "method":
			io.WriteString(w, f.in.Method)
		case "secret":
			io.WriteString(w, f.secret)
		case "names":
			io.WriteString(w, f.names)
		case "values":
			for i, name := range strings.Fields(f.names) {
				if i > 0 {
					io.WriteString(w, ".")
				}
				io.WriteString(w, f.in.Headers.Get(name))
			}
		case "params":
			w.Write(f.in.signedParams())
		default:
			text, _ := formValue(f.in.params(), strings.TrimPrefix(p.source, "form:"))
			io.WriteString(w, text)
		}
	}
}

// urls returns the URLs that a sender may have signed: the given ones in order, each as it is, and with and without the
// default port (providers.md section 3, 5). Twilio's official libraries also omit other ports.
func (in *input) urls() []string {
	var all []string
	add := func(u string) {
		if u != "" && !slices.Contains(all, u) {
			all = append(all, u)
		}
	}
	for _, u := range append([]string{in.URL}, in.URLs...) {
		u, _, _ = strings.Cut(u, "#")
		add(u)
		scheme, rest, ok := strings.Cut(u, "://")
		if !ok {
			continue
		}
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		host, tail := rest[:end], rest[end:]
		port := strings.LastIndexByte(host, ':')
		switch {
		case port > strings.LastIndexByte(host, ']'):
			add(scheme + "://" + host[:port] + tail)
		case strings.EqualFold(scheme, "https"):
			add(scheme + "://" + host + ":443" + tail)
		case strings.EqualFold(scheme, "http"):
			add(scheme + "://" + host + ":80" + tail)
		}
	}
	return all
}

// sortedURL returns what Plivo's third version signs: the URL with its path and query decoded and the query sorted,
// then the sorted form parameters. After a query, trailing dots are dropped, even those of a last value, as in Plivo's
// own libraries.
func sortedURL(url string, params []pair) string {
	base, rawQuery, _ := strings.Cut(url, "?")
	base = unescapePath(base)
	query := parseForm(rawQuery)
	slices.SortStableFunc(query, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	b.WriteString(base)
	if len(query) > 0 || len(params) > 0 {
		b.WriteByte('?')
	}
	for i, p := range query {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.name + "=" + p.value)
	}
	if len(query) > 0 && len(params) > 0 {
		b.WriteByte('.')
	}
	b.WriteString(sortedParams(params))
	if len(query) > 0 {
		return strings.TrimRight(b.String(), ".")
	}
	return b.String()
}

// orderedURL is sortedURL as other Plivo libraries implement it: the path is not decoded, the values of a repeated name
// are sorted, too, equal ones are all signed, and no dot is dropped.
func orderedURL(url string, params []pair) string {
	base, rawQuery, _ := strings.Cut(url, "?")
	query := inOrder(parseForm(rawQuery))
	var b strings.Builder
	b.WriteString(base)
	for i, p := range query {
		b.WriteByte("?&"[min(i, 1)])
		b.WriteString(p.name + "=" + p.value)
	}
	switch {
	case len(params) == 0:
	case len(query) == 0:
		b.WriteByte('?')
	default:
		b.WriteByte('.')
	}
	for _, p := range inOrder(params) {
		b.WriteString(p.name + p.value)
	}
	return b.String()
}
