package rest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
	"hookglass/internal/email"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// Embedded structs have exported names, because the framework ignores others.
type (
	// InEndpoint is the path of what lies in an endpoint.
	InEndpoint struct {
		EndpointID string `path:"endpoint_id" doc:"The endpoint's id or custom id." example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	}

	// EventPath is the path of one event.
	EventPath struct {
		InEndpoint
		ID string `path:"id" doc:"The event's id: req_…, eml_…, or wr_… for req_…." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	}

	// attachmentPath is the path of an attachment.
	attachmentPath struct {
		EventPath
		Index int64 `path:"index" doc:"Its index in attachment_metadata, counted from 0." example:"0"`
	}

	// partPath is the path of a part of a multipart body.
	partPath struct {
		EventPath
		Index int64 `path:"index" doc:"Its index in body_parts, counted from 0." example:"0"`
	}

	// EventFilter are the filters of lists, exports and streams. The query package defines their meaning.
	EventFilter struct {
		Type            string `query:"type" words:"webhook,email" doc:"webhook or email." example:"webhook"`
		Method          string `query:"method" words:"GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS,EMAIL" doc:"An HTTP method, or EMAIL." example:"POST"`
		Provider        string `query:"provider" longest:"1000" doc:"The detected provider; * stands for any characters." example:"stripe"`
		EventType       string `query:"event_type" longest:"1000" doc:"The provider's event type; * stands for any characters." example:"invoice.*"`
		SignatureStatus string `query:"signature_status" words:"verified,failed,unchecked" doc:"verified, failed or unchecked." example:"verified"`
		Status          string `query:"status" form:"^[1-5](xx|[0-9]{2})$" doc:"What the sender was answered: a status, or a class as 4xx." example:"200"`
		Tag             string `query:"tag" longest:"1000" doc:"A tag that the event has." example:"billing"`
		ContentType     string `query:"content_type" longest:"1000" doc:"The media type, or a part of it." example:"application/json"`
		Before          string `query:"before" longest:"1000" doc:"Received before this time: ISO 8601 (UTC where it names no offset), or a duration as 2h that counts back from now." example:"2026-11-20T12:00:00Z"`
		After           string `query:"after" longest:"1000" doc:"Received after this time." example:"2026-11-20T10:00:00Z"`
		Ignored         string `query:"ignored" words:"false,true,any" doc:"false, which is the default, true or any." example:"any"`
		Q               string `query:"q" longest:"1000" doc:"A search: free text in path, headers, body, subject, from and to, and terms as provider:stripe, sig:failed, header.x-a:b or body./data/id:in_1; - before a term negates it." example:"invoice -tag:noise"`
	}
)

func (f EventFilter) query(now time.Time) (query.Query, error) {
	return query.Filter{
		Type: f.Type, Method: f.Method, Provider: f.Provider, EventType: f.EventType, SignatureStatus: f.SignatureStatus,
		Status: f.Status, Tag: f.Tag, ContentType: f.ContentType, Before: plus(f.Before), After: plus(f.After), Ignored: f.Ignored, Q: f.Q,
	}.Parse(now)
}

// plus repairs a time whose offset, +02:00, was sent without escaping: in a query a plus is a space.
func plus(s string) string {
	if i := strings.LastIndexByte(s, ' '); i > len(time.DateOnly) {
		return s[:i] + "+" + s[i+1:]
	}
	return s
}

// moment parses a time, or a duration back from now; "" is the zero time.
func moment(field, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	at, err := query.ParseTime(plus(s), now)
	if err != nil {
		return at, hookglass.Invalid(field, "must be an ISO 8601 date and time, or a duration as 2h")
	}
	return at, nil
}

// bounds parses the before and after parameters.
func (s *service) bounds(before, after string) (b, a time.Time, err error) {
	now := s.DB.Now()
	b, wrong := moment("before", before, now)
	a, err = moment("after", after, now)
	return b, a, together(wrong, err)
}

// together combines the errors of two parameters.
func together(one, other error) error {
	var e *hookglass.Error
	if other == nil || !errors.As(one, &e) {
		return errors.Join(one, other)
	}
	return hookglass.Refusal(e.Details, other)
}

