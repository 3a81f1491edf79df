package provider

import (
	"io"
	"slices"
	"strings"
)

// writeContentful writes Contentful's canonical request: method, path with query, the headers that the sender names as
// "name:value" sorted and joined by ";", and the body, one a line.
func writeContentful(w io.Writer, in *input, url string, encoded bool) {
	path := url
	if _, rest, ok := strings.Cut(url, "://"); ok {
		path = "/"
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			path = rest[i:]
		}
	}
	if encoded {
		path = encodedPath(path)
	}
	var names []string
	for name := range strings.SplitSeq(in.Headers.Get(contentfulNames), ",") {
		names = append(names, strings.ToLower(strings.TrimSpace(name)))
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = name + ":" + in.Headers.Get(name)
	}
	io.WriteString(w, in.Method+"\n"+path+"\n"+strings.Join(names, ";")+"\n")
	w.Write(in.Body)
}

// encodedPath returns the path as Contentful's library encodes it (node-apps-toolkit, src/requests/utils.ts): escapes
// are escaped again, the query once more, and a second question mark ends it.
func encodedPath(path string) string {
	path, query, _ := strings.Cut(path, "?")
	query, _, _ = strings.Cut(query, "?")
	path = escapeBut(path, uriBytes)
	if query != "" {
		path += "?" + escapeBut(escapeBut(query, componentBytes), uriBytes)
	}
	return path
}

// The characters that JavaScript's encodeURIComponent and encodeURI do not escape, besides letters and digits.
const (
	componentBytes = "-_.!~*'()"
	uriBytes       = componentBytes + ";,/?:@&=+$#"
)

func escapeBut(s, kept string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte(kept, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + string("0123456789ABCDEF"[c>>4]) + string("0123456789ABCDEF"[c&15]))
		}
	}
	return b.String()
}

const contentfulNames = "x-contentful-signed-headers"

// nameSigned prepares the list of signed headers: those that were named and are still present, and always the list
// itself and the time.
func nameSigned(o *Outgoing) {
	names := []string{contentfulNames, "x-contentful-timestamp"}
	for name := range strings.SplitSeq(o.Headers.Get(contentfulNames), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if o.Headers.Has(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names) // the order that Contentful's library requires
	o.Headers = setHeader(o.Headers, contentfulNames, strings.Join(names, ","))
}
