package provider

import (
	"io"
	"slices"
	"strings"
)

// writeContentful writes Contentful's canonical request: method, path with query, the headers that the sender names as
// "name:value" sorted and joined by ";", and the body, one a line.
func writeContentful(w io.Writer, in *input, url string) {
	path := url
	if _, rest, ok := strings.Cut(url, "://"); ok {
		path = "/"
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			path = rest[i:]
		}
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

const contentfulNames = "x-contentful-signed-headers"

// nameSigned makes the list of signed headers ready to be signed: those that were named and are still there, and always the list itself
// and the time.
func nameSigned(o *Outgoing) {
	names := []string{contentfulNames, "x-contentful-timestamp"}
	for name := range strings.SplitSeq(o.Headers.Get(contentfulNames), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if o.Headers.Has(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	o.Headers = setHeader(o.Headers, contentfulNames, strings.Join(names, ","))
}
