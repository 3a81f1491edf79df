package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/provider"
)

// The form of the file.
const (
	fileFormat  = "hookglass-bundle"
	fileVersion = 1
	maxFile     = 64 << 20 // bytes that are read
)

// File is a bundle as it is stored: one JSON document.
type File struct {
	Format    string    `json:"format"`
	Version   int       `json:"version"`
	CreatedAt time.Time `json:"created_at"`
	Notice    string    `json:"notice"`
	Events    []Event   `json:"events"`
	Replaced  []Count   `json:"replaced"`
}

// Event is one request of a bundle.
type Event struct {
	Number     int        `json:"number"`
	Type       string     `json:"type"`
	Provider   string     `json:"provider"`
	EventType  string     `json:"event_type,omitempty"`
	EventID    string     `json:"event_id,omitempty"`
	DeliveryID string     `json:"delivery_id,omitempty"`
	ReceivedAt time.Time  `json:"received_at"`
	Head       string     `json:"head"` // request line and header lines as they go over the wire, with the empty line
	HeadSHA256 string     `json:"head_sha256"`
	Body       []byte     `json:"body_base64"`
	BodySHA256 string     `json:"body_sha256"`
	Signature  *Signature `json:"signature"`
	Unsigned   string     `json:"unsigned,omitempty"` // the reason why there is no signature
}

// Signature describes how a request is signed. The secret is public.
type Signature struct {
	Provider string  `json:"provider"`
	Secret   string  `json:"secret"`
	Options  *Scheme `json:"options,omitempty"` // of generic_hmac
}

// Scheme are the options of generic_hmac.
type Scheme struct {
	Header          string `json:"header,omitempty"`
	Algorithm       string `json:"algorithm,omitempty"`
	Encoding        string `json:"encoding,omitempty"`
	Prefix          string `json:"prefix,omitempty"`
	PayloadTemplate string `json:"payload_template,omitempty"`
	TimestampHeader string `json:"timestamp_header,omitempty"`
	TimestampUnit   string `json:"timestamp_unit,omitempty"`
	IDHeader        string `json:"id_header,omitempty"`
	Tolerance       int    `json:"tolerance_seconds,omitempty"`
	SecretEncoding  string `json:"secret_encoding,omitempty"`
}

// Count is one line of the report on replacements.
type Count struct {
	Event   int    `json:"event"`
	Pointer string `json:"pointer"`
	Kind    string `json:"kind"`
	Count   int    `json:"count"`
}

// notice explains the file to whoever opens it.
const notice = "Captured requests in which personal data and secrets were replaced by invented ones. They are signed with a test secret that is public: use it nowhere else."

// File returns the bundle as it is stored.
func (m Made) File(at time.Time) File {
	f := File{Format: fileFormat, Version: fileVersion, CreatedAt: at.UTC(), Notice: notice, Events: m.Events, Replaced: make([]Count, len(m.Replaced))}
	for i, r := range m.Replaced {
		f.Replaced[i] = Count{r.Event, r.Where, string(r.Kind), r.Count}
	}
	return f
}

// Write writes the file.
func (f File) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(f)
}

// Read reads and validates a file. Its error is for the user.
func Read(r io.Reader) (f File, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return f, err
	}
	if len(text) > maxFile {
		return f, hookglass.Errorf(hookglass.CodePayloadTooLarge, "A bundle has 64 MiB at most.")
	}
	if err := json.Unmarshal(text, &f); err != nil || f.Format != fileFormat {
		return f, hookglass.Errorf(hookglass.CodeValidationFailed, "This is no bundle.")
	}
	if f.Version != fileVersion {
		return f, hookglass.Errorf(hookglass.CodeValidationFailed, "This bundle is of version %d, and only %d can be read here.", f.Version, fileVersion)
	}
	for _, e := range f.Events {
		if _, err := e.Request(); err != nil {
			return f, err
		}
		if e.HeadSHA256 != digest([]byte(e.Head)) || e.BodySHA256 != digest(e.Body) {
			return f, hookglass.Errorf(hookglass.CodeValidationFailed, "Request %d of the bundle was changed: its digest does not fit.", e.Number)
		}
	}
	return f, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// write puts a request into the event.
