package api

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"hookglass"
)

// Event is a captured webhook or mail in the list form.
type Event struct {
	ID                string             `json:"id" doc:"Prefix req_ for webhooks, eml_ for mail; wr_ is accepted for req_." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	EndpointID        string             `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Type              string             `json:"type" enum:"webhook,email" example:"webhook"`
	Method            string             `json:"method" enum:"GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS,EMAIL" doc:"EMAIL for mail." example:"POST"`
	Path              string             `json:"path" doc:"What followed the endpoint in the request path, as received; the receiving address for mail." example:"/orders"`
	Status            *int               `json:"status" doc:"What the sender was answered; null for mail." example:"200"`
	ContentType       *string            `json:"content_type" example:"application/json"`
	IPAddress         *string            `json:"ip_address" doc:"The sender's; null for mail." example:"203.0.113.7"`
	Size              int64              `json:"size" doc:"Bytes of the body; of the raw message for mail." example:"512"`
	RequestedAt       Time               `json:"requested_at" example:"2026-11-20T10:15:30.123456Z"`
	DetectedProvider  string             `json:"detected_provider" doc:"A provider's id, or unknown." example:"stripe"`
	ProviderEventData *ProviderEventData `json:"provider_event_data,omitempty" doc:"Of mail: the service's own word for what happened or the kind of mail, and the Message-ID."`
	SignatureStatus   string             `json:"signature_status" enum:"verified,failed,unchecked" example:"verified"`
	SignatureReason   *string            `json:"signature_reason" doc:"Why a check failed; null unless it did."`
	Tags              []string           `json:"tags" example:"[\"billing\"]"`
	Note              *string            `json:"note" doc:"What people wrote on it; null where nobody did." example:"The customer asked about this one."`
	Ignored           bool               `json:"ignored" example:"false"`
	IgnoredReason     *string            `json:"ignored_reason" enum:"noise,mistake,resolved,test" doc:"Null where it is not ignored."`
	From              *string            `json:"from,omitempty" doc:"Mail only."`
	To                *string            `json:"to,omitempty" doc:"Mail only."`
	Subject           *string            `json:"subject,omitempty" doc:"Mail only."`
	Authentication    *Authentication    `json:"authentication,omitempty" doc:"Mail only."`
}

// ProviderEventData is what a provider says about its own event.
type ProviderEventData struct {
	EventType  *string `json:"event_type" example:"invoice.paid"`
	EventID    *string `json:"event_id" example:"evt_1PqE"`
	DeliveryID *string `json:"delivery_id" example:"72d3162e-cc78-11e3-81ab-4c9367dc0958"`
}

// EventDetail is a captured event with the complete request and answer.
type EventDetail struct {
	Event
	URL             string            `json:"url" doc:"The whole URL as the sender used it." example:"https://hooks.example.com/hooks/ep_7c1v9k2m4n6p8q0r2s4t6v8w0y/orders?page=2"`
	Protocol        string            `json:"protocol" example:"HTTP/1.1"`
	Headers         map[string]string `json:"headers" doc:"Repeated fields are joined by a comma and a space; header_list has them one by one." example:"{\"Content-Type\":\"application/json\"}"`
	HeaderList      [][2]string       `json:"header_list" doc:"Names and values in the order and spelling received." example:"[[\"Content-Type\",\"application/json\"]]"`
	TrailerList     [][2]string       `json:"trailer_list" doc:"Trailer fields of a chunked body." example:"[]"`
	QueryString     string            `json:"query_string" doc:"As received, without the question mark." example:"page=2"`
	Latin1          []string          `json:"latin1,omitempty" doc:"JSON Pointers to strings of url, path, query_string, header_list, trailer_list and response_header_list that are bytes which are not UTF-8: each of their characters is one byte. Absent where all are UTF-8." example:"[\"/header_list/2/1\"]"`
	QueryParameters map[string]any    `json:"query_parameters" doc:"Strings, or arrays of strings where a name is repeated." example:"{\"page\":\"2\"}"`
	QueryParams     map[string]string `json:"query_params" doc:"The same as strings, for older clients; repeated values are joined by a comma and a space." example:"{\"page\":\"2\"}"`
	Body            *string           `json:"body" doc:"The body, or the raw message of mail. In base64 where it is not UTF-8; see body_encoding." example:"{\"amount\":100}"`
	BodyEncoding    string            `json:"body_encoding" enum:"utf8,base64" example:"utf8"`
	BodyParts       []BodyPart        `json:"body_parts,omitempty" doc:"The parts of a multipart body, as a form with files; each is at …/parts/{index}. 100 at most."`
	SourceIP        *string           `json:"source_ip" doc:"The same as ip_address, for older clients." example:"203.0.113.7"`
	ReceivedAt      Time              `json:"received_at" doc:"The same as requested_at, for older clients." example:"2026-11-20T10:15:30.123456Z"`

	ProviderAction string  `json:"provider_action,omitempty" doc:"What was done, where the provider says it beside the event type, as GitHub does." example:"opened"`
	Relay          *string `json:"relay,omitempty" doc:"What carried it for detected_provider: a mail service, or a gateway or tunnel; empty where none was recognised." example:"sendgrid"`
	InnerProvider  string  `json:"inner_provider,omitempty" doc:"Where detected_provider wraps what others send: whose it is." example:"aws_ses"`
	Flavour        string  `json:"flavour,omitempty" doc:"The variant of detected_provider, or the envelope of its delivery, where there are several." example:"forgejo"`

	ResponseStatusSent       *int              `json:"response_status_sent,omitempty" doc:"As what follows: the answer that the sender was given. Of mail only where a response_script answered it: the code of SMTP." example:"200"`
	ResponseHeadersSent      map[string]string `json:"response_headers_sent,omitempty" doc:"As they were on the wire." example:"{\"Content-Type\":\"application/json\"}"`
	ResponseHeaderList       [][2]string       `json:"response_header_list,omitempty" example:"[[\"Content-Type\",\"application/json\"]]"`
	ResponseBodySent         *string           `json:"response_body_sent,omitempty" doc:"In base64 where it is not UTF-8; see response_body_encoding. Of mail: what stood behind the code." example:"{\"received\":true}"`
	ResponseBodySentEncoding string            `json:"response_body_encoding,omitempty" enum:"utf8,base64" example:"utf8"`
	ResponseSource           string            `json:"response_source,omitempty" enum:"default,custom,handshake,tunnel" example:"default"`
	ResponseRule             *ReplyRule        `json:"response_rule,omitempty" doc:"The rule of the endpoint that answered, as it was then; absent where none did."`
	ResponseDelayMS          *int64            `json:"response_delay_ms,omitempty" doc:"Milliseconds waited before the answer." example:"0"`

	Deliveries []TunnelDelivery `json:"deliveries" doc:"What connected local machines made of it, newest first, 50 at most." example:"[]"`

	MailDetail
}

