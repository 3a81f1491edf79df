// Package inspector is the page of one endpoint: its address, the requests that it caught, arriving live, and one
// of them in detail. What senders wrote is shown as text and never as markup.
package inspector

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/paste"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files are the style and the script.
//
//go:embed inspector.css inspector.js tree.js search.js jwt.js times.js notify.js
var Files embed.FS

// Model is what the page shows.
type Model struct {
	layout.Frame
	Endpoint hookglass.Endpoint
	Address  string // the webhook URL or the email address
	Mailbox  Mailbox
	Notice   string // what a form did
	Searches []hookglass.SavedSearch
	Tags     []hookglass.Tag // of the workspace
	Claims   bool            // who looks is signed in and may take over this temporary endpoint
	List
	Detail *Detail // nil: none is open
	Gone   string  // why no detail could be opened
}

// nothing is said of a search that has looked at all requests.
const nothing = "No requests match yet."

// Mailbox is how mail reaches an email endpoint.
type Mailbox struct {
	paste.Mailbox
	SMTP string // where the server takes it by SMTP, for people; empty: nowhere
}

// plus is an example of an address that is the endpoint's as well.
func (m Model) plus() string {
	local, domain, _ := strings.Cut(m.Address, "@")
	return local + "+test1@" + domain
}

// List is the list of requests, or a part of it.
type List struct {
	Endpoint hookglass.EndpointID
	Mail     bool                   // of an email endpoint
	Events   []*hookglass.Event     // newest first
	Query    string                 // as typed
	Fault    string                 // what is wrong with the query
	Older    string                 // the cursor of the next part; empty: there is none
	Cursor   string                 // of this part; empty: the newest
	Newest   string                 // where a live stream goes on after this list
	Place    func(seq int64) string // the cursor of what follows an event
	Open     hookglass.EventID      // the one shown in detail
	Writes   bool                   // who looks may do more than read and delete
	Now      time.Time
}

// example is a search, as one may be typed.
func (l List) example() string {
	if l.Mail {
		return "subject:invoice from:alice"
	}
	return "provider:stripe sig:failed"
}

// live reports whether new requests belong into the list as they come.
func (l List) live() bool { return l.Cursor == "" && l.Fault == "" }

// Path is an address below the endpoint's, with the query kept.
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
	Back    string // of the list without it
	Curl    string
	Body    Body
	Reply   Body
	Query   []Pair
	Message string // what the signature's status means
	Now     time.Time
	Writes  bool // who looks may do more than read and delete
	First   Tab  // shown at first; empty: what fits the request
	Copies  []paste.Copy
	Mail    *Mail // nil for webhooks

	// What a handler reads besides.
	Signature *Signature // nil: not judged
	Forwards  []Forward
	Reports   []*hookglass.DeliveryReport
	Runs      []hookglass.ActionRun
	Actions   map[string]string // names of the actions of the runs by id
	Replays   []*hookglass.Replay
	Releases  []hookglass.Release
	ReleaseTo []string        // whom the operator allows mail to be sent on to; empty: nobody
	Targets   []string        // where replays went before, and forwarding targets
	Tags      []hookglass.Tag // of the workspace
	Tunnel    bool            // a local machine is connected
}

// outcomes is how many there are of what became of the request.
func (d *Detail) outcomes() int { return len(d.Forwards) + len(d.Reports) + len(d.Runs) }

// settling is how long after it came a request may have deliveries that are not there yet: jobs that begin, and local
// machines that report.
const settling = time.Minute

// every is how often the deliveries are fetched again, in milliseconds; empty where nothing is under way.
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

// The tabs, by their place in an address.
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

// Signature is what can be said of a signature now.
type Signature struct {
	Status          hookglass.SignatureStatus
	Reason, Message string
	Code, Finding   string // of the finding
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

// NewDetail reads an event, with its payload, for the page.
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

// NewOutcomes is an event of which nothing is shown but what became of it.
func NewOutcomes(endpoint hookglass.EndpointID, e *hookglass.Event, now time.Time) *Detail {
	return &Detail{Event: e, Path: pathOf(endpoint, e.ID), Now: now}
}

// NewMarks is an event of which nothing is shown but its marks; writes says whether who looks may change them.
func NewMarks(endpoint hookglass.EndpointID, e *hookglass.Event, writes bool) *Detail {
	return &Detail{Event: e, Path: pathOf(endpoint, e.ID), Writes: writes}
}

// NoteMark stands for the note of a request in a form, to tell whether it was changed since.
func NoteMark(e *hookglass.Event) string {
	sum := sha256.Sum256([]byte(e.Note))
	return hex.EncodeToString(sum[:8])
}

func pathOf(endpoint hookglass.EndpointID, id hookglass.EventID) string {
	return "/endpoints/" + string(endpoint) + "/requests/" + string(id)
}

// deletion is where the request is deleted, from the search that it was opened in.
func (d *Detail) deletion() string {
	_, search, found := strings.Cut(d.Back, "?")
	if found {
		search = "?" + search
	}
	return d.Path + "/delete" + search
}

// rowTags is how many tags of a request its row names; of others it tells how many there are.
const rowTags = 3

// maxTitle bounds the path and query that name a request; the URL stands whole among the facts.
const maxTitle = 300

// Title is the request in a few words.
func (d *Detail) Title() string { return title(d.Event) }

// Title is a request in a few words.
func Title(e *hookglass.Event) string { return title(e) }

func title(e *hookglass.Event) string {
	if e.Type == hookglass.EventEmail {
		if e.Subject == "" {
			return "(no subject)"
		}
		return show.Line(e.Subject)
	}
	path := e.Path
	if e.RawQuery != "" {
		path += "?" + e.RawQuery
	}
	path, cut := show.Cut(path, maxTitle)
	if cut {
		path += "…"
	}
	return show.Line(path)
}

// subtitle is who a request is from and what it is about, as far as that is known.
func subtitle(e *hookglass.Event) string {
	if e.Type == hookglass.EventEmail {
		return show.Line(e.From)
	}
	parts := make([]string, 0, 2)
	if p := show.Provider(e.Provider); p != "" {
		parts = append(parts, p)
	}
	if e.EventType != "" {
		parts = append(parts, show.Line(e.EventType))
	}
	if len(parts) == 0 && e.ContentType != "" {
		media, _, _ := strings.Cut(e.ContentType, ";")
		parts = append(parts, show.Line(media))
	}
	return strings.Join(parts, " · ")
}

// maxPairs bounds the fields of a query or form that are shown.
const maxPairs = 500

// pairs reads a query string or form in its order. What cannot be decoded is shown as it came.
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

// verdict says in a sentence what the signature's status means (decisions, section 13 names the codes).
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
	return "Not checked: no secret is configured for this sender."
}

// first is the tab to begin with.
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
