// Package inspector renders the page of an endpoint: its address, its requests as they arrive, and one of them in
// detail. What senders wrote is shown as text, never as markup.
package inspector

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/paste"
	"hookglass/internal/provider"
	"hookglass/internal/query"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files holds the style and the scripts.
//
//go:embed inspector.css inspector.js tree.js search.js jwt.js times.js notify.js
var Files embed.FS

// Model is the content of the page.
type Model struct {
	layout.Frame
	Endpoint hookglass.Endpoint
	Address  string // the webhook URL or the email address
	Mailbox  Mailbox
	Notice   string // what the last form did
	Searches []hookglass.SavedSearch
	Tags     []hookglass.Tag // of the workspace
	Claims   bool            // the viewer is signed in and may keep this temporary endpoint
	List
	Detail *Detail // nil: none is open
	Gone   string  // why no detail could be opened
}

// Mailbox says how mail reaches an email endpoint.
type Mailbox struct {
	paste.Mailbox
	SMTP string // the SMTP address of the server, for people; empty: SMTP is off
}

// plus returns an example of a plus address of the endpoint.
func (m Model) plus() string {
	local, domain, _ := strings.Cut(m.Address, "@")
	return local + "+test1@" + domain
}

// List is the list of requests, or one page of it.
type List struct {
	Endpoint hookglass.EndpointID
	Mail     bool                   // of an email endpoint
	Events   []*hookglass.Event     // newest first
	Query    string                 // as typed
	Fault    string                 // what is wrong with the query
	Older    string                 // the cursor of the next page; empty: none
	Cursor   string                 // of this page; empty: the newest
	Newest   string                 // where a live stream continues after this list
	Place    func(seq int64) string // returns the cursor after an event
	Open     hookglass.EventID      // the open request
	Writes   bool                   // the viewer may do more than read and delete
	Now      time.Time
}

// nothing is the note of a search that found nothing among all requests.
func (l List) nothing() string {
	return strings.TrimSpace("No requests match yet. " + query.Advice(l.Query))
}

// found is how many requests a search has found, with a plus where the list goes on. inspector.js keeps it current.
func (l List) found() string {
	text := show.Count(int64(len(l.Events)))
	if l.Older != "" {
		text += "+"
	}
	return text
}

// example returns an example of a search.
func (l List) example() string {
	if l.Mail {
		return "subject:invoice from:alice"
	}
	return "provider:stripe sig:failed"
}

// terms are examples of what can be searched for, and what each finds.
func (l List) terms() [][2]string {
	if l.Mail {
		return [][2]string{
			{`"reset your password"`, "this text, anywhere in the mail"}, {"subject:order", "the subject contains this"}, {"from:alice", "the sender contains this"},
			{"to:shop+test", "the receiver contains this"}, {"has:attachment", "a file is attached"}, {"after:2h", "received within two hours"}, {"size:>100k", "larger mails"}, {"tag:important", "tagged so"},
		}
	}
	return [][2]string{
		{`"evt_1"`, "this text, in the path, headers or body"}, {"event:invoice.*", "event types that begin so"}, {"sig:failed", "a bad signature"},
		{"delivery:failed", "could not be forwarded"}, {"tunnel:failed", "failed at your machine"}, {"status:5xx", "the response to the sender"},
		{"path:/orders", "the path begins so"},
		{"body./data/id:in_1", "a value in a JSON body"}, {"header.x-id:7", "a header with this value"}, {"after:2h", "received within two hours"},
		{"tag:important", "tagged so"},
	}
}

// live reports whether new requests are added to the list as they arrive.
func (l List) live() bool { return l.Cursor == "" && l.Fault == "" }

// Path returns an address below the endpoint's. It keeps the query.
func (l List) Path(below string, more ...string) string {
	v := url.Values{}
	if l.Query != "" {
		v.Set("q", l.Query)
	}
	for i := 0; i+1 < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	p := "/endpoints/" + string(l.Endpoint) + below
	if len(v) > 0 {
		p += "?" + v.Encode()
	}
	return p
}

func (l List) eventPath(id hookglass.EventID) string { return l.Path("/requests/" + string(id)) }

// Detail is one request.
type Detail struct {
	Event   *hookglass.Event
	Path    string // of this page
	Back    string // the address of the list
	Curl    string
	Body    Body
	Reply   Body
	Query   []Pair
	Message string // explains the signature status
	Now     time.Time
	Writes  bool // the viewer may do more than read and delete
	First   Tab  // the tab shown first; empty: the one that fits the request
	Copies  []paste.Copy
	Mail    *Mail // nil for webhooks

	// Loaded by the handlers.
	Signature *Signature // nil: not judged
	Forwards  []Forward
	Reports   []*hookglass.DeliveryReport
	Runs      []hookglass.ActionRun
	Actions   map[string]string // names of the actions of the runs, by id
	Replays   []*hookglass.Replay
	Releases  []hookglass.Release
	ReleaseTo []string        // to whom the operator allows releases; empty: nobody
	Targets   []string        // targets of earlier replays, and forwarding targets
	Tags      []hookglass.Tag // of the workspace
	Tunnel    bool            // a local machine is connected
}

