package email

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"hookglass"
)

// Bounds of what is extracted.
const (
	maxLinks     = 100
	maxLinkBytes = 8 << 10 // click-tracking links contain their target
	maxSearched  = 1 << 20 // of each body
)

// Extracted is what people usually look for in a mail.
type Extracted struct {
	Links []string `json:"links"` // http and https, in the order met, each once
	Codes []string `json:"codes"` // one-time codes, the likeliest first
}

// Extract finds the links and one-time codes in the subject, text and HTML of a message. Neither list is ever nil.
func Extract(m *Message) Extracted {
	text := searched(m.Text)
	seen, shown := readHTML(searched(m.HTML))
	e := Extracted{Links: []string{}, Codes: codesIn(m.Subject, text, shown)}
	for _, l := range slices.Concat(textLinks(text), seen, textLinks(shown)) {
		if len(e.Links) < maxLinks && !slices.Contains(e.Links, l) {
			e.Links = append(e.Links, l)
		}
	}
	return e
}

// Shown returns the text that the HTML of a message displays, as one line: without markup, with entities decoded and
// white space collapsed. Of a large document it reads the beginning.
func (m *Message) Shown() string {
	_, shown := readHTML(searched(m.HTML))
	return strings.Join(strings.Fields(shown), " ")
}

// searched returns the beginning of a body, up to maxSearched.
func searched(s string) string { return hookglass.Beginning(s, maxSearched) }

// readHTML returns the links of a document and its displayed text, with a line for each block.
func readHTML(document string) (links []string, shown string) {
	if document == "" {
		return nil, ""
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(document))
	hidden := atom.Atom(0) // the element whose text is hidden
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return links, b.String()
		case html.TextToken:
			if hidden == 0 {
				b.Write(z.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			name, hasAttributes := z.TagName()
			element := atom.Lookup(name)
			switch element {
			case atom.Script, atom.Style, atom.Title, atom.Template:
				if kind != html.EndTagToken { // also <script/>, as browsers have it
					hidden = element
				} else if hidden == element {
					hidden = 0
				}
			case atom.A, atom.Area:
				if hasAttributes {
					links = appendHrefs(links, z)
				}
			case atom.B, atom.Strong, atom.Em, atom.I, atom.U, atom.Span, atom.Font, atom.Code, atom.Wbr, atom.Small, atom.Big, atom.Sub, atom.Sup, atom.Img:
			default:
				b.WriteByte('\n')
			}
		}
	}
}

// appendHrefs adds the links of the tokenizer's current tag.
func appendHrefs(links []string, z *html.Tokenizer) []string {
	for more := true; more && len(links) < 10*maxLinks; {
		var key, value []byte
		if key, value, more = z.TagAttr(); string(key) != "href" {
			continue
		}
		if l, ok := link(string(value)); ok {
			links = append(links, l)
		}
	}
	return links
}

// textLinks returns the links in plain text, without the punctuation around them.
func textLinks(text string) (links []string) {
	for len(links) < 10*maxLinks {
		i := strings.Index(text, "://")
		if i < 0 {
			return links
		}
		start := i
		for _, scheme := range []string{"https", "http"} {
			if i >= len(scheme) && strings.EqualFold(text[i-len(scheme):i], scheme) {
				start = i - len(scheme)
				break
			}
		}
		if start == i {
			text = text[i+3:]
			continue
		}
		end := i + 3
		for end < len(text) {
			r, n := utf8.DecodeRuneInString(text[end:])
			if r <= ' ' || strings.ContainsRune("<>\"`{}|\\^\u00a0\u3000。，、）」』】\uFFFD", r) || isControl(r) {
				break
			}
			end += n
		}
		before := byte(0)
		if start > 0 {
			before = text[start-1]
		}
		if l, ok := link(trimLink(text[start:end], before)); ok {
			links = append(links, l)
		}
		text = text[end:]
	}
	return links
}

// trimLink removes the punctuation of a sentence, a closing bracket that the link does not open, and emphasis marks. A
// mark that tokens may end with is removed only if it also precedes the link or follows another mark.
func trimLink(l string, before byte) string {
	round, square := unopened(l, "(", ")"), unopened(l, "[", "]")
	for l != "" {
		last := l[len(l)-1]
		switch last {
		case '.', ',', ';', ':', '!', '?', '\'', '*':
		case '_', '~':
			if before != last && !strings.HasSuffix(l[:len(l)-1], "*") {
				return l
			}
		case ')':
			if round <= 0 {
				return l
			}
			round--
		case ']':
			if square <= 0 {
				return l
			}
			square--
		default:
			return l
		}
		l = l[:len(l)-1]
	}
	return l
}

// unopened returns how many more brackets a text closes than it opens.
func unopened(text, opening, closing string) int {
	return strings.Count(text, closing) - strings.Count(text, opening)
}

// link normalises a web address so that it can be opened.
func link(s string) (string, bool) {
	s = strings.Map(func(r rune) rune { // as browsers do
		if r == '\n' || r == '\r' || r == '\t' {
			return -1
		}
		return r
	}, strings.TrimSpace(s))
	if len(s) > maxLinkBytes || strings.ContainsFunc(s, isControl) {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil { // like browsers, take an invalid percent escape literally
		u, err = url.Parse(strings.ReplaceAll(s, "%", "%25"))
	}
	if err != nil || u.Host == "" || strings.ContainsRune(u.Host, '%') {
		return "", false
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", false
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, " ", "%20"), "\uFFFD"), true
}
