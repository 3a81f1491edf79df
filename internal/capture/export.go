package capture

import (
	"cmp"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/email"
)

// Export writes events in detail form to a file, one by one as they are added. Close completes the file but leaves the
// writer open.
type Export interface {
	// MediaType returns the media type of the file.
	MediaType() string
	Add(e *hookglass.Event) error
	Close() error
}

// NewExport begins a file in the format ndjson, har or csv (spec: decisions, section 6), or mbox. It answers
// validation_failed for any other. detail returns the object for a line of ndjson.
func NewExport(format string, w io.Writer, detail func(*hookglass.Event) any) (Export, error) {
	switch format {
	case "ndjson":
		lines := json.NewEncoder(w)
		lines.SetEscapeHTML(false)
		return &ndjsonExport{lines, detail}, nil
	case "har":
		return &harExport{w: w}, nil
	case "csv":
		return &csvExport{w: csv.NewWriter(w)}, nil
	case "mbox":
		return &mboxExport{w}, nil
	}
	return nil, hookglass.Invalid("format", "must be ndjson, har, csv or mbox")
}

// mboxExport writes a mailbox of raw messages (RFC 4155). It leaves webhooks out.
type mboxExport struct{ w io.Writer }

func (*mboxExport) MediaType() string { return "application/mbox" }

func (x *mboxExport) Add(e *hookglass.Event) error {
	if e.Type != hookglass.EventEmail {
		return nil
	}
	from := ""
	if e.Envelope != nil {
		from = e.Envelope.From
	}
	_, err := x.w.Write(email.AppendMbox(nil, e.Body, from, e.ReceivedAt))
	return err
}

func (*mboxExport) Close() error { return nil }

// ndjsonExport writes one JSON object per line.
type ndjsonExport struct {
	lines  *json.Encoder
	detail func(*hookglass.Event) any
}

func (*ndjsonExport) MediaType() string              { return "application/x-ndjson" }
func (x *ndjsonExport) Add(e *hookglass.Event) error { return x.lines.Encode(x.detail(e)) }
func (*ndjsonExport) Close() error                   { return nil }

// csvExport writes a table with a header line (RFC 4180). Senders control the contents of cells, so cells that a
// spreadsheet would run as formulas are defused.
type csvExport struct {
	w     *csv.Writer
	begun bool
}

var csvColumns = []string{
	"id", "type", "requested_at", "method", "path", "query_string", "url", "status", "content_type", "ip_address", "size", "detected_provider", "event_type",
	"event_id", "delivery_id", "signature_status", "signature_reason", "ignored", "tags", "from", "to", "subject", "body_encoding", "body", "note",
}

func (*csvExport) MediaType() string { return "text/csv; charset=utf-8" }

func (x *csvExport) Add(e *hookglass.Event) error {
	if err := x.begin(); err != nil {
		return err
	}
	status := ""
	if e.Status != 0 {
		status = strconv.Itoa(e.Status)
	}
	body, encoding := bodyText(e.Body)
	ip := e.IP
	if e.Type == hookglass.EventEmail {
		ip = "" // as in lists: it is only a server on the mail's path
	}
	row := []string{
		string(e.ID), string(e.Type), stamp(e.ReceivedAt), e.Method, e.Path, e.RawQuery, e.URL, status, e.ContentType, ip, strconv.FormatInt(e.Size, 10), e.Provider, e.EventType,
		e.EventRef, e.DeliveryID, string(e.SignatureStatus), e.SignatureReason, e.Ignored, strings.Join(e.Tags, ", "), e.From, e.To, e.Subject, cmp.Or(encoding, "utf8"), body, e.Note,
	}
	for i, cell := range row {
		row[i] = harmless(api.Text(cell))
	}
	return x.write(row)
}

func (x *csvExport) Close() error { return x.begin() }

func (x *csvExport) begin() error {
	if x.begun {
		return nil
	}
	x.begun = true
	return x.write(csvColumns)
}