func (e *Event) write(method, target string, headers hookglass.Headers, body []byte) {
	var b bytes.Buffer
	b.WriteString(method + " " + target + " HTTP/1.1\r\n")
	b.Write(headers.AppendWire(nil))
	b.WriteString("\r\n")
	e.Head, e.Body = b.String(), body
	if e.Body == nil {
		e.Body = []byte{}
	}
	e.HeadSHA256, e.BodySHA256 = digest([]byte(e.Head)), digest(e.Body)
}

// describe sets what the edited request announces.
func (e *Event) describe(hint string) {
	r, err := e.received(hint)
	if err != nil {
		return
	}
	d := provider.Detect(r)
	e.EventType, e.EventID, e.DeliveryID = d.EventType, d.EventID, d.DeliveryID
}

// Request returns the request of the event, for the URL that it was signed for.
func (e Event) Request() (o provider.Outgoing, err error) {
	broken := hookglass.Errorf(hookglass.CodeValidationFailed, "Request %d of the bundle is broken.", e.Number)
	line, rest, ok := strings.Cut(e.Head, "\r\n")
	words := strings.Split(line, " ")
	if !ok || len(words) != 3 || words[2] != "HTTP/1.1" || !strings.HasPrefix(words[1], "/") {
		return o, broken
	}
	o = provider.Outgoing{Method: words[0], URL: "https://" + host + words[1], Body: e.Body}
	for line := range strings.SplitSeq(strings.TrimSuffix(rest, "\r\n"), "\r\n") {
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(line, "\r\n\x00") {
			return o, broken
		}
		o.Headers = append(o.Headers, hookglass.Header{Name: name, Value: strings.TrimPrefix(value, " ")})
	}
	return o, nil
}

// Target is the path and query in the request line of a request that Request returned.
func Target(o provider.Outgoing) string { return strings.TrimPrefix(o.URL, "https://"+host) }

// received returns the request as its receiver sees it.
func (e Event) received(hint string) (*provider.Request, error) {
	o, err := e.Request()
	if err != nil {
		return nil, err
	}
	_, query, _ := strings.Cut(Target(o), "?")
	return &provider.Request{
		Method: o.Method, URL: o.URL, RawQuery: query, Headers: o.Headers, Body: o.Body, ReceivedAt: e.ReceivedAt, Hint: hint,
	}, nil
}

// Verify checks the signature of the event as a receiver would have at the time of capture. The status of an unsigned
// event is unchecked.
func (e Event) Verify() (provider.Verdict, error) {
	r, err := e.received(e.Provider)
	if err != nil || e.Signature == nil {
		return provider.Verdict{Status: hookglass.SignatureUnchecked, Message: e.Unsigned}, err
	}
	return provider.Verify(r, provider.Detection{Provider: e.Provider}, []provider.Config{e.Signature.config()}), nil
}

// For returns the request for another URL and another time, signed for both if the event is signed.
func (e Event) For(url string, at time.Time) (provider.Outgoing, error) {
	o, err := e.Request()
	if err != nil {
		return o, err
	}
	o.URL = url
	if e.Signature == nil {
		return o, nil
	}
	c := e.Signature.config()
	return provider.SignAlone(o, provider.Detection{Provider: e.Provider}, []provider.Config{c}, c, at)
}

func newSignature(c provider.Config) *Signature {
	s := &Signature{Provider: c.Provider, Secret: c.Secrets[0]}
	if o := c.Options; c.Provider == provider.GenericHMAC {
		s.Options = &Scheme{o.Header, o.Algorithm, o.Encoding, o.Prefix, o.PayloadTemplate, o.TimestampHeader, o.TimestampUnit, o.IDHeader, o.ToleranceSeconds, o.SecretEncoding}
	}
	return s
}

func (s *Signature) config() provider.Config {
	c := provider.Config{Provider: s.Provider, Secrets: []string{s.Secret}}
	if o := s.Options; o != nil {
		c.Options = hookglass.GenericOptions{
			Header: o.Header, Algorithm: o.Algorithm, Encoding: o.Encoding, Prefix: o.Prefix, PayloadTemplate: o.PayloadTemplate,
			TimestampHeader: o.TimestampHeader, TimestampUnit: o.TimestampUnit, IDHeader: o.IDHeader, ToleranceSeconds: o.Tolerance, SecretEncoding: o.SecretEncoding,
		}
	}
	return c
}
