// Package client is the Go client of the hookglass REST API. Of the server it knows only the contract, package api. It
// hides HTTP: paths, headers, envelopes, errors and the form of a stream.
//
// A call waits a minute for its answer to begin, [Client.WaitFlow] a minute longer than the time it is given, and calls
// that may take the server longer (a share bundle, the deletion of many events) until their context ends. An answer
// that has begun may take any time, as long as data keeps coming; a file, such as an export for which the server
// searches long, also without, until its context ends. A Client is safe for concurrent use. It does not retry calls,
// except for [Client.Stream], which reconnects and continues where it was.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"hookglass"
	"hookglass/api"
)

// Client calls one server with one token.
type Client struct {
	base    string
	token   string
	http    *http.Client
	patient *http.Client // waits for an answer however long it takes
	most    int64        // bytes of an answer that is read into memory
}

// New returns a client of the server at an address such as https://hooks.example.com. The token is an API
// token, the key of a temporary endpoint, or "" for what needs none.
func New(server, token string) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(server, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the server's address must be of the form https://hooks.example.com, or http://127.0.0.1:8080")
	}
	if u.Path == "/api/v1" { // of no server: a path of its own may not begin so
		return nil, fmt.Errorf("the server's address is %s://%s, without /api/v1", u.Scheme, u.Host)
	}
	if strings.ContainsFunc(token, unicode.IsControl) {
		return nil, errors.New("the token holds a line break or another control character") // not allowed in a header
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerTime
	patient := http.DefaultTransport.(*http.Transport).Clone()
	// The API never redirects. A server that does is not hookglass and must not get the token.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		base: u.String() + "/api/v1", token: token, most: maxAnswer,
		http:    &http.Client{Transport: transport, CheckRedirect: stay},
		patient: &http.Client{Transport: patient, CheckRedirect: stay},
	}, nil
}

const (
	// answerTime is how long a call waits for its answer to begin, and then for each next piece of it.
	answerTime = time.Minute
	// maxAnswer bounds an answer that is read into memory: several times the largest page, with large bodies in base64.
	maxAnswer = 256 << 20
)

// unhurried returns a client for calls whose work, and so the time until they are answered, is unbounded.
func (c *Client) unhurried() *Client {
	other := *c
	other.http = c.patient
	return &other
}

// As returns a client of the same server with another token.
func (c *Client) As(token string) *Client {
	other := *c
	other.token = token
	return &other
}

// SignedIn reports whether the client has a token at all.
func (c *Client) SignedIn() bool { return c.token != "" }

// Error is an answer that is not a success, or a success that does not come from this API.
type Error struct {
	Status     int
	Code       hookglass.Code // "" if the answer is not from a hookglass server
	Message    string
	Details    []api.FieldError
	References []api.Reference // of a conflict: the steps that refer to the object
	RetryAfter time.Duration   // 0: the answer does not say
	RequestID  string          // identifies the call in the server's log
}

func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the server answered %d %s", e.Status, e.Code)
	}
	return e.Message
}

// maxErrorBody bounds what is read of an error's body: a proxy's error page may be long.
const maxErrorBody = 1 << 20

// send makes a call and returns a successful response, whose body the caller closes.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any, header http.Header) (*http.Response, error) {
	// A proxy on the way may take dots for another address (RFC 3986, section 5.2.4): of "delete the action ..", the
	// endpoint's.
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return nil, fmt.Errorf("%q names nothing", name)
		}
	}
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(text)
	}
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	res, err := c.request(ctx, method, address, payload, header)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return res, nil
	}
	return nil, failure(res)
}

// request makes a request with the client's token and returns its response, whatever the status.
func (c *Client) request(ctx context.Context, method, address string, payload io.Reader, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, payload)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("User-Agent", "hookglass/"+hookglass.Version)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, unanswered(err)
	}
	return res, nil
}

// failure reads an answer that is not a success.
func failure(res *http.Response) error {
	heard := hear(res)
	defer heard.Close()
	failed := &Error{Status: res.StatusCode, RequestID: res.Header.Get("X-Request-Id")}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		failed.RetryAfter = time.Duration(seconds) * time.Second
	}
	var body api.Error
	text, err := io.ReadAll(io.LimitReader(heard, maxErrorBody))
	if err != nil || json.Unmarshal(text, &body) != nil || body.Error == "" {
		failed.Message = foreign(res.StatusCode, "").Message
		return failed
	}
	failed.Code, failed.Message, failed.Details = hookglass.Code(body.Error), body.Message, body.Details
	failed.References = body.References
	return failed
}