// write flushes each row, because the next one may take a while.
func (x *csvExport) write(row []string) error {
	if err := x.w.Write(row); err != nil {
		return err
	}
	x.w.Flush()
	return x.w.Error()
}

// harmless prefixes an apostrophe to a cell that a spreadsheet would take for a formula (OWASP, "CSV Injection").
func harmless(cell string) string {
	if cell != "" && strings.IndexByte("=+-@\t\r\n", cell[0]) >= 0 {
		return "'" + cell
	}
	return cell
}

// harExport writes an HTTP archive, version 1.2. So that the file has every event, a mail becomes an entry too, with
// the method EMAIL and no response.
type harExport struct {
	w     io.Writer
	begun bool
}

func (*harExport) MediaType() string { return "application/json" }

func (x *harExport) Add(e *hookglass.Event) error {
	entry, err := api.JSON(harEntryOf(e))
	if err != nil {
		return err
	}
	if x.begun {
		_, err = io.WriteString(x.w, ",\n")
	} else {
		err = x.begin()
	}
	if err != nil {
		return err
	}
	_, err = x.w.Write(entry)
	return err
}

func (x *harExport) Close() error {
	if !x.begun {
		if err := x.begin(); err != nil {
			return err
		}
	}
	_, err := io.WriteString(x.w, "\n]}}\n")
	return err
}

func (x *harExport) begin() error {
	x.begun = true
	creator, err := api.JSON(map[string]string{"name": "hookglass", "version": hookglass.Version})
	if err != nil {
		return err
	}
	_, err = io.WriteString(x.w, `{"log":{"version":"1.2","creator":`+string(creator)+`,"entries":[`+"\n")
	return err
}

// The parts of an entry, with the names of HAR 1.2. Sizes that were not measured are -1.
type (
	harEntry struct {
		Started  string      `json:"startedDateTime"`
		Time     float64     `json:"time"` // ms
		Request  harRequest  `json:"request"`
		Response harResponse `json:"response"`
		Cache    struct{}    `json:"cache"`
		Timings  harTimings  `json:"timings"`
		IP       string      `json:"_clientIPAddress,omitempty"`
		ID       string      `json:"_id"`
		Latin1   []string    `json:"_latin1,omitempty"` // as in the detail form: JSON Pointers into the entry
	}
	harRequest struct {
		Method      string    `json:"method"`
		URL         string    `json:"url"`
		Version     string    `json:"httpVersion"`
		Cookies     []harPair `json:"cookies"`
		Headers     []harPair `json:"headers"`
		Query       []harPair `json:"queryString"`
		Body        *harBody  `json:"postData,omitempty"`
		HeadersSize int       `json:"headersSize"`
		BodySize    int64     `json:"bodySize"`
	}
	harBody struct {
		MediaType string `json:"mimeType"`
		Text      string `json:"text"`
		Encoding  string `json:"_encoding,omitempty"` // base64; HAR has no standard field for it here
	}
	harResponse struct {
		Status      int        `json:"status"`
		StatusText  string     `json:"statusText"`
		Version     string     `json:"httpVersion"`
		Cookies     []harPair  `json:"cookies"`
		Headers     []harPair  `json:"headers"`
		Content     harContent `json:"content"`
		Redirect    string     `json:"redirectURL"`
		HeadersSize int        `json:"headersSize"`
		BodySize    int        `json:"bodySize"`
	}
	harContent struct {
		Size      int    `json:"size"`
		MediaType string `json:"mimeType"`
		Text      string `json:"text,omitempty"`
		Encoding  string `json:"encoding,omitempty"`
	}
	harPair struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	harTimings struct {
		Send    float64 `json:"send"`
		Wait    float64 `json:"wait"`
		Receive float64 `json:"receive"`
	}
)

