package hookglass

import (
	"bytes"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// EventType is webhook or email.
type EventType string

// The event types.
const (
	EventWebhook EventType = "webhook"
	EventEmail   EventType = "email"
)

// Methods are those that a webhook endpoint accepts (spec, "Ingress event, list form").
var Methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}

// SignatureStatus is the outcome of a signature check.
type SignatureStatus string

// The signature statuses.
const (
	SignatureVerified  SignatureStatus = "verified"
	SignatureFailed    SignatureStatus = "failed"
	SignatureUnchecked SignatureStatus = "unchecked"
)

// ResponseSource says where the answer to a sender came from.
type ResponseSource string

// The response sources.
const (
	SourceDefault   ResponseSource = "default"
	SourceCustom    ResponseSource = "custom"
	SourceHandshake ResponseSource = "handshake"
	SourceTunnel    ResponseSource = "tunnel"
)

// UnknownProvider is the detected provider of an event that no rule recognised.
const UnknownProvider = "unknown"

// Reply is the exact answer that the sender of a webhook was given, or that of a mail by a script.
type Reply struct {
	Status  int // 0: none was given
	Headers Headers
	Body    []byte // of mail: what stands behind the code
	Source  ResponseSource
	Rule    *ReplyRule    // the rule of the endpoint whose answer it is; nil: none
	Delay   time.Duration // waited before it is sent
	Awaits  *Event        // the event that a local machine is to answer; this reply is sent if it does not. nil: none
}

// ReplyRule is a rule of an endpoint as it was when it answered.
type ReplyRule struct {
	Index int // among the rules, from 0
	When  string
}

// Unanswered reports whether the sender gets no answer: its connection is reset once the delay is over.
func (r *Reply) Unanswered() bool { return r.Status == 0 && r.Source == SourceCustom }

// TimeLayout is how times in UTC are written wherever others read them (spec: decisions, section 3).
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// HTTPDate is the form of a date in UTC in a header (RFC 9110, section 5.6.7).
const HTTPDate = "Mon, 02 Jan 2006 15:04:05 GMT"

