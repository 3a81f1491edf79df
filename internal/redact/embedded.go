package redact

import (
	"html"
	"iter"
	"net/url"
	"strings"

	"hookglass"
	"hookglass/internal/jsondoc"
)

// maxEscaped bounds how often text is escaped into which one looks: a URL in the query of another is twice.
const maxEscaped = 3

// beforeEscaped are the characters beside a word that is percent-encoded.
const beforeEscaped = afterParameter + "=?"

// embedded redacts a string inside a value: as a value of its own where it is JSON.
func (r *Redactor) embedded(s string) string {
	if doc := strings.TrimLeft(s, "\ufeff \t\r\n"); jsondoc.Bracketed(doc) {
		if v, err := jsondoc.Parse([]byte(doc), jsondoc.Wide()); err == nil {
			inside, paths := v.Redact(jsondoc.Redaction{Hidden: r.hidden, Listed: r.listed, Text: func(s string) string {
				return r.named(s, maxEscaped)
			}})
			if len(paths) == 0 {
				return s
			}
			return string(inside.Bytes())
		}
	}
	return r.named(s, maxEscaped)
}

// named redacts a text and what stands under sensitive names in it: a JSON string may hold JSON in turn.
func (r *Redactor) named(s string, depth int) string {
	shown := r.inURLs(s, depth)
	if !mayName(shown) {
		return shown
	}
	return hideNamed(shown)
}

// Body redacts a body: JSON and forms also by the names of their fields, any other text by its secrets.
func (r *Redactor) Body(body string) string { return r.embedded(strings.ToValidUTF8(body, "�")) }

// hidePairs redacts the values of sensitive names in a query string or a form.
func hidePairs(s string) string {
	if !strings.Contains(s, "=") || strings.ContainsAny(strings.TrimSpace(s), " \r\n\t") && !spaced(s) {
		return s
	}
	head, pairs, found := strings.Cut(s, "?")
	if !found {
		head, pairs = "", s
	} else {
		head += "?"
	}
	changed := false
	parts := strings.Split(pairs, "&")
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		end := value[len(strings.TrimRight(value, " \r\n\t")):]
		value = strings.TrimSuffix(value, end)
		if !ok || value == "" || strings.Trim(value, `>"' \`) == hookglass.Redacted || !Sensitive(unescaped(name)) {
			continue
		}
		parts[i], changed = name+"="+hookglass.Redacted+end, true
	}
	if !changed {
		return s
	}
	return head + strings.Join(parts, "&")
}

// hideEscaped redacts in the words of a text that are percent-encoded, which may be URLs or JSON: Slack and GitHub send
// forms that hold JSON.
func (r *Redactor) hideEscaped(s string, depth int) string {
	if depth == 0 || !strings.Contains(s, "%") {
		return s
	}
	p := splice{s: s}
	for at := 0; ; {
		n := strings.IndexByte(s[at:], '%')
		if n < 0 {
			return p.text()
		}
		start := at + strings.LastIndexAny(s[at:at+n], beforeEscaped) + 1
		at += n
		if end := strings.IndexAny(s[at:], beforeEscaped); end >= 0 {
			at += end
		} else {
			at = len(s)
		}
		plain := unescaped(s[start:at])
		if shown := r.named(plain, depth-1); shown != plain {
			p.put(start, at, url.QueryEscape(shown))
		}
	}
}

// hideReferences redacts in XML and HTML that hold JSON or XML as text, with character references for its marks.
func (r *Redactor) hideReferences(s string, depth int) string {
	escaped := func(s string) bool {
		return strings.Contains(s, "&quot;") || strings.Contains(s, "&#34;") || strings.Contains(s, "&lt;")
	}
	if depth == 0 || !escaped(s) {
		return s
	}
	p := splice{s: s}
	for at := 0; at < len(s); at++ {
		start := at
		if n := strings.IndexAny(s[at:], `<>"'`); n >= 0 {
			at += n
		} else {
			at = len(s)
		}
		if text := s[start:at]; escaped(text) {
			plain := html.UnescapeString(text)
			if shown := r.named(plain, depth-1); shown != plain {
				p.put(start, at, html.EscapeString(shown))
			}
		}
	}
	return p.text()
}

// spaced reports whether a text with spaces is a form typed without encoding, and not a sentence.
func spaced(s string) bool {
	if !strings.Contains(s, "&") || strings.Contains(s, "?") {
		return false
	}
	for part := range strings.SplitSeq(s, "&") {
		if name, _, ok := strings.Cut(part, "="); !ok || strings.ContainsAny(name, " \r\n\t\"<:") {
			return false
		}
	}
	return true
}

// hideUserinfo redacts the user and the password in URLs.
func hideUserinfo(s string) string {
	p := splice{s: s}
	for start, end := range Userinfo(s) {
		if s[start:end] != hookglass.Redacted {
			p.put(start, end, hookglass.Redacted)
		}
	}
	return p.text()
}

// Userinfo finds the users and passwords in URLs.
func Userinfo(s string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for at := 0; ; {
			i := strings.IndexByte(s[at:], ':')
			if i < 0 {
				return
			}
			at += i + 1
			host, found := pastStart(s, at, "//")
			if !found {
				continue
			}
			at = host
			end := strings.IndexAny(s[at:], "/?# \t\r\n\"'<>")
			if end < 0 {
				end = len(s) - at
			}
			if user := strings.LastIndexByte(s[at:at+end], '@'); user > 0 && !yield(at, at+user) {
				return
			}
			at += end
		}
	}
}

// unescaped decodes URL escapes. Text that is not escaped correctly stays as it is.
func unescaped(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}