func harEntryOf(e *hookglass.Event) harEntry {
	cookies := cookiesOf(e.Headers)
	entry := harEntry{
		Started: stamp(e.ReceivedAt), IP: e.IP, ID: string(e.ID),
		Request: harRequest{
			Method: e.Method, URL: api.Text(e.URL), Version: e.Proto, Cookies: harPairs(cookies), Headers: harPairs(e.Headers), Query: harQuery(e.RawQuery),
			HeadersSize: -1, BodySize: e.Size,
		},
		Response: harResponse{Cookies: []harPair{}, Headers: []harPair{}, HeadersSize: -1, BodySize: -1, Content: harContent{MediaType: "x-unknown"}},
	}
	if !utf8.ValidString(e.URL) {
		entry.Latin1 = append(entry.Latin1, "/request/url")
	}
	entry.Latin1 = append(entry.Latin1, harLatin1("/request/cookies/", cookies)...)
	entry.Latin1 = append(entry.Latin1, harLatin1("/request/headers/", e.Headers)...)
	if e.Type == hookglass.EventEmail {
		entry.Request.URL = "mailto:" + api.Text(e.Path)
	}
	if len(e.Body) > 0 {
		body := harBody{MediaType: api.Text(e.ContentType)}
		if e.Type == hookglass.EventEmail {
			body.MediaType = "message/rfc822"
		}
		body.Text, body.Encoding = bodyText(e.Body)
		entry.Request.Body = &body
	}
	if r := e.Reply; r != nil {
		wait := float64(r.Delay) / float64(time.Millisecond)
		entry.Time, entry.Timings.Wait = wait, wait
		sent := e.Sent()
		entry.Response.Status, entry.Response.Version, entry.Response.Headers = r.Status, e.Proto, harPairs(sent)
		entry.Latin1 = append(entry.Latin1, harLatin1("/response/headers/", sent)...)
		entry.Response.Redirect, entry.Response.BodySize = api.Text(r.Headers.Get("Location")), len(r.Body)
		entry.Response.Content = harContent{Size: len(r.Body), MediaType: api.Text(r.Headers.Get("Content-Type"))}
		entry.Response.Content.Text, entry.Response.Content.Encoding = bodyText(r.Body)
	}
	return entry
}

// cookiesOf returns the cookies of a request (RFC 6265, section 4.2.1) as they came.
func cookiesOf(headers hookglass.Headers) (cookies hookglass.Headers) {
	for _, h := range headers {
		if !strings.EqualFold(h.Name, "Cookie") {
			continue
		}
		for pair := range strings.SplitSeq(h.Value, ";") {
			if name, value, ok := strings.Cut(strings.TrimSpace(pair), "="); ok {
				cookies = append(cookies, hookglass.Header{Name: name, Value: value})
			}
		}
	}
	return cookies
}

func harPairs(headers hookglass.Headers) []harPair {
	pairs := make([]harPair, len(headers))
	for i, h := range headers {
		pairs[i] = harPair{api.Text(h.Name), api.Text(h.Value)}
	}
	return pairs
}

// harLatin1 returns pointers to the names and values of headers or cookies that are not UTF-8.
func harLatin1(place string, headers hookglass.Headers) (pointers []string) {
	for i, h := range headers {
		if !utf8.ValidString(h.Name) {
			pointers = append(pointers, place+strconv.Itoa(i)+"/name")
		}
		if !utf8.ValidString(h.Value) {
			pointers = append(pointers, place+strconv.Itoa(i)+"/value")
		}
	}
	return pointers
}

func harQuery(raw string) []harPair {
	pairs := []harPair{}
	for name, value := range hookglass.Pairs(raw) {
		pairs = append(pairs, harPair{api.Text(name), api.Text(value)})
	}
	return pairs
}

// bodyText returns a body as text, or in base64 if it is not UTF-8.
func bodyText(body []byte) (text, encoding string) {
	if utf8.Valid(body) {
		return string(body), ""
	}
	return base64.StdEncoding.EncodeToString(body), "base64"
}

func stamp(t time.Time) string { return t.UTC().Format(hookglass.TimeLayout) }
