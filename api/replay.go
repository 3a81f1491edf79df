package api

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"hookglass"
)

// ReplayRequest is the body of POST /endpoints/{endpoint_id}/requests/{id}/replay.
type ReplayRequest struct {
	_             struct{}   `additionalProperties:"false"`
	TargetURL     string     `json:"target_url,omitempty" required:"true" pattern:"^(tunnel$|[Hh][Tt][Tt][Pp][Ss]?://)" doc:"Where to send it, or the word tunnel for the connected local machine." example:"https://app.example.com/webhooks"`
	IdentityMode  string     `json:"identity_mode,omitempty" enum:"original,regenerate" doc:"Default original. Webhooks only; regenerate needs a JSON body and a payment method." example:"original"`
	SignatureMode string     `json:"signature_mode,omitempty" enum:"preserve,strip,resign" doc:"Default preserve. Webhooks only; resign needs a signature config and a payment method." example:"preserve"`
	Overrides     *Overrides `json:"overrides,omitempty" doc:"Changes to a copy of the event."`
	TimeShift     TimeShift  `json:"time_shift,omitempty" also:"integer" doc:"Moves every time in headers and body by one amount: now (as old as it was when it came), a duration with its sign such as +3h or -2d, or a number of milliseconds. Without a signature_mode the request is signed anew where that is possible." example:"now"`
	DryRun        bool       `json:"dry_run,omitempty" doc:"Send nothing; answer what would be sent." example:"false"`
}

// TimeShift says how far times are moved: a string, or a number of milliseconds, which is converted to a string.
type TimeShift string

// Form says what is taken.
func (TimeShift) Form() string {
	return `"now", a duration with its sign such as "+3h" or "-2d", or a number of milliseconds`
}

// UnmarshalJSONFrom implements the decoder's interface.
func (s *TimeShift) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'n' { // as if it were not there
		return dec.SkipValue()
	}
	text, err := textOrNumber(dec)
	if *s = TimeShift(text); err == nil && text == "" {
		return errors.New("empty")
	}
	return err
}

// TimeChange is a time that was moved. Either pointer or header says where it is.
type TimeChange struct {
	Pointer string `json:"pointer,omitempty" doc:"Into the body, RFC 6901. What follows a ! stands in JSON within the text before it." example:"/data/created"`
	Header  string `json:"header,omitempty" example:"Date"`
	From    string `json:"from" example:"1700000000"`
	To      string `json:"to" example:"1763633730"`
}

// Overrides change a copy of the event before it is sent; absent ones change nothing.
type Overrides struct {
	_       struct{}           `additionalProperties:"false"`
	Method  *string            `json:"method,omitempty" enum:"GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS" example:"POST"`
	Headers map[string]*string `json:"headers,omitempty" maxProperties:"50" doc:"Replaces or adds; null removes."`
	Body    *string            `json:"body,omitempty" example:"{\"amount\":200}"`
	Query   *QueryString       `json:"query,omitempty" also:"object" doc:"Replaces the query of target_url: percent-encoded text without the question mark, or an object of names, each with its value or an array of values." example:"debug=1"`
}

// QueryString is the query of a URL: exactly as it is sent, or built from an object of parameters.
type QueryString string

// Form says what is taken.
func (QueryString) Form() string {
	return `a query string such as "debug=1", or an object of names and values`
}

// UnmarshalJSONFrom implements the decoder's interface.
func (q *QueryString) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		text, err := textAlone(dec)
		*q = QueryString(text)
		return err
	}
	var parts []string
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != '}' {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err != nil {
			break
		}
		key := queryEscaped(name.String())
		err = eachValue(dec, func(value string) { parts = append(parts, key+"="+queryEscaped(value)) })
	}
	if err != nil {
		return err
	}
	*q = QueryString(strings.Join(parts, "&"))
	_, err = dec.ReadToken()
	return err
}

