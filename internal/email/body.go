package email

import (
	"strings"
)

// readBody chooses the text and the HTML of a message and lists everything else as attachments.
func (m *Message) readBody(root *node) {
	if other, found := otherText(root); other != nil && !found {
		other.media = "text/plain"
	}
	b := m.bodies(root, false, true, taken{})
	m.Text, m.HTML = strings.Join(b.texts, "\n"), strings.Join(b.htmls, "\n")
}

// otherText finds the first text of a kind of its own (text/markdown, text/enriched), and reports whether there is
// plain text or HTML to read: without it, that one is read as plain text (RFC 2046, section 4.1.4).
func otherText(n *node) (other *node, found bool) {
	for _, child := range n.children {
		first, found := otherText(child)
		if found {
			return nil, true
		}
		if other == nil {
			other = first
		}
	}
	if len(n.children) > 0 || n.disposition == "attachment" {
		return other, false
	}
	switch n.media {
	case "text/plain", "text/html":
		return nil, true
	case "text/calendar", "text/vcard", "text/x-vcard", "text/directory", "text/rfc822-headers": // for programs to read
		return nil, false
	}
	if strings.HasPrefix(n.media, "text/") && n.filename() == "" {
		other = n
	}
	return other, false
}

// bodies are the texts that are shown one below the other.
type bodies struct{ texts, htmls []string }

// taken are the kinds of text that an alternative before has given: another one is not shown.
type taken struct{ text, html bool }

// bodies finds the texts under n and appends its other leaves to the attachments. Everything under a related part is
// inline. A part stands alone where it is no one's neighbour: the message itself, its alternatives and the root of what
// is related.
func (m *Message) bodies(n *node, related, alone bool, before taken) (b bodies) {
	if len(n.children) == 0 {
		return m.leaf(n, related, alone, before)
	}
	switch n.media {
	case "multipart/alternative": // one of each kind
		for _, child := range n.children {
			c := m.bodies(child, related, alone, taken{before.text || len(b.texts) > 0, before.html || len(b.htmls) > 0})
			if len(b.texts) == 0 {
				b.texts = c.texts
			}
			if len(b.htmls) == 0 {
				b.htmls = c.htmls
			}
		}
	case "multipart/related": // RFC 2387: the root is what "start" names, or the first
		root := 0
		for i, child := range n.children {
			if start := trimID(n.params["start"]); start != "" && trimID(child.header.get("Content-ID")) == start {
				root = i
				break
			}
		}
		for i, child := range n.children {
			if i == root {
				b = m.bodies(child, related, alone, before)
				continue
			}
			m.attachAll(child)
		}
	default:
		for _, child := range n.children {
			c := m.bodies(child, related, child.media == "multipart/alternative" || child.media == "multipart/related", before)
			b.texts = append(b.texts, c.texts...)
			b.htmls = append(b.htmls, c.htmls...)
		}
	}
	return b
}

// leaf is a text, or becomes an attachment: what has a name is one, but where it stands alone and is the first of its
// kind the sender only named the text.
func (m *Message) leaf(n *node, related, alone bool, before taken) (b bodies) {
	if n.media == "text/plain" && before.text || n.media == "text/html" && before.html {
		alone = false
	}
	switch {
	case n.disposition == "attachment", n.filename() != "" && !alone:
	case n.media == "text/plain":
		return bodies{texts: []string{n.text(m.fault)}}
	case n.media == "text/html":
		return bodies{htmls: []string{n.text(m.fault)}}
	}
	m.attach(n, related)
	return bodies{}
}

// attachAll makes attachments of all leaves under a part that another part refers to.
func (m *Message) attachAll(n *node) {
	for _, child := range n.children {
		m.attachAll(child)
	}
	if len(n.children) == 0 {
		m.attach(n, true)
	}
}

func (m *Message) attach(n *node, related bool) {
	f := File{
		Index: len(m.files), Filename: n.filename(), ContentType: n.media, Size: sizeTransfer(n.body, n.encoding),
		ContentID: trimID(n.header.get("Content-ID")),
	}
	if n.disposition == "attachment" || n.disposition == "inline" {
		f.Disposition = n.disposition
	}
	f.Inline = f.Disposition == "inline" || f.Disposition == "" && (related || f.ContentID != "")
	if f.Filename == "" {
		f.Filename = fallbackName(f.Index, n.media)
	}
	m.identify(f)
	m.Attachments = append(m.Attachments, f)
	m.files = append(m.files, n)
	if strings.HasPrefix(n.media, "message/") {
		m.reports = append(m.reports, n)
	}
}

// identify remembers an attachment by its content id, unless one before it has the same: an HTML may refer to millions.
func (m *Message) identify(f File) {
	if f.ContentID == "" {
		return
	}
	if m.byID == nil {
		m.byID, m.byLower = map[string]int{}, map[string]int{}
	}
	note := func(ids map[string]int, id string) {
		if _, taken := ids[id]; !taken {
			ids[id] = f.Index
		}
	}
	note(m.byID, f.ContentID)
	note(m.byLower, strings.ToLower(f.ContentID))
}

// filename is the name that a part gives its content, made safe; empty when it gives none.
func (n *node) filename() string {
	name := n.disposed["filename"]
	if name == "" {
		name = n.params["name"]
	}
	return cleanFilename(name)
}

// trimID is a content id without its brackets.
func trimID(id string) string { return strings.Trim(printable(guessUTF8(id)), "<> ") }
