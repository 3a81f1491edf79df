package email

import (
	"cmp"
	"strings"
)

// readBody chooses the text and the HTML of a message and lists everything else as attachments.
func (m *Message) readBody(root *node) {
	if other, found := otherText(root); other != nil && !found {
		other.media = "text/plain"
	}
	b := m.bodies(root, place{alone: true})
	m.Text, m.HTML = strings.Join(b.texts, "\n"), strings.Join(b.htmls, "\n")
}

// otherText finds the first part of another text type (text/markdown, text/enriched), and reports whether there is
// plain text or HTML. Without any, that part is used as plain text (RFC 2046, section 4.1.4).
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

// bodies are the texts that are displayed one below the other.
type bodies struct{ texts, htmls []string }

// place is the position of a part among the others of its message.
type place struct {
	// alone: the part has no siblings. It is the message itself, one of its alternatives, or the root of related parts.
	alone bool
	// textTaken and htmlTaken: an earlier alternative has given a text of that kind. A second one is not displayed.
	textTaken, htmlTaken bool
}

// behind returns the place of an alternative that follows others, which have given the texts of b.
func (p place) behind(b bodies) place {
	p.textTaken = p.textTaken || len(b.texts) > 0
	p.htmlTaken = p.htmlTaken || len(b.htmls) > 0
	return p
}

// among returns the place of a part with siblings: only multiparts of alternatives or related parts are still read as
// if alone.
func (p place) among(part *node) place {
	p.alone = part.media == "multipart/alternative" || part.media == "multipart/related"
	return p
}

// bodies finds the texts under n at a place, and appends the other leaves to the attachments.
func (m *Message) bodies(n *node, at place) (b bodies) {
	if len(n.children) == 0 {
		return m.leaf(n, at)
	}
	switch n.media {
	case "multipart/alternative": // one of each kind
		for _, child := range n.children {
			c := m.bodies(child, at.behind(b))
			if len(b.texts) == 0 {
				b.texts = c.texts
			}
			if len(b.htmls) == 0 {
				b.htmls = c.htmls
			}
		}
	case "multipart/related":
		root := n.relatedRoot()
		for _, child := range n.children {
			if child == root {
				b = m.bodies(child, at)
				continue
			}
			m.attachAll(child)
		}
	default:
		for _, child := range n.children {
			c := m.bodies(child, at.among(child))
			b.texts = append(b.texts, c.texts...)
			b.htmls = append(b.htmls, c.htmls...)
		}
	}
	return b
}

// relatedRoot returns the root of a multipart/related: the part that the parameter "start" names, or else the first
// (RFC 2387, section 3.2).
func (n *node) relatedRoot() *node {
	if start := trimID(n.params["start"]); start != "" {
		for _, child := range n.children {
			if trimID(child.header.get("Content-ID")) == start {
				return child
			}
		}
	}
	return n.children[0]
}

// leaf handles a leaf: a text to display, or an attachment. A text with a file name is an attachment, unless it stands
// alone and is the first of its kind: then the sender has merely named the text.
func (m *Message) leaf(n *node, at place) (b bodies) {
	alone := at.alone
	if n.media == "text/plain" && at.textTaken || n.media == "text/html" && at.htmlTaken {
		alone = false
	}
	switch {
	case n.disposition == "attachment", n.filename() != "" && !alone:
	case n.media == "text/plain":
		return bodies{texts: []string{n.text(m.fault)}}
	case n.media == "text/html":
		return bodies{htmls: []string{n.text(m.fault)}}
	}
	m.attach(n, false)
	return bodies{}
}

// attachAll attaches all leaves under n, which belong to the root of a multipart/related.
func (m *Message) attachAll(n *node) {
	for _, child := range n.children {
		m.attachAll(child)
	}
	if len(n.children) == 0 {
		m.attach(n, true)
	}
}

// attach appends a leaf to the attachments. One that is related to another part is inline, unless its own disposition
// says otherwise.
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

// identify indexes an attachment by its content id, unless an earlier one has the same. HTML may refer to it millions
// of times.
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

// filename returns the name that a part gives its content, made safe; empty if there is none.
func (n *node) filename() string {
	return cleanFilename(cmp.Or(n.disposed["filename"], n.params["name"]))
}

// trimID returns a content id without its brackets.
func trimID(id string) string { return strings.Trim(printable(guessUTF8(id)), "<> ") }