// outcomes counts the deliveries and runs of the request.
func (d *Detail) outcomes() int { return len(d.Forwards) + len(d.Reports) + len(d.Runs) }

// failed counts those that ended badly. Of the reports of local machines only the newest counts.
func (d *Detail) failed() (n int) {
	for _, f := range d.Forwards {
		if f.State == hookglass.ForwardFailed {
			n++
		}
	}
	for _, r := range d.Runs {
		if r.Status == hookglass.ActionRunFailed || r.Status == hookglass.ActionRunStopped {
			n++
		}
	}
	if len(d.Reports) > 0 && !d.Reports[0].Delivered() {
		n++
	}
	return n
}

// fate is what the tab of the deliveries tells: how many failed, or else how many there are.
func (d *Detail) fate() string {
	if n := d.failed(); n > 0 {
		return strconv.Itoa(n) + " failed"
	}
	return some(d.outcomes())
}

// settling is how long after its arrival a request may get new deliveries: jobs start, and local machines report.
const settling = time.Minute

// every returns how often the deliveries refresh, in milliseconds. It is empty if nothing is under way.
func (d *Detail) every() string {
	pending := d.Now.Sub(d.Event.ReceivedAt) < settling
	for _, f := range d.Forwards {
		pending = pending || f.FinishedAt.IsZero()
	}
	for _, r := range d.Runs {
		pending = pending || !r.Status.Final()
	}
	if pending {
		return "2000"
	}
	return ""
}

// Tab is a part of the detail.
type Tab string

// The tabs. The values are part of addresses.
const (
	TabMessage     Tab = "message"
	TabText        Tab = "text"
	TabBody        Tab = "body"
	TabHeaders     Tab = "headers"
	TabQuery       Tab = "query"
	TabSignature   Tab = "signature"
	TabResponse    Tab = "response"
	TabAttachments Tab = "attachments"
	TabDeliveries  Tab = "deliveries"
	TabReplays     Tab = "replays"
	TabReleases    Tab = "releases"
)

// Signature is the current judgement of a signature.
type Signature struct {
	Status        hookglass.SignatureStatus
	Message       string
	Code, Finding string // of the finding
}

// Forward is the delivery to one forwarding target.
type Forward struct {
	Target hookglass.ForwardingTarget
	hookglass.Forward
	Evidence []hookglass.ForwardEvidence
}

// resendable reports whether it can be sent again.
func (f Forward) resendable() bool {
	put, err := f.Resend()
	return f.Target.Enabled && put && err == nil
}

// Pair is a name and a value, decoded.
type Pair struct{ Name, Value string }

// NewDetail prepares an event with its payload for the page.
func NewDetail(l List, e *hookglass.Event) *Detail {
	if e.Payload == nil {
		e.Payload = &hookglass.Payload{}
	}
	d := &Detail{
		Event: e, Path: pathOf(l.Endpoint, e.ID), Back: l.Path(""), Now: l.Now,
		Body:  NewBody(e.Body, e.ContentType, coding.Of(e.Headers)),
		Query: pairs(e.RawQuery), Message: verdict(e), Writes: l.Writes,
	}
	if e.Type == hookglass.EventWebhook {
		d.Copies = paste.Copies(e)
		d.Curl = d.Copies[0].Text
	} else {
		d.Mail = newMail(e)
	}
	if e.Reply != nil {
		d.Reply = NewBody(e.Reply.Body, e.Reply.Headers.Get("Content-Type"), "")
	}
	return d
}

// NewOutcomes prepares an event for the part with its deliveries only.
func NewOutcomes(endpoint hookglass.EndpointID, e *hookglass.Event, now time.Time) *Detail {
	return &Detail{Event: e, Path: pathOf(endpoint, e.ID), Now: now}
}

// NewAuthentication prepares a mail for the part with its authentication only. One that was judged needs its payload.
func NewAuthentication(endpoint hookglass.EndpointID, e *hookglass.Event) *Detail {
	return &Detail{Event: e, Path: pathOf(endpoint, e.ID), Mail: &Mail{Results: resultsOf(e)}}
}

// NewMarks prepares an event for the part with its marks only. writes says whether the viewer may change them.
func NewMarks(endpoint hookglass.EndpointID, e *hookglass.Event, writes bool) *Detail {
	return &Detail{Event: e, Path: pathOf(endpoint, e.ID), Writes: writes, Message: verdict(e)}
}