// eachValue reads a value, or an array of them; each is a string or a number.
func eachValue(dec *jsontext.Decoder, add func(string)) error {
	if dec.PeekKind() != '[' {
		value, err := textOrNumber(dec)
		add(value)
		return err
	}
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != ']' {
		var value string
		value, err = textOrNumber(dec)
		add(value)
	}
	if err == nil {
		_, err = dec.ReadToken()
	}
	return err
}

// textAlone reads a string.
func textAlone(dec *jsontext.Decoder) (string, error) {
	if dec.PeekKind() != '"' {
		return "", errors.New("no text")
	}
	return textOrNumber(dec)
}

// queryEscaped encodes a name or a value so that all receivers decode it alike: a space becomes %20, not a plus sign.
func queryEscaped(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// Replay is one attempt to deliver a captured event again.
type Replay struct {
	ID                   string            `json:"id" example:"rpl_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	EventID              string            `json:"event_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	TargetURL            string            `json:"target_url" example:"https://app.example.com/webhooks"`
	Method               string            `json:"method" doc:"As sent." example:"POST"`
	IdentityMode         string            `json:"identity_mode" enum:"original,regenerate" example:"original"`
	SignatureMode        string            `json:"signature_mode" enum:"preserve,strip,resign" example:"preserve"`
	Delivered            bool              `json:"delivered" doc:"A complete HTTP answer came, whatever its status." example:"true"`
	StatusCode           *int              `json:"status_code" doc:"Of the answer; a redirect is not followed." example:"200"`
	ResponseHeaders      map[string]string `json:"response_headers" doc:"Repeated fields are joined by a comma and a space." example:"{\"Content-Type\":\"application/json\"}"`
	ResponseHeaderList   [][2]string       `json:"response_header_list" doc:"As received, in order." example:"[[\"Content-Type\",\"application/json\"]]"`
	ResponseBody         *string           `json:"response_body" doc:"Up to 1 MiB, decompressed. In base64 where it is not UTF-8; see response_body_encoding." example:"{\"ok\":true}"`
	ResponseBodyEncoding string            `json:"response_body_encoding" enum:"utf8,base64" example:"utf8"`
	ResponseTruncated    bool              `json:"response_truncated" example:"false"`
	DurationMS           int64             `json:"duration_ms" example:"42"`
	Error                *Failure          `json:"error" doc:"Why no complete answer came."`
	ReplayedAt           Time              `json:"replayed_at" example:"2026-11-20T10:15:30.123456Z"`
	RequestHeadersSent   map[string]string `json:"request_headers_sent" example:"{\"Content-Type\":\"application/json\",\"X-Service-Replay\":\"true\"}"`
	RequestHeaderList    [][2]string       `json:"request_header_list" doc:"As sent, in order." example:"[[\"Content-Type\",\"application/json\"]]"`
	Latin1               []string          `json:"latin1,omitempty" doc:"JSON Pointers to strings of request_url, where it is there, request_header_list and response_header_list that are bytes which are not UTF-8: each of their characters is one byte. Absent where all are UTF-8." example:"[\"/request_header_list/2/1\"]"`
	NewDeliveryID        *string           `json:"new_delivery_id" doc:"With regenerate: what names the delivery now."`
	Verdict              *string           `json:"verdict" enum:"fixed,regressed,still_failing,still_passing" doc:"Compared with the attempt before at the same target; an attempt passes with a 2xx. Null for the first." example:"fixed"`
	Warnings             []string          `json:"warnings" example:"[]"`
	BatchID              *string           `json:"batch_id" doc:"The bulk replay that it is part of."`
	TimeChanges          []TimeChange      `json:"time_changes,omitzero" doc:"With time_shift: each time that was moved. Not kept."`
	DryRun               bool              `json:"dry_run,omitempty" doc:"Nothing was sent." example:"false"`
}

// Failure says why there is no complete answer.
type Failure struct {
	Code    string `json:"code" doc:"Stable." example:"connection_refused"`
	Message string `json:"message" example:"The target refused the connection."`
}

// ReplayRecord is a stored attempt: at most 256 KiB of bodies, credentials redacted.
type ReplayRecord struct {
	Replay
	RequestURL           string `json:"request_url" example:"https://app.example.com/webhooks"`
	RequestBody          string `json:"request_body" doc:"In base64 where it is not UTF-8; see request_body_encoding." example:"{\"amount\":100}"`
	RequestBodyEncoding  string `json:"request_body_encoding" enum:"utf8,base64" example:"utf8"`
	RequestBodyTruncated bool   `json:"request_body_truncated" example:"false"`
}

// FromReplay converts an attempt.
func FromReplay(r *hookglass.Replay) Replay {
	out := Replay{
		ID: r.ID, EventID: string(r.EventID), TargetURL: r.TargetURL, Method: r.Request.Method,
		IdentityMode: string(r.Options.Identity), SignatureMode: string(r.Options.Signature),
		DurationMS: r.Duration.Milliseconds(), Error: fromFailure(r.Failure), ReplayedAt: Time{r.At},
		NewDeliveryID: nonzero(r.NewDeliveryID), Verdict: nonzero(string(r.Verdict)), Warnings: append([]string{}, r.Warnings...), BatchID: nonzero(r.BatchID),
		ResponseHeaders: map[string]string{}, ResponseHeaderList: [][2]string{}, ResponseBodyEncoding: "utf8",
	}
	if r.TimeShifted {
		out.TimeChanges = make([]TimeChange, len(r.TimeChanges))
		for i, c := range r.TimeChanges {
			out.TimeChanges[i] = TimeChange(c)
		}
	}
	out.DryRun = r.DryRun
	out.RequestHeadersSent, out.RequestHeaderList = headersOf(r.Request.Headers)
	out.Latin1 = latin1In(requestHeaderList, r.Request.Headers)
	if res := r.Response; res != nil {
		body, encoding := Body(res.Body)
		out.Delivered, out.StatusCode, out.ResponseTruncated = true, &res.Status, res.Truncated
		out.ResponseHeaders, out.ResponseHeaderList = headersOf(res.Headers)
		out.Latin1 = append(out.Latin1, latin1In(responseHeaderList, res.Headers)...)
		out.ResponseBody, out.ResponseBodyEncoding = &body, encoding
	}
	return out
}

// FromReplayRecord converts a stored attempt.
func FromReplayRecord(r *hookglass.Replay) ReplayRecord {
	out := ReplayRecord{Replay: FromReplay(r), RequestURL: Text(r.Request.URL), RequestBodyTruncated: r.Request.Truncated}
	out.Latin1 = append(latin1Of(nil, "request_url", r.Request.URL), out.Latin1...)
	out.RequestBody, out.RequestBodyEncoding = Body(r.Request.Body)
	return out
}

func fromFailure(f *hookglass.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{f.Code, f.Message}
}

// JSONObject is a JSON object, exactly as written.
type JSONObject json.RawMessage

// MarshalJSON implements json.Marshaler.
func (o JSONObject) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// UnmarshalJSON implements json.Unmarshaler.
func (o *JSONObject) UnmarshalJSON(b []byte) error {
	return (*json.RawMessage)(o).UnmarshalJSON(b)
}

// CaseOptions are the modes of a replay case.
type CaseOptions struct {
	_             struct{} `additionalProperties:"false"`
	IdentityMode  string   `json:"identity_mode,omitempty" enum:"original,regenerate" doc:"Default original." example:"original"`
	SignatureMode string   `json:"signature_mode,omitempty" enum:"preserve,strip,resign" doc:"Default preserve." example:"preserve"`
}

// Assertions are the conditions on the answer to a run; at least one is given.
type Assertions struct {
	_          struct{}         `additionalProperties:"false"`
	Status     *StatusAssertion `json:"status,omitempty" minProperties:"1" example:"{\"class\":\"2xx\"}"`
	JSONSubset JSONObject       `json:"json_subset,omitempty" doc:"Must be contained in the answer: objects by subset, arrays element by element and of equal length, numbers by value."`
}

// StatusAssertion is about the status of the answer.
type StatusAssertion struct {
	_     struct{} `additionalProperties:"false"`
	Class *string  `json:"class,omitempty" enum:"1xx,2xx,3xx,4xx,5xx" example:"2xx"`
	Code  *int     `json:"code,omitempty" minimum:"100" maximum:"599" doc:"Instead of class."`
}

// CreateReplayCase is the body of POST /endpoints/{endpoint_id}/replay_cases.
type CreateReplayCase struct {
	_          struct{}       `additionalProperties:"false"`
	ReplayCase *NewReplayCase `json:"replay_case,omitempty" required:"true"`
}

// NewReplayCase describes a new case.
type NewReplayCase struct {
	_           struct{}              `additionalProperties:"false"`
	SourceID    Optional[string]      `json:"source_id,omitzero" required:"true" minLength:"1" doc:"The event that it replays. The case keeps a copy." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Name        Optional[string]      `json:"name,omitzero" required:"true" minLength:"1" maxLength:"200" example:"An invoice is paid"`
	Description Optional[string]      `json:"description,omitzero" null:"true" maxLength:"2000" example:"The order must become paid."`
	TargetURL   Optional[string]      `json:"target_url,omitzero" required:"true" pattern:"^(tunnel$|[Hh][Tt][Tt][Pp][Ss]?://)" doc:"Where every run sends it, or the word tunnel." example:"https://app.example.com/webhooks"`
	Options     Optional[CaseOptions] `json:"options,omitzero"`
	Assertions  Optional[Assertions]  `json:"assertions,omitzero" required:"true" minProperties:"1"`
}

// UpdateReplayCase is the body of PATCH /endpoints/{endpoint_id}/replay_cases/{case_id}.
type UpdateReplayCase struct {
	_          struct{}          `additionalProperties:"false"`
	ReplayCase *ReplayCaseChange `json:"replay_case,omitempty" required:"true"`
}

// ReplayCaseChange lists the fields to change; absent ones stay.
type ReplayCaseChange struct {
	_           struct{}              `additionalProperties:"false"`
	LockVersion Optional[int64]       `json:"lock_version,omitzero" required:"true" doc:"The version that the change was made from; any but the current is refused with 409." example:"1"`
	SourceID    Optional[string]      `json:"source_id,omitzero" minLength:"1" doc:"Another event to copy."`
	Name        Optional[string]      `json:"name,omitzero" minLength:"1" maxLength:"200" example:"An invoice is paid"`
	Description Optional[string]      `json:"description,omitzero" null:"true" maxLength:"2000"`
	TargetURL   Optional[string]      `json:"target_url,omitzero" pattern:"^(tunnel$|[Hh][Tt][Tt][Pp][Ss]?://)"`
	Options     Optional[CaseOptions] `json:"options,omitzero" doc:"Replaces the whole object."`
	Assertions  Optional[Assertions]  `json:"assertions,omitzero" minProperties:"1" doc:"Replaces the whole object."`
}

// ReplayCase is a saved replay with assertions on its answer.
type ReplayCase struct {
	ID              string      `json:"id" example:"rcase_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	EndpointID      string      `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	SourceID        string      `json:"source_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	SourceAvailable bool        `json:"source_available" doc:"Whether the event is still stored; the case does not need it." example:"true"`
	Name            string      `json:"name" example:"An invoice is paid"`
	Description     string      `json:"description" example:"The order must become paid."`
	TargetURL       string      `json:"target_url" example:"https://app.example.com/webhooks"`
	Options         CaseOptions `json:"options"`
	Assertions      Assertions  `json:"assertions"`
	LockVersion     int64       `json:"lock_version" doc:"Counts the changes; a change names the one it was made from." example:"1"`
	LastRun         *LastRun    `json:"last_run"`
	CreatedAt       Time        `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	UpdatedAt       Time        `json:"updated_at" example:"2026-11-20T10:15:30.123456Z"`
}

// LastRun is the newest run of a case.
type LastRun struct {
	ID         string `json:"id" example:"rrun_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	State      string `json:"state" enum:"queued,running,passed,assertion_failed,transport_failed,blocked,unknown" example:"passed"`
	FinishedAt *Time  `json:"finished_at" example:"2026-11-20T10:15:30.123456Z"`
}

// FromReplayCase converts a case with its options opened.
func FromReplayCase(c hookglass.ReplayCase) ReplayCase {
	out := ReplayCase{
		ID: c.ID, EndpointID: string(c.EndpointID), SourceID: string(c.SourceID), SourceAvailable: c.SourceAvailable,
		Name: c.Name, Description: c.Description, TargetURL: c.TargetURL,
		Options:     CaseOptions{IdentityMode: string(c.Options.Identity), SignatureMode: string(c.Options.Signature)},
		LockVersion: c.LockVersion, CreatedAt: Time{c.CreatedAt}, UpdatedAt: Time{c.UpdatedAt},
	}
	a := c.Assertions
	if a.StatusClass != "" || a.StatusCode != 0 {
		out.Assertions.Status = &StatusAssertion{Class: nonzero(a.StatusClass), Code: nonzero(a.StatusCode)}
	}
	if len(a.JSONSubset) > 0 {
		out.Assertions.JSONSubset = JSONObject(a.JSONSubset)
	}
	if r := c.LastRun; r != nil {
		out.LastRun = &LastRun{ID: r.ID, State: string(r.State), FinishedAt: at(r.FinishedAt)}
	}
	return out
}

// ReplayCaseRun is one run of a case.
type ReplayCaseRun struct {
	ID              string            `json:"id" example:"rrun_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	ReplayCaseID    string            `json:"replay_case_id" example:"rcase_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	CaseLockVersion int64             `json:"case_lock_version" doc:"The version of the case that ran." example:"1"`
	State           string            `json:"state" enum:"queued,running,passed,assertion_failed,transport_failed,blocked,unknown" doc:"unknown: the target may have received it; such a run is never repeated by itself." example:"passed"`
	IdempotencyKey  string            `json:"idempotency_key" example:"deploy-481"`
	CreatedAt       Time              `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	StartedAt       *Time             `json:"started_at" example:"2026-11-20T10:15:30.123456Z"`
	FinishedAt      *Time             `json:"finished_at" example:"2026-11-20T10:15:30.123456Z"`
	DurationMS      *int64            `json:"duration_ms" doc:"Of the delivery." example:"42"`
	Request         *RunRequest       `json:"request" doc:"What was sent; credentials are redacted."`
	Response        *RunResponse      `json:"response"`
	Assertions      []AssertionResult `json:"assertions" example:"[]"`
	Error           *Failure          `json:"error" doc:"Why there is no answer, or why it was not sent."`
}

// RunRequest is the request of a run.
type RunRequest struct {
	Method     string            `json:"method" example:"POST"`
	URL        string            `json:"url" example:"https://app.example.com/webhooks"`
	Headers    map[string]string `json:"headers" doc:"Repeated fields are joined by a comma and a space."`
	HeaderList [][2]string       `json:"header_list" doc:"As sent, in order." example:"[[\"Content-Type\",\"application/json\"]]"`
	Latin1     []string          `json:"latin1,omitempty" doc:"JSON Pointers to strings of url and header_list that are bytes which are not UTF-8: each of their characters is one byte. Absent where all are UTF-8." example:"[\"/header_list/2/1\"]"`
}

// RunResponse is the answer to a run.
type RunResponse struct {
	StatusCode   int               `json:"status_code" example:"200"`
	Headers      map[string]string `json:"headers" doc:"Repeated fields are joined by a comma and a space."`
	HeaderList   [][2]string       `json:"header_list" doc:"As received, in order." example:"[[\"Content-Type\",\"application/json\"]]"`
	Latin1       []string          `json:"latin1,omitempty" doc:"JSON Pointers to strings of header_list that are bytes which are not UTF-8: each of their characters is one byte. Absent where all are UTF-8." example:"[\"/header_list/2/1\"]"`
	Body         string            `json:"body" doc:"Up to 256 KiB, decompressed. In base64 where it is not UTF-8; see body_encoding." example:"{\"ok\":true}"`
	BodyEncoding string            `json:"body_encoding" enum:"utf8,base64" example:"utf8"`
	Truncated    bool              `json:"truncated" example:"false"`
}

// AssertionResult is the result of one assertion.
type AssertionResult struct {
	Kind     string          `json:"kind" enum:"status,json_subset" example:"json_subset"`
	Path     string          `json:"path" doc:"A JSON Pointer into the answer." example:"/order/state"`
	Expected json.RawMessage `json:"expected" example:"\"paid\""`
	Actual   json.RawMessage `json:"actual" doc:"Null where there is no such value; a long one is told by its kind and size, and an answer that was cut by its length." example:"\"open\""`
	Passed   bool            `json:"passed" example:"false"`
}

// FromReplayCaseRun converts a run.
func FromReplayCaseRun(r hookglass.ReplayCaseRun) ReplayCaseRun {
	out := ReplayCaseRun{
		ID: r.ID, ReplayCaseID: r.CaseID, CaseLockVersion: r.CaseLockVersion, State: string(r.State), IdempotencyKey: r.IdempotencyKey,
		CreatedAt: Time{r.CreatedAt}, StartedAt: at(r.StartedAt), FinishedAt: at(r.FinishedAt), Assertions: []AssertionResult{}, Error: fromFailure(r.Failure),
	}
	if r.Duration > 0 {
		out.DurationMS = new(r.Duration.Milliseconds())
	}
	if q := r.Request; q != nil {
		out.Request = &RunRequest{Method: q.Method, URL: Text(q.URL)}
		out.Request.Headers, out.Request.HeaderList = headersOf(q.Headers)
		out.Request.Latin1 = latin1Of(q.Headers, "url", q.URL)
	}
	if res := r.Response; res != nil {
		out.Response = &RunResponse{StatusCode: res.Status, Truncated: res.Truncated}
		out.Response.Headers, out.Response.HeaderList = headersOf(res.Headers)
		out.Response.Latin1 = latin1Of(res.Headers)
		out.Response.Body, out.Response.BodyEncoding = Body(res.Body)
	}
	for _, a := range r.Assertions {
		out.Assertions = append(out.Assertions, AssertionResult{Kind: a.Kind, Path: a.Path, Expected: a.Expected, Actual: a.Actual, Passed: a.Passed})
	}
	return out
}

// CreateReplayBatch is the body of POST /endpoints/{endpoint_id}/replay_batches.
type CreateReplayBatch struct {
	_             struct{} `additionalProperties:"false"`
	Query         string   `json:"query,omitempty" maxLength:"1000" doc:"Which events, in the search language of the list's q; without one, all that are not ignored. At most 10,000." example:"provider:stripe -tag:noise"`
	RequestIDs    []string `json:"request_ids,omitempty" minItems:"1" maxItems:"1000" doc:"These events, in place of a query; one that is named twice is sent once, and one that is not there is 422."`
	TargetURL     string   `json:"target_url,omitempty" required:"true" pattern:"^(tunnel$|[Hh][Tt][Tt][Pp][Ss]?://)" doc:"Where to send them, or the word tunnel." example:"https://app.example.com/webhooks"`
	IdentityMode  string   `json:"identity_mode,omitempty" enum:"original,regenerate" doc:"Default original." example:"original"`
	SignatureMode string   `json:"signature_mode,omitempty" enum:"preserve,strip,resign" doc:"Default preserve." example:"preserve"`
	Rate          *int     `json:"rate,omitempty" minimum:"1" maximum:"100" doc:"Events a second at most; default 10. They go one after another." example:"10"`
	StopOnFailure bool     `json:"stop_on_failure,omitempty" doc:"End with the first event that the target does not answer with 2xx." example:"false"`
	DryRun        bool     `json:"dry_run,omitempty" doc:"Only say how many events it would be." example:"false"`
}

// ReplayBatch is a bulk replay.
type ReplayBatch struct {
	ID            *string `json:"id" doc:"Null for a dry run." example:"rbat_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Query         string  `json:"query" example:"provider:stripe"`
	TargetURL     string  `json:"target_url" example:"https://app.example.com/webhooks"`
	IdentityMode  string  `json:"identity_mode" enum:"original,regenerate" example:"original"`
	SignatureMode string  `json:"signature_mode" enum:"preserve,strip,resign" example:"preserve"`
	Rate          int     `json:"rate" example:"10"`
	StopOnFailure bool    `json:"stop_on_failure" example:"false"`
	DryRun        bool    `json:"dry_run" example:"false"`
	State         string  `json:"state" enum:"running,paused,completed,stopped,canceled,dry_run" example:"running"`
	Total         int64   `json:"total" doc:"Events that it is about." example:"120"`
	Passed        int64   `json:"passed" doc:"Answered with 2xx." example:"40"`
	Failed        int64   `json:"failed" doc:"Answered otherwise, not answered, or not known." example:"2"`
	Pending       int64   `json:"pending" doc:"Not finished." example:"78"`
	CreatedAt     *Time   `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	UpdatedAt     *Time   `json:"updated_at" example:"2026-11-20T10:15:30.123456Z"`
	FinishedAt    *Time   `json:"finished_at" example:"2026-11-20T10:15:30.123456Z"`
}

// FromReplayBatch converts a bulk replay.
func FromReplayBatch(b hookglass.ReplayBatch) ReplayBatch {
	out := ReplayBatch{
		ID: nonzero(b.ID), Query: b.Query, TargetURL: b.TargetURL, IdentityMode: string(b.Options.Identity), SignatureMode: string(b.Options.Signature),
		Rate: b.Rate, StopOnFailure: b.StopOnFailure, State: string(b.State), Total: b.Total, Passed: b.Passed, Failed: b.Failed,
		Pending: b.Total - b.Passed - b.Failed, CreatedAt: at(b.CreatedAt), UpdatedAt: at(b.UpdatedAt), FinishedAt: at(b.FinishedAt),
	}
	if b.ID == "" {
		out.DryRun, out.State = true, "dry_run"
	}
	return out
}

// BatchItem is one event of a bulk replay.
type BatchItem struct {
	EventID    string   `json:"event_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	State      string   `json:"state" enum:"pending,sending,passed,failed,unknown" example:"passed"`
	StatusCode *int     `json:"status_code" example:"200"`
	ReplayID   *string  `json:"replay_id" doc:"The attempt, among the event's replays." example:"rpl_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Error      *Failure `json:"error"`
	FinishedAt *Time    `json:"finished_at" example:"2026-11-20T10:15:30.123456Z"`
}

// FromBatchItem converts one event of a bulk replay.
func FromBatchItem(i hookglass.BatchItem) BatchItem {
	return BatchItem{
		EventID: string(i.EventID), State: string(i.State), StatusCode: nonzero(i.StatusCode), ReplayID: nonzero(i.ReplayID),
		Error: fromFailure(i.Failure), FinishedAt: at(i.FinishedAt),
	}
}
