package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
)

// Filter selects events that match every field that is set. The fields are the query parameters of the API.
type Filter struct {
	Type, Method, Provider, EventType, SignatureStatus, Status, Tag, ContentType string
	Ignored                                                                      string // false, true or any; "" is false
	Query                                                                        string // in the query language
	Before, After                                                                time.Time
}

func (f Filter) values() url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"type": f.Type, "method": f.Method, "provider": f.Provider, "event_type": f.EventType, "signature_status": f.SignatureStatus,
		"status": f.Status, "tag": f.Tag, "content_type": f.ContentType, "ignored": f.Ignored, "q": f.Query,
	} {
		setText(query, name, value)
	}
	setTime(query, "before", f.Before)
	setTime(query, "after", f.After)
	return query
}

// Page selects a part of a list. The zero Page is the server's first.
type Page struct {
	Limit  int
	Offset int64
	Cursor string // the NextCursor of the page before
}

// of adds the page to the query parameters of a list.
func (p Page) of(query url.Values) url.Values {
	setInt(query, "limit", p.Limit)
	if p.Offset != 0 {
		query.Set("offset", strconv.FormatInt(p.Offset, 10))
	}
	setText(query, "cursor", p.Cursor)
	return query
}

// Requests returns a page of an endpoint's events, newest first.
func (c *Client) Requests(ctx context.Context, endpoint string, filter Filter, page Page) (api.EventList, error) {
	return call[api.EventList](ctx, c, http.MethodGet, join("endpoints", endpoint, "requests"), page.of(filter.values()), nil)
}

// isEvent answers not_found, as the server does, for what cannot be the id of an event. The API has words in the place
// of ids, too: destroy_all would delete every event of an endpoint.
func isEvent(id string) error {
	_, err := hookglass.ParseEventID(id)
	if fault := (*hookglass.Error)(nil); errors.As(err, &fault) {
		return &Error{Status: http.StatusNotFound, Code: fault.Code, Message: fault.Message}
	}
	return err
}

// Request returns an event with all that was received and answered, as text; see [api.EventDetail.Exact].
func (c *Client) Request(ctx context.Context, endpoint, id string) (api.EventDetail, error) {
	if err := isEvent(id); err != nil {
		return api.EventDetail{}, err
	}
	return data[api.EventDetail](ctx, c, http.MethodGet, join("endpoints", endpoint, "requests", id), nil, nil)
}

// Diagnosis explains what became of an event.
func (c *Client) Diagnosis(ctx context.Context, endpoint, id string) (api.Diagnosis, error) {
	if err := isEvent(id); err != nil {
		return api.Diagnosis{}, err
	}
	return data[api.Diagnosis](ctx, c, http.MethodGet, join("endpoints", endpoint, "requests", id, "diagnosis"), nil, nil)
}

// RequestBody writes the bytes of an event's body.
func (c *Client) RequestBody(ctx context.Context, endpoint, id string, to io.Writer) error {
	return c.copy(ctx, join("endpoints", endpoint, "requests", id, "body"), nil, to)
}

// Attachment writes the bytes of an attachment of a mail, by its index in attachment_metadata.
func (c *Client) Attachment(ctx context.Context, endpoint, id string, index int, to io.Writer) error {
	return c.copy(ctx, join("endpoints", endpoint, "requests", id, "attachments", strconv.Itoa(index)), nil, to)
}

// Part writes the bytes of a part of a multipart body, by its index in body_parts.
func (c *Client) Part(ctx context.Context, endpoint, id string, index int, to io.Writer) error {
	return c.copy(ctx, join("endpoints", endpoint, "requests", id, "parts", strconv.Itoa(index)), nil, to)
}

// Export writes the events that a filter selects, oldest first, as ndjson, har, csv or mbox.
func (c *Client) Export(ctx context.Context, endpoint, format string, filter Filter, to io.Writer) error {
	query := filter.values()
	query.Set("format", format)
	return c.copy(ctx, join("endpoints", endpoint, "requests", "export"), query, to)
}