// BodyPart describes a part of a multipart body.
type BodyPart struct {
	Index       int    `json:"index" doc:"Counted from 0: its place in …/parts/{index}." example:"0"`
	Name        string `json:"name" doc:"Of the form's field; empty where it has none." example:"avatar"`
	Filename    string `json:"filename" doc:"Its last element, where it is a path; empty where it has none." example:"cat.png"`
	ContentType string `json:"content_type" doc:"As sent; empty where it has none." example:"image/png"`
	Size        int64  `json:"size" doc:"Bytes." example:"48213"`
	SHA256      string `json:"sha256" doc:"Of the bytes, in hexadecimal." example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
}

// EventList is the answer of GET /endpoints/{id}/requests.
type EventList struct {
	Data []Event  `json:"data"`
	Meta EventsOf `json:"meta"`
}

// EventsOf describes which part of the events a list shows.
type EventsOf struct {
	Total      int64   `json:"total" doc:"How many events the filters select, or at least select, see total_exact." example:"42"`
	TotalExact bool    `json:"total_exact" doc:"total is all of them. False where a search among very many events was still counting after half a second." example:"true"`
	Limit      int     `json:"limit" example:"25"`
	Offset     int64   `json:"offset" example:"0"`
	NextCursor *string `json:"next_cursor" doc:"Give it as cursor to get what follows; null at the end." example:"Y3Vyc29y"`
	Advice     string  `json:"advice,omitempty" doc:"Where q selects nothing: what may be wrong with it, in a sentence for people; absent where nothing seems to be." example:"AND, OR and NOT are searched for as words."`
}

// DeletedEvents is the answer of destroy_all.
type DeletedEvents struct {
	Deleted int64 `json:"deleted" doc:"How many." example:"42"`
}

// EventTags are the tags of one event.
type EventTags struct {
	Tags []string `json:"tags" example:"[\"billing\"]"`
}

// NoteEvent is the body of PUT …/note.
type NoteEvent struct {
	_    struct{}         `additionalProperties:"false"`
	Note Optional[string] `json:"note" maxLength:"2000" null:"true" doc:"Up to 2,000 characters; null takes the note off." example:"The customer asked about this one."`
}

// IgnoreEvent is the body of POST …/ignore.
type IgnoreEvent struct {
	_      struct{}         `additionalProperties:"false"`
	Reason Optional[string] `json:"reason,omitzero" enum:"noise,mistake,resolved,test" doc:"Default noise." example:"noise"`
}

// FromEvent converts an event in the list form.
func FromEvent(e *hookglass.Event) Event {
	out := Event{
		ID: string(e.ID), EndpointID: string(e.EndpointID), Type: string(e.Type), Method: e.Method, Path: Text(e.Path),
		ContentType: textOrNil(e.ContentType), IPAddress: nonzero(e.IP), Size: e.Size, RequestedAt: Time{e.ReceivedAt},
		DetectedProvider: e.Provider, SignatureStatus: string(e.SignatureStatus), SignatureReason: nonzero(e.SignatureReason),
		Tags: e.Tags, Note: nonzero(e.Note), Ignored: e.Ignored != "", IgnoredReason: nonzero(e.Ignored),
	}
	if out.Tags == nil {
		out.Tags = []string{}
	}
	if e.Type == hookglass.EventEmail {
		from, to, subject := Text(e.From), Text(e.To), Text(e.Subject)
		out.From, out.To, out.Subject, out.Authentication = &from, &to, &subject, authenticationOf(e.Authentication)
		out.ContentType, out.IPAddress = nil, nil
	} else {
		out.Status = nonzero(e.Status)
	}
	out.ProviderEventData = &ProviderEventData{
		EventType: textOrNil(e.EventType), EventID: textOrNil(e.EventRef), DeliveryID: textOrNil(e.DeliveryID),
	}
	return out
}

// FromEventDetail converts an event with its payload.
func FromEventDetail(e *hookglass.Event) EventDetail {
	out := EventDetail{
		Event: FromEvent(e), URL: Text(e.URL), Protocol: e.Proto, QueryString: Text(e.RawQuery),
		SourceIP: nonzero(e.IP), ReceivedAt: Time{e.ReceivedAt}, BodyEncoding: "utf8",
		Headers: map[string]string{}, HeaderList: [][2]string{}, TrailerList: [][2]string{}, Deliveries: []TunnelDelivery{},
	}
	out.QueryParameters, out.QueryParams = queryOf(e.RawQuery)
	out.Latin1 = latin1Of(nil, "url", e.URL, "path", e.Path, "query_string", e.RawQuery)
	if e.Payload == nil {
		return out
	}
	for _, r := range e.Reports {
		out.Deliveries = append(out.Deliveries, fromDeliveryReport(r))
	}
	out.Headers, out.HeaderList = headersOf(e.Headers)
	_, out.TrailerList = headersOf(e.Trailers)
	out.Latin1 = append(append(out.Latin1, latin1In(headerList, e.Headers)...), latin1In(trailerList, e.Trailers)...)
	if e.Type == hookglass.EventEmail {
		out.MailDetail, out.SourceIP = mailOf(e), nil
	}
	body, encoding := Body(e.Body)
	out.Body, out.BodyEncoding = &body, encoding
	if r := e.Reply; r != nil {
		out.ResponseDelayMS, out.ResponseSource = new(r.Delay.Milliseconds()), string(r.Source)
	}
	if r := e.Reply; r != nil && !r.Unanswered() {
		sent := e.Sent()
		out.ResponseHeadersSent, out.ResponseHeaderList = headersOf(sent)
		out.Latin1 = append(out.Latin1, latin1In(responseHeaderList, sent)...)
		body, encoding := Body(r.Body)
		out.ResponseBodySent, out.ResponseBodySentEncoding = &body, encoding
		out.ResponseStatusSent, out.ResponseRule = &r.Status, FromReplyRule(r.Rule)
	}
	return out
}

func textOrNil(s string) *string { return nonzero(Text(s)) }

// headersOf returns header fields as an object, under the first spelling of each name, and as a list in their order.
func headersOf(headers hookglass.Headers) (map[string]string, [][2]string) {
	object := make(map[string]string, len(headers))
	spelling := make(map[string]string, len(headers))
	list := make([][2]string, 0, len(headers))
	for _, h := range headers {
		name, value := Text(h.Name), Text(h.Value)
		list = append(list, [2]string{name, value})
		key, repeated := spelling[strings.ToLower(name)]
		if repeated {
			object[key] += ", " + value
			continue
		}
		spelling[strings.ToLower(name)] = name
		object[name] = value
	}
	return object, list
}

// Body returns a body as text, or in base64 if it is not UTF-8, and the encoding.
func Body(b []byte) (body, encoding string) {
	if utf8.Valid(b) {
		return string(b), "utf8"
	}
	return base64.StdEncoding.EncodeToString(b), "base64"
}

// queryOf parses a query string like a form.
func queryOf(raw string) (parameters map[string]any, joined map[string]string) {
	values := map[string][]string{}
	for name, value := range hookglass.Pairs(raw) {
		name = Text(name)
		values[name] = append(values[name], Text(value))
	}
	parameters, joined = make(map[string]any, len(values)), make(map[string]string, len(values))
	for name, all := range values {
		parameters[name], joined[name] = all, strings.Join(all, ", ")
		if len(all) == 1 {
			parameters[name] = all[0]
		}
	}
	return parameters, joined
}