// NoteMark returns a digest of the note, by which a form notices that the note changed meanwhile.
func NoteMark(e *hookglass.Event) string {
	sum := sha256.Sum256([]byte(e.Note))
	return hex.EncodeToString(sum[:8])
}

func pathOf(endpoint hookglass.EndpointID, id hookglass.EventID) string {
	return "/endpoints/" + string(endpoint) + "/requests/" + string(id)
}

// deletion returns the address that deletes the request and leads back to the search.
func (d *Detail) deletion() string {
	_, search, found := strings.Cut(d.Back, "?")
	if found {
		search = "?" + search
	}
	return d.Path + "/delete" + search
}

// rowTags is how many tags of a request its row shows. It counts the others.
const rowTags = 3

// maxTitle bounds the title of a request. The facts have the whole URL.
const maxTitle = 300

// Title returns the title of a request: its path and query, or its subject. To the bare URL of an endpoint, which is
// where most senders send everything, a request is called by its event type.
func Title(e *hookglass.Event) string {
	if e.Type == hookglass.EventEmail {
		return show.Line(cmp.Or(e.Subject, "(no subject)"))
	}
	path := e.Path
	switch {
	case typed(e):
		path = e.EventType
	case e.RawQuery != "":
		path += "?" + e.RawQuery
	}
	return show.Line(show.Short(path, maxTitle))
}

// typed reports whether the title of a request is its event type.
func typed(e *hookglass.Event) bool {
	return e.EventType != "" && e.Type != hookglass.EventEmail && (e.Path == "" || e.Path == "/") && e.RawQuery == ""
}

// sizeBelow reports whether the size stands in the second line of a row: subjects and event types need the first.
func sizeBelow(e *hookglass.Event) bool { return typed(e) || e.Type == hookglass.EventEmail }

// subtitle returns the event type and the provider of a request, or the best substitute. The end is cut where there is
// no room, and a mark before it tells the provider.
func subtitle(e *hookglass.Event) string {
	if e.Type == hookglass.EventEmail {
		return show.Line(e.From)
	}
	parts := make([]string, 0, 2)
	if e.EventType != "" && !typed(e) {
		parts = append(parts, show.Line(e.EventType))
	}
	if p := show.Provider(e.Provider); p != "" {
		parts = append(parts, p)
	}
	if len(parts) == 0 && e.ContentType != "" {
		media, _, _ := strings.Cut(e.ContentType, ";")
		parts = append(parts, show.Line(media))
	}
	return strings.Join(parts, " · ")
}

// maxPairs bounds the shown fields of a query or form.
const maxPairs = 500

// pairs parses a query string or form in order. What cannot be decoded is kept as it is.
func pairs(raw string) []Pair {
	var all []Pair
	for raw != "" && len(all) < maxPairs {
		var part string
		part, raw, _ = strings.Cut(raw, "&")
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		all = append(all, Pair{unescape(name), unescape(value)})
	}
	return all
}

func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// verdict explains the signature status in a sentence (spec: decisions, section 13 names the codes).
func verdict(e *hookglass.Event) string {
	switch e.SignatureStatus {
	case hookglass.SignatureVerified:
		return "The signature matches a configured secret: this request is genuine."
	case hookglass.SignatureFailed:
		switch e.SignatureReason {
		case "missing_signature":
			return "The request has no signature where the configured provider puts one."
		case "signature_mismatch":
			return "The signature does not match this body with any configured secret."
		case "timestamp_out_of_tolerance":
			return "The signature is correct, but its timestamp is too far from the time the request arrived."
		case "missing_timestamp", "malformed_timestamp":
			return "The signed timestamp is missing or cannot be read."
		case "missing_id":
			return "The signed message id is missing."
		case "malformed_signature", "no_supported_scheme":
			return "The signature is not in a format that this provider uses."
		case "body_hash_mismatch":
			return "The signature is correct, but it was made for a different body."
		case "unusable_secret":
			return "The configured secret is not a valid key for this provider."
		}
		return "The signature could not be verified."
	}
	if e.SignatureReason == provider.KeyUnavailable {
		return "Not checked: the sender's public key could not be fetched."
	}
	return "Not checked: no secret is configured for this sender."
}

// first returns the tab to show first.
func (d *Detail) first() Tab {
	for _, t := range d.tabs() {
		if t.id == d.First {
			return d.First
		}
	}
	switch {
	case d.Mail != nil && d.Mail.HTML != "":
		return TabMessage
	case d.Mail != nil:
		return TabText
	case d.Body.Total == 0 && len(d.Query) > 0:
		return TabQuery
	case d.Body.Total == 0:
		return TabHeaders
	}
	return TabBody
}
