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
	for name := range strings.SplitSeq(in.Headers.Get("x-contentful-signed-headers"), ",") {
		names = append(names, strings.ToLower(strings.TrimSpace(name)))
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = name + ":" + in.Headers.Get(name)
	}
	io.WriteString(w, in.Method+"\n"+path+"\n"+strings.Join(names, ";")+"\n")
	w.Write(in.Body)
}