func (c *Client) copy(ctx context.Context, path string, query url.Values, to io.Writer) error {
	res, err := c.send(ctx, http.MethodGet, path, query, nil, nil)
	if err != nil {
		return err
	}
	return save(res, to)
}

// save writes a successful response to a file. The API sends files as attachments; anything else is the page of another
// server, such as a network's login page.
func save(res *http.Response, to io.Writer) error {
	defer res.Body.Close()
	if !strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment") {
		return foreign(res.StatusCode, res.Header.Get("X-Request-Id"))
	}
	_, err := io.Copy(to, res.Body)
	return err
}

// DeleteRequest deletes an event. The answer has its id.
func (c *Client) DeleteRequest(ctx context.Context, endpoint, id string) (api.Deleted, error) {
	if err := isEvent(id); err != nil {
		return api.Deleted{}, err
	}
	return data[api.Deleted](ctx, c, http.MethodDelete, join("endpoints", endpoint, "requests", id), nil, nil)
}

// DeleteRequests deletes the endpoint's events received before and after the given times, the zero time being no
// bound, and returns how many they were.
func (c *Client) DeleteRequests(ctx context.Context, endpoint string, before, after time.Time) (int64, error) {
	query := url.Values{}
	setTime(query, "before", before)
	setTime(query, "after", after)
	gone, err := data[api.DeletedEvents](ctx, c.unhurried(), http.MethodDelete, join("endpoints", endpoint, "requests", "destroy_all"), query, nil)
	return gone.Deleted, err
}

// Tag adds a tag to an event and returns all its tags.
func (c *Client) Tag(ctx context.Context, endpoint, id, tag string) ([]string, error) {
	tags, err := data[api.EventTags](ctx, c, http.MethodPut, join("endpoints", endpoint, "requests", id, "tags", tag), nil, nil)
	return tags.Tags, err
}

// Untag removes a tag from an event and returns the remaining ones.
func (c *Client) Untag(ctx context.Context, endpoint, id, tag string) ([]string, error) {
	tags, err := data[api.EventTags](ctx, c, http.MethodDelete, join("endpoints", endpoint, "requests", id, "tags", tag), nil, nil)
	return tags.Tags, err
}

// SetNote replaces the note on an event; "" removes it.
func (c *Client) SetNote(ctx context.Context, endpoint, id, note string) (api.Event, error) {
	body := api.NoteEvent{Note: api.Null[string]()}
	if note != "" {
		body.Note = api.Some(note)
	}
	return data[api.Event](ctx, c, http.MethodPut, join("endpoints", endpoint, "requests", id, "note"), nil, body)
}

// Ignore hides an event from lists for a reason, "" being noise.
func (c *Client) Ignore(ctx context.Context, endpoint, id, reason string) (api.Event, error) {
	var body api.IgnoreEvent
	if reason != "" {
		body.Reason = api.Some(reason)
	}
	return data[api.Event](ctx, c, http.MethodPost, join("endpoints", endpoint, "requests", id, "ignore"), nil, body)
}

// Unignore reverts Ignore.
func (c *Client) Unignore(ctx context.Context, endpoint, id string) (api.Event, error) {
	return data[api.Event](ctx, c, http.MethodDelete, join("endpoints", endpoint, "requests", id, "ignore"), nil, nil)
}

// SendTestRequest captures a provider's sample event, or a given request, as if it had come from outside, and returns
// the id of the event.
func (c *Client) SendTestRequest(ctx context.Context, endpoint string, r api.SendTestRequest) (string, error) {
	sent, err := data[api.SentTestRequest](ctx, c, http.MethodPost, join("endpoints", endpoint, "test_requests"), nil, r)
	return sent.RequestID, err
}

// Signature verifies the signature of an event again and explains the result.
func (c *Client) Signature(ctx context.Context, endpoint, id string) (api.Signature, error) {
	return data[api.Signature](ctx, c, http.MethodGet, join("endpoints", endpoint, "requests", id, "signature"), nil, nil)
}