// call makes a call and reads its answer.
func call[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (out T, err error) {
	res, err := c.send(ctx, method, path, query, body, nil)
	if err != nil {
		return out, err
	}
	return answer[T](c, res)
}

// answer reads the body of a successful response.
func answer[T any](c *Client, res *http.Response) (out T, err error) {
	heard := hear(res)
	defer heard.Close()
	body := &io.LimitedReader{R: heard, N: c.most}
	if err := json.NewDecoder(body).Decode(&out); err != nil {
		switch {
		case errors.Is(err, errSilent):
			return out, errSilent
		case body.N <= 0:
			return out, fmt.Errorf("the server's answer has more than %d bytes", c.most)
		}
		strange, other := (*json.SyntaxError)(nil), (*json.UnmarshalTypeError)(nil)
		if errors.As(err, &strange) || errors.As(err, &other) || errors.Is(err, io.EOF) {
			return out, foreign(res.StatusCode, res.Header.Get("X-Request-Id"))
		}
		return out, fmt.Errorf("the server's answer: %w", err)
	}
	if !whole(reflect.ValueOf(out)) {
		return out, foreign(res.StatusCode, res.Header.Get("X-Request-Id"))
	}
	return out, nil
}

// pieces is the body of an answer. Each piece of it counts as a sign of life: a large answer on a slow network is not
// silence.
type pieces struct {
	io.ReadCloser
	silence *time.Timer
	silent  atomic.Bool
}

// hear returns the body of an answer, which ends with errSilent when nothing more of it comes for answerTime.
func hear(res *http.Response) *pieces {
	p := &pieces{ReadCloser: res.Body}
	p.silence = time.AfterFunc(answerTime, func() { p.silent.Store(true); res.Body.Close() })
	return p
}

func (p *pieces) Read(b []byte) (n int, err error) {
	if n, err = p.ReadCloser.Read(b); n > 0 {
		p.silence.Reset(answerTime)
	}
	if err != nil && p.silent.Load() {
		err = errSilent
	}
	return n, err
}

func (p *pieces) Close() error {
	p.silence.Stop()
	return p.ReadCloser.Close()
}

// whole reports whether an answer has data and, in it, the id of an object: otherwise it is not from this API.
func whole(answer reflect.Value) bool {
	data := answer.FieldByName("Data")
	if !data.IsValid() {
		return true // the caller checks answers of this kind
	}
	if data.Kind() == reflect.Slice || data.Kind() == reflect.Pointer {
		if data.IsNil() {
			return false
		}
		data = reflect.Indirect(data)
	}
	if data.Kind() != reflect.Struct {
		return true
	}
	named := true
	for _, name := range []string{"ID", "EventID", "RequestID", "Token"} {
		if field := data.FieldByName(name); field.IsValid() && field.Kind() != reflect.Pointer { // a dry run has none
			if !field.IsZero() {
				return true
			}
			named = false
		}
	}
	return named
}

// foreign returns the error for an answer that is not from this API.
func foreign(status int, requestID string) *Error {
	line := strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	return &Error{Status: status, RequestID: requestID, Message: "The server answered " + line + ", but not like a hookglass server; is this its address?"}
}

// data makes a call and returns the content of its envelope.
func data[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (T, error) {
	one, err := call[api.One[*T]](ctx, c, method, path, query, body)
	if err != nil {
		return *new(T), err
	}
	return *one.Data, nil
}

// all returns a list that the API does not paginate.
func all[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	list, err := call[api.List[T]](ctx, c, http.MethodGet, path, nil, nil)
	return list.Data, err
}

// join builds a path from segments, each of which may be any text.
func join(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// Verify returns the owner of the token.
func (c *Client) Verify(ctx context.Context) (api.Identity, error) {
	who, err := data[api.Identity](ctx, c, http.MethodGet, "/auth/verify", nil, nil)
	if err == nil && who.User.ID == 0 {
		err = foreign(http.StatusOK, "")
	}
	return who, err
}

// Activity returns what happened since a time, newest first; the zero time is the server's default of 24 hours ago,
// limit 0 its default of 50.
func (c *Client) Activity(ctx context.Context, since time.Time, limit int) ([]api.Activity, error) {
	query := url.Values{}
	setTime(query, "since", since)
	setInt(query, "limit", limit)
	list, err := call[api.ActivityList](ctx, c, http.MethodGet, "/events", query, nil)
	return list.Data, err
}

func setTime(query url.Values, name string, t time.Time) {
	if !t.IsZero() {
		query.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
}

func setText(query url.Values, name, text string) {
	if text != "" {
		query.Set(name, text)
	}
}

func setInt(query url.Values, name string, n int) {
	if n != 0 {
		query.Set(name, strconv.Itoa(n))
	}
}