type eventList struct {
	InEndpoint
	EventFilter
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"25" doc:"How many at most." example:"25"`
	Offset int64  `query:"offset" minimum:"0" default:"0" doc:"How many of the newest to pass over; a cursor is cheaper." example:"0"`
	Cursor string `query:"cursor" doc:"The next_cursor of the answer before."`
}

type eventRange struct {
	InEndpoint
	Before string `query:"before" doc:"Only what was received before this time, ISO 8601." example:"2026-11-20T12:00:00Z"`
	After  string `query:"after" doc:"Only what was received after this time, ISO 8601." example:"2026-11-20T10:00:00Z"`
}

// Resolve refuses a bound without a time or given twice: if a script's variable is empty, it does not mean everything.
func (in *eventRange) Resolve(hc huma.Context) []error { return bounded(hc) }

func bounded(hc huma.Context) (faults []error) {
	url := hc.URL()
	query := url.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if values := query[name]; len(values) > 1 || values[0] == "" {
			faults = append(faults, &huma.ErrorDetail{Location: "query." + name, Message: "must be given once, with a time, or not at all"})
		}
	}
	return faults
}

func (s *service) requests(t *table) {
	const tag, base = "Requests", "/endpoints/{endpoint_id}/requests"
	read := access{scope: hookglass.ScopeRead, key: true}
	remove := access{scope: hookglass.ScopeWrite, key: true}
	handle(t, operation{
		id: "list-requests", method: http.MethodGet, path: base, tag: tag, summary: "List captured events", access: read,
		text: "Newest first. All filters must hold.",
	}, s.listRequests)
	handleWritten[EventPath, api.One[api.EventDetail]](t, operation{
		id: "get-request", method: http.MethodGet, path: base + "/{id}", tag: tag, summary: "Read a captured event", access: read,
		text: "With everything that was received and the exact answer that the sender was given.",
	}, s.getRequest)
	handleRaw(t, operation{
		id: "get-request-body", method: http.MethodGet, path: base + "/{id}/body", tag: tag, summary: "Download a body", access: read, file: true,
		text: "The bytes as received; of mail, the raw message.",
	}, []string{"application/octet-stream", "message/rfc822"}, s.getRequestBody)
	handleRaw(t, operation{
		id: "get-request-raw", method: http.MethodGet, path: base + "/{id}/raw", tag: tag, summary: "Download a raw message", access: read, file: true,
		text: "The same as the body: of mail, the message byte for byte as it was received, as an .eml file.",
	}, []string{"application/octet-stream", "message/rfc822"}, s.getRequestBody)
	handleRaw(t, operation{
		id: "get-request-attachment", method: http.MethodGet, path: base + "/{id}/attachments/{index}", tag: tag, summary: "Download an attachment", access: read, file: true,
		text: "Decoded, as a file to be kept, of the type that its sender gave it. attachment_metadata of the detail form lists what there is, inline images included.",
	}, []string{"*/*"}, s.getAttachment)
	handleRaw(t, operation{
		id: "get-request-part", method: http.MethodGet, path: base + "/{id}/parts/{index}", tag: tag, summary: "Download a part of a multipart body", access: read, file: true,
		text: "A field or file of a form as it was sent, as a file to be kept. body_parts of the detail form lists what there is. What came compressed is decompressed, up to 8 MiB.",
	}, []string{"*/*"}, s.getPart)
	handle(t, operation{
		id: "delete-request", method: http.MethodDelete, path: base + "/{id}", tag: tag, summary: "Delete a captured event", access: remove,
		text: "For good, with its replays, deliveries and runs of actions. Replay cases made from it stay and can run. 404 where it is gone already.",
	}, s.deleteRequest)
	handle(t, operation{
		id: "delete-requests", method: http.MethodDelete, path: base + "/destroy_all", tag: tag, summary: "Delete captured events", access: remove,
		text:   "All of the endpoint, or those received before and after the times given. Unknown parameters are refused, and so is a body, whose bounds would be passed over.",
		strict: true, empty: true, errors: []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge},
	}, s.deleteRequests)
}

func (s *service) listRequests(ctx context.Context, in *eventList) (out api.EventList, err error) {
	q, err := in.query(s.DB.Now())
	if err != nil {
		return out, err
	}
	before, err := ofEvents.Place(in.Cursor)
	if err != nil {
		return out, err
	}
	err = s.view(ctx, func(v *store.View) error {
		page, err := v.Events(in.EndpointID, store.EventList{Query: q, Limit: in.Limit, Offset: in.Offset, Before: before, Total: true})
		if err != nil {
			return err
		}
		out.Data = make([]api.Event, len(page.Events))
		for i, e := range page.Events {
			out.Data[i] = api.FromEvent(e)
		}
		out.Meta = api.EventsOf{Total: page.Total, TotalExact: page.Exact, Limit: in.Limit, Offset: in.Offset}
		if page.Total == 0 && page.Exact {
			out.Meta.Advice = query.Advice(in.Q)
		}
		if page.Next > 0 {
			out.Meta.NextCursor = ofEvents.Cursor(page.Next)
		}
		return nil
	})
	return out, err
}

// held reads an event with its payload for an answer, see [capture.Service.Hold].
func (s *service) held(ctx context.Context, in *EventPath, times int64) (*hookglass.Event, error) {
	return s.Captures.Hold(ctx, asker(ctx), times, func(v *store.View) (*hookglass.Event, error) {
		return v.Event(in.EndpointID, in.ID)
	})
}

// detailTimes is how much memory a large event takes, in multiples of its size: as received, as text, and as JSON.
const detailTimes = 4

// getRequest answers an event in full, compressed if the caller accepts it: all captured content in it comes from one
// sender.
func (s *service) getRequest(in *EventPath, w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	e, err := s.Captures.Hold(ctx, asker(ctx), detailTimes, func(v *store.View) (*hookglass.Event, error) {
		return v.ReportedEvent(in.EndpointID, in.ID)
	})
	if err != nil {
		return err
	}
	return writeZipped(w, r, api.One[api.EventDetail]{Data: capture.Detail(e)})
}

// getRequestBody answers the body as a file, so that no browser renders it.
func (s *service) getRequestBody(in *EventPath, w http.ResponseWriter, r *http.Request) error {
	e, err := s.held(r.Context(), in, 1)
	if err != nil {
		return err
	}
	media, name := "application/octet-stream", string(e.ID)+".bin"
	if e.Type == hookglass.EventEmail {
		media, name = "message/rfc822", string(e.ID)+".eml"
	} else if t, _, _ := strings.Cut(e.ContentType, ";"); strings.EqualFold(strings.TrimSpace(t), "application/json") {
		name = string(e.ID) + ".json"
	}
	sendFile(w, media, name, e.Body)
	return nil
}

// getAttachment answers an attachment of a mail as a file, whatever its declared type.
func (s *service) getAttachment(in *attachmentPath, w http.ResponseWriter, r *http.Request) error {
	e, err := s.held(r.Context(), &in.EventPath, 2) // the mail, and the decoded attachment
	if err != nil {
		return err
	}
	if e.Type != hookglass.EventEmail {
		return hookglass.NotFound("attachment")
	}
	content, file, err := email.Attachment(e.Body, int(in.Index))
	if err != nil {
		return err
	}
	sendFile(w, file.ContentType, file.Filename, content)
	return nil
}

// getPart answers a part of a multipart body as a file, whatever its declared type.
func (s *service) getPart(in *partPath, w http.ResponseWriter, r *http.Request) error {
	e, err := s.held(r.Context(), &in.EventPath, 2) // the body, and the part of it
	if err != nil {
		return err
	}
	part, err := capture.Part(e, int(in.Index))
	if err != nil {
		return err
	}
	media := part.ContentType
	if _, _, err := mime.ParseMediaType(media); err != nil {
		media = "application/octet-stream"
	}
	sendFile(w, media, cmp.Or(api.Text(part.Filename), "part-"+strconv.FormatInt(in.Index, 10)), part.Content)
	return nil
}

// sendFile answers a whole file.
func sendFile(w http.ResponseWriter, media, name string, content []byte) {
	download(w, media, name)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // an error means that the client is gone
}

// download sets the header for a file to be saved, not displayed.
func download(w http.ResponseWriter, media, name string) {
	h := w.Header()
	h.Set("Content-Type", media)
	// Some names cannot be expressed in a header.
	h.Set("Content-Disposition", cmp.Or(mime.FormatMediaType("attachment", map[string]string{"filename": name}), "attachment"))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
}

func (s *service) deleteRequest(ctx context.Context, in *EventPath) (out api.One[api.Deleted], err error) {
	id, err := hookglass.ParseEventID(in.ID)
	if err != nil {
		return out, err
	}
	out.Data = api.Deleted{ID: string(id), Deleted: true}
	return out, s.Captures.Delete(ctx, asker(ctx), in.EndpointID, in.ID)
}

func (s *service) deleteRequests(ctx context.Context, in *eventRange) (out api.One[api.DeletedEvents], err error) {
	before, after, err := s.bounds(in.Before, in.After)
	if err != nil {
		return out, err
	}
	out.Data.Deleted, err = s.Captures.DeleteRange(ctx, asker(ctx), in.EndpointID, before, after)
	return out, err
}
