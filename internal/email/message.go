// Package email parses a mail into what people and programs need: headers, bodies, attachments, the sender and its
// authentication, the kind of mail, and the links and codes in it. It hides MIME and the many ways in which senders
// violate it.
//
// Parsing never fails: what cannot be read is marked by a Fault, and the raw message remains the truth. Everything is
// bounded, and pure except for the Resolver passed to Authenticate. A Message is safe for concurrent reading.
package email

import (
	"slices"
	"strings"

	"golang.org/x/net/html/charset"

	"hookglass"
)

// Fault is something wrong with a message, as a stable word.
type Fault string

// The faults.
const (
	NoHeader        Fault = "no_header"              // no header at all: the whole message is its text
	MalformedHeader Fault = "malformed_header"       // a line that is not a field ended the header
	HeaderTruncated Fault = "header_truncated"       // fields beyond the bound were skipped
	TooDeep         Fault = "too_deep"               // parts nested beyond the bound are one attachment
	TooManyParts    Fault = "too_many_parts"         // parts beyond the bound are skipped, or one attachment
	MissingBoundary Fault = "missing_boundary"       // a multipart without parts, read as text
	Unterminated    Fault = "unterminated_multipart" // a multipart whose end is missing
	UnknownEncoding Fault = "unknown_encoding"       // unknown transfer encoding: the bytes are as sent
	BadEncoding     Fault = "bad_encoding"           // invalid base64 or quoted-printable, decoded as far as possible
	UnknownCharset  Fault = "unknown_charset"        // unknown charset: the text was guessed
)

// Message is a parsed mail. All text is valid UTF-8 and free of NUL; header values are single lines.
type Message struct {
	Headers   hookglass.Headers // decoded values, in the order and spelling of the message
	From      string            // the addresses, joined by ", " (spec: decisions, section 14)
	To        string
	Cc        string
	ReplyTo   string
	Subject   string
	Date      string // as written
	MessageID string // with its angle brackets
	Text      string // the plain text, lines ended by \n; empty when there is none
	HTML      string // the HTML, not sanitised; empty when there is none

	Attachments []File
	Faults      []Fault // each once, in the order met

	Senders []Address // of From

	media   string // of the message itself
	params  map[string]string
	files   []*node
	byID    map[string]int // the first attachment of a content id as it is written
	byLower map[string]int // and in small letters
	reports []*node        // parts of type message/*, such as delivery reports
}

// File describes an attachment.
type File struct {
	Index       int    `json:"index"`        // counted from 0, in the order of the message
	Filename    string `json:"filename"`     // safe to offer for a download; never empty
	ContentType string `json:"content_type"` // type/subtype in lower case
	Size        int64  `json:"size"`         // bytes, decoded
	ContentID   string `json:"content_id"`   // without angle brackets; empty when there is none
	Inline      bool   `json:"inline"`       // shown within the HTML rather than beside it
	Disposition string `json:"disposition"`  // attachment, inline or empty, as sent
}

// Parse parses a message. It never fails, and takes time and memory in proportion to the message's size. The Message
// refers to raw, which must not change.
func Parse(raw []byte) *Message {
	m := &Message{}
	t := &tree{fault: m.fault}
	root := &node{}
	var at int
	root.header, at = scanHeader(raw, maxHeaderBytes, m.fault)
	root.body = raw[at:]
	if len(root.header) == 0 {
		m.fault(NoHeader)
	}
	m.readHeader(root.header)
	t.describe(root, "text/plain")
	t.grow(root, 0)
	m.media, m.params = root.media, root.params
	m.readBody(root)
	return m
}

func (m *Message) fault(f Fault) {
	if !slices.Contains(m.Faults, f) {
		m.Faults = append(m.Faults, f)
	}
}

func (m *Message) readHeader(h block) {
	m.Headers = make(hookglass.Headers, len(h))
	var to, cc, replyTo []Address
	for i, f := range h {
		m.Headers[i] = hookglass.Header{Name: f.name, Value: decodeText(f.value, m.fault)}
		switch strings.ToLower(f.name) {
		case "from":
			m.Senders = append(m.Senders, parseAddresses(f.value, m.fault)...)
		case "to":
			to = append(to, parseAddresses(f.value, m.fault)...)
		case "cc":
			cc = append(cc, parseAddresses(f.value, m.fault)...)
		case "reply-to":
			replyTo = append(replyTo, parseAddresses(f.value, m.fault)...)
		}
	}
	m.From, m.To, m.Cc, m.ReplyTo = joinAddresses(m.Senders), joinAddresses(to), joinAddresses(cc), joinAddresses(replyTo)
	m.Subject = m.Headers.Get("Subject")
	m.Date = m.Headers.Get("Date")
	m.MessageID = m.Headers.Get("Message-ID")
}

// HeaderObject returns the headers by name, in the spelling of the first occurrence; repeated values are joined by ",
// ".
func (m *Message) HeaderObject() map[string]string {
	object := make(map[string]string, len(m.Headers))
	spelling := make(map[string]string, len(m.Headers)) // by lower-case name
	for _, h := range m.Headers {
		lower := strings.ToLower(h.Name)
		if name, repeated := spelling[lower]; repeated {
			object[name] += ", " + h.Value
			continue
		}
		spelling[lower] = h.Name
		object[h.Name] = h.Value
	}
	return object
}

// Content returns the decoded bytes of the nth attachment, or not_found.
func (m *Message) Content(n int) ([]byte, error) {
	if n < 0 || n >= len(m.files) {
		return nil, hookglass.NotFound("attachment")
	}
	f := m.files[n]
	return decodeTransfer(make([]byte, 0, m.Attachments[n].Size), f.body, f.encoding, func(Fault) {}), nil
}

// Attachment returns the decoded bytes and the description of a raw message's nth attachment, or not_found.
func Attachment(raw []byte, n int) ([]byte, File, error) {
	m := Parse(raw)
	content, err := m.Content(n)
	if err != nil {
		return nil, File{}, err
	}
	return content, m.Attachments[n], nil
}

// InlineByCID returns the attachment that a cid: reference in the HTML names (RFC 2392), with or without scheme and
// angle brackets.
func (m *Message) InlineByCID(cid string) (File, bool) {
	if len(cid) >= 4 && strings.EqualFold(cid[:4], "cid:") {
		cid = unescape(cid[4:])
	}
	if cid = trimID(cid); cid == "" {
		return File{}, false
	}
	i, ok := m.byID[cid]
	if !ok {
		if i, ok = m.byLower[strings.ToLower(cid)]; !ok {
			return File{}, false
		}
	}
	return m.Attachments[i], true
}

// text returns the decoded text of a leaf.
func (n *node) text(fault func(Fault)) string {
	content := decodeTransfer(nil, n.body, n.encoding, fault)
	name := n.params["charset"]
	if name == "" && n.media == "text/html" {
		if _, found, certain := charset.DetermineEncoding(content, ""); certain || found != "windows-1252" {
			name = found // of a byte order mark or a meta element
		}
	}
	text, known := toUTF8(content, name)
	if !known {
		fault(UnknownCharset)
	}
	text = strings.TrimPrefix(text, "\uFEFF")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return n.unflow(strings.ReplaceAll(text, "\x00", "\uFFFD"))
}