// Readable converts bytes from a sender to text. What is not valid UTF-8 is read as Latin-1, which HTTP field values
// once were (RFC 9110, section 5.5), so that every byte stays visible and nothing is replaced.
func Readable(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// Beginning is as much of a text as fits into n bytes, without a part of a character at its end.
func Beginning(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Event is one captured webhook or mail. Text fields hold the bytes as received and may be invalid UTF-8; [Readable]
// converts them to text.
type Event struct {
	Seq         int64 // order of capture in the installation; never shown
	ID          EventID
	EndpointNum int64
	EndpointID  EndpointID
	Type        EventType
	ReceivedAt  time.Time

	Method      string // EMAIL for mail
	Path        string // as received after the endpoint id; the receiving address for mail
	RawQuery    string // without the question mark, as received
	URL         string // the whole URL as the sender used it
	Proto       string // HTTP/1.1, HTTP/1.0, HTTP/2.0
	ContentType string
	IP          string
	Size        int64 // bytes of the body; of the raw message for mail
	Status      int   // of the stored reply to the sender; 0 if there was none, and for mail that no script answered

	Provider        string // detected; UnknownProvider when not recognised
	EventType       string // the provider's; empty when not known
	EventRef        string // the provider's id of the event; empty when not known
	DeliveryID      string // the provider's id of the delivery; empty when not known
	SignatureStatus SignatureStatus
	SignatureReason string // a stable code, when failed
	Ignored         string // the reason; empty: not ignored
	Tags            []string
	Note            string         // written by people; empty: none
	From, To        string         // mail
	Subject         string         // mail
	Authentication  Authentication // mail
	Deliveries      []ForwardState // to forwarding targets; loaded only for queries that ask for them
	Tunnel          ForwardState   // delivered or failed at local machines, empty: not sent to one; loaded like Deliveries
	Failed          int            // deliveries and action runs that ended badly; loaded only where it is shown

	*Payload // nil in the list form
}

// Sent returns the header of the answer to a webhook as it was written: the fields of the reply, then Content-Length
// if the answer has one, then Connection if the sender asked for it. 204 and 304 have no length (RFC 9110, sections
// 15.3.5 and 15.4.5). Neither has the answer to HEAD when the body that GET would get is not known (section 8.6).
func (e *Event) Sent() Headers {
	r := e.Reply
	sent := r.Headers[:len(r.Headers):len(r.Headers)]
	if r.Unanswered() || e.Type == EventEmail {
		return sent
	}
	if r.Status != 204 && r.Status != 304 && !(e.Method == "HEAD" && len(r.Body) == 0) {
		sent = append(sent, Header{Name: "Content-Length", Value: strconv.Itoa(len(r.Body))})
	}
	if option := Persistence(e.Proto, e.Headers.Values("Connection")); option != "" {
		sent = append(sent, Header{Name: "Connection", Value: option})
	}
	return sent
}

// Pairs yields the decoded names and values of a query string or a form in order. Only an ampersand separates pairs
// (WHATWG URL, section 5.1). What a sender encoded wrongly is yielded as it stands, so nothing is lost.
func Pairs(raw string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for pair := range strings.SplitSeq(raw, "&") {
			name, value, _ := strings.Cut(pair, "=")
			if pair != "" && !yield(unescaped(name), unescaped(value)) {
				return
			}
		}
	}
}

// IsForm reports whether a content type says that a body is a form, as [Pairs] reads it.
func IsForm(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded")
}

func unescaped(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}

// Payload is the part of an event that the list form leaves out.
type Payload struct {
	Headers  Headers
	Trailers Headers
	Body     []byte
	Reply    *Reply    // nil for mail that no script answered
	Envelope *Envelope // nil for webhooks
	Verdict  []byte    // of mail: the evidence for Authentication, as JSON; nil while it is pending

	Reports []*DeliveryReport // from connected machines, newest first; loaded only where they are shown
}

// Header is one field line as received.
type Header struct{ Name, Value string }

// IsToken reports whether s is a token in the sense of RFC 9110, section 5.6.2, as methods and field names are.
func IsToken(s string) bool {
	for i := range len(s) {
		switch b := s[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// IsFieldValue reports whether s can be sent as a field value without ending its line: it holds no control characters
// other than tabs (RFC 9110, section 5.5).
func IsFieldValue(s string) bool {
	for i := range len(s) {
		if b := s[i]; b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return true
}

// FramesAnswer reports whether a field of an answer by this name belongs to the connection: only the HTTP server sets
// it.
func FramesAnswer(name string) bool { return named(framing, name) }

// AffectsHost reports whether a field of an answer by this name has an effect on the whole host, which may be that of
// the web app too: no endpoint sets it.
func AffectsHost(name string) bool { return named(ofHost, name) }

var (
	framing = []string{"connection", "content-length", "transfer-encoding", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "date"}
	ofHost  = []string{"set-cookie", "clear-site-data", "service-worker-allowed", "strict-transport-security", "alt-svc", "nel", "report-to"}
)

// named reports whether a list has a name, in any spelling.
func named(list []string, name string) bool {
	return slices.ContainsFunc(list, func(other string) bool { return len(name) == len(other) && strings.EqualFold(name, other) })
}

// Redacted replaces a secret wherever its holder is shown.
const Redacted = "[redacted]"

// Headers are field lines in the order received, spelled as received.
type Headers []Header

// Get returns the first value of the named field, "" when there is none. Names compare without case.
func (h Headers) Get(name string) string {
	for i := range h {
		if len(h[i].Name) == len(name) && strings.EqualFold(h[i].Name, name) {
			return h[i].Value
		}
	}
	return ""
}

// Has reports whether the named field is present.
func (h Headers) Has(name string) bool {
	for i := range h {
		if len(h[i].Name) == len(name) && strings.EqualFold(h[i].Name, name) {
			return true
		}
	}
	return false
}

// Values returns all values of the named field in order.
func (h Headers) Values(name string) []string {
	var values []string
	for i := range h {
		if len(h[i].Name) == len(name) && strings.EqualFold(h[i].Name, name) {
			values = append(values, h[i].Value)
		}
	}
	return values
}

// Persistence returns the value of the Connection field of the answer to a request, given the request's Connection
// fields (RFC 9112, section 9.3). It is "" if the answer needs none: HTTP/1.1 connections persist by default, and
// HTTP/2 has no such field.
func Persistence(proto string, asked []string) string {
	old := proto == "HTTP/1.0"
	if !old && proto != "HTTP/1.1" {
		return ""
	}
	keep := !old
	for _, value := range asked {
		for option := range strings.SplitSeq(value, ",") {
			option = strings.Trim(option, " \t")
			if strings.EqualFold(option, "close") {
				return "close"
			}
			keep = keep || strings.EqualFold(option, "keep-alive")
		}
	}
	switch {
	case !keep:
		return "close"
	case old:
		return "keep-alive"
	}
	return ""
}

// Readable returns the fields as they are shown; see [Readable].
func (h Headers) Readable() Headers {
	foreign := func(f Header) bool { return !utf8.ValidString(f.Name) || !utf8.ValidString(f.Value) }
	if !slices.ContainsFunc(h, foreign) {
		return h
	}
	shown := make(Headers, len(h))
	for i, f := range h {
		shown[i] = Header{Name: Readable(f.Name), Value: Readable(f.Value)}
	}
	return shown
}

// AppendWire appends the fields in the form of HTTP/1.1 ("Name: value" CRLF). Headers are stored in this form: it is
// exact for any bytes, cheap to write, and easy to read.
func (h Headers) AppendWire(dst []byte) []byte {
	for i := range h {
		dst = append(dst, h[i].Name...)
		dst = append(dst, ':', ' ')
		dst = append(dst, h[i].Value...)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

// ParseWire reads what AppendWire wrote. Lines without a colon are dropped.
func ParseWire(wire []byte) Headers {
	h := make(Headers, 0, bytes.Count(wire, []byte("\r\n")))
	s := string(wire)
	for s != "" {
		line, rest, _ := strings.Cut(s, "\r\n")
		if name, value, ok := strings.Cut(line, ":"); ok {
			h = append(h, Header{name, strings.TrimPrefix(value, " ")})
		}
		s = rest
	}
	return h
}

// IgnoreReasons lists the reasons for which an event may be ignored (spec, "Step configurations"). The first is the
// default.
var IgnoreReasons = []string{"noise", "mistake", "resolved", "test"}
