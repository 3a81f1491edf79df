// Package delivery turns a captured event into a request to a target and sends it: identity and signature modes, a
// person's overrides, mail as JSON, the headers that mark a replay, and how a failure is described. A Forwarder
// delivers to forwarding targets, with retries; the outcome of a replay is the caller's to store.
//
// Build and its helpers are pure; one Forwarder runs on each node.
package delivery

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/outbound"
	"hookglass/internal/provider"
	"hookglass/internal/timeshift"
)

// The headers of every replay (spec, Replay rule 6; spec: decisions, section 1).
const (
	headerReplay = "X-Service-Replay"
	headerTime   = "X-Service-Replay-Time"

	// HeaderOriginal names the original event of a replay or a forward.
	HeaderOriginal = "X-Service-Original-Request"
)

// maxOverrides bounds the headers that a caller sets, and maxTargetURL the target including an overridden query.
const (
	maxOverrides = 50
	maxTargetURL = 8 << 10
)

// Order says what to deliver, where and how.
type Order struct {
	Event     *hookglass.Event // with its payload
	TargetURL string
	Local     bool // deliver to a connected local machine instead; only it knows its address
	Options   hookglass.ReplayOptions
	Overrides Overrides
	Configs   []provider.Config // the endpoint's enabled ones, secrets in the clear
	Proxied   bool              // webhooks arrive through proxies of this installation; their headers are left out
	Identity  provider.Identity // for regenerate
	At        time.Time
	Shift     timeshift.Shift // moves the times of the copy, after everything else but the signature
	Unwarned  bool            // skip the warnings about signatures, which are the most costly and nobody reads
}

// delta returns how far times are moved.
func (o Order) delta() time.Duration { return o.Shift.Delta(o.Event.ReceivedAt, o.At) }

// Overrides change a copy of the event before modes apply. Nil fields change nothing.
type Overrides struct {
	Method  *string
	Headers map[string]*string // replace or add; nil removes
	Body    *string
	Query   *string // replaces the target's query, without a question mark
}

// Request is what a target gets.
type Request struct {
	hookglass.SentRequest
	NewDeliveryID string // empty: the original identity was kept
	TimeChanges   []hookglass.TimeChange
	Warnings      []string // sentences for a person
	MaxResponse   int64    // the answer's body is cut there; 0: outbound's default
	Turn          *outbound.Turn

	signedChanged bool // a new identity or body changed what the captured signature covers
	keep          bool // the connection may be shared; only for requests that may arrive twice
	own           own  // headers that the target adds; none of their values is kept
}

// Build builds the request of an order. It answers validation_failed when the modes do not fit the event or an override
// cannot be sent (spec, Replay rule 7).
func Build(o Order) (Request, error) {
	out := provider.Outgoing{Method: o.Event.Method, URL: o.TargetURL, Headers: o.Event.Headers, Body: o.Event.Body}
	mail := o.Event.Type == hookglass.EventEmail
	if mail {
		out = provider.Outgoing{
			Method: "POST", URL: o.TargetURL, Body: MailJSON(o.Event),
			Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}},
		}
		for _, hops := range o.Event.Headers.Values(outbound.HopHeader) { // a notification about a mail may lead back to it
			out.Headers = append(out.Headers, hookglass.Header{Name: outbound.HopHeader, Value: hops})
		}
	}
	if o.Local {
		out.URL = received(o.Event)
	}
	out.Headers = outbound.Sanitize(out.Headers)
	if o.Proxied {
		out.Headers = slices.DeleteFunc(out.Headers, proxyTrace)
	}
	if err := o.Overrides.apply(&out); err != nil {
		return Request{}, err
	}
	r := Request{signedChanged: o.Overrides.Body != nil && *o.Overrides.Body != string(o.Event.Body)}
	if r.signedChanged && coding.Of(out.Headers) != "" && !o.Overrides.names("Content-Encoding") {
		r.Warnings = append(r.Warnings, "The body was replaced and is sent as given, with the captured Content-Encoding. Remove that header with overrides.headers unless the new body is encoded as well.")
	}
	var err error
	if !mail {
		if out, err = o.identify(out, &r); err != nil {
			return Request{}, err
		}
	}
	if out, err = o.shift(out, &r); err != nil {
		return Request{}, err
	}
	if !mail {
		if out, err = o.sign(out, &r); err != nil {
			return Request{}, err
		}
	}
	out.Headers = slices.DeleteFunc(out.Headers, func(h hookglass.Header) bool {
		return strings.EqualFold(h.Name, headerReplay) || strings.EqualFold(h.Name, HeaderOriginal) || strings.EqualFold(h.Name, headerTime)
	})
	out.Headers = append(out.Headers,
		hookglass.Header{Name: headerReplay, Value: "true"},
		hookglass.Header{Name: HeaderOriginal, Value: string(o.Event.ID)},
		hookglass.Header{Name: headerTime, Value: o.At.UTC().Format(hookglass.TimeLayout)})
	if o.Local {
		out.URL = below(o.Event, out.URL)
	}
	r.SentRequest = hookglass.SentRequest{Method: out.Method, URL: out.URL, Headers: out.Headers, Body: out.Body}
	return r, nil
}

// received returns the URL at which the event arrived. Some providers sign the URL: a handler behind the tunnel must
// verify against the one that the sender signed.
func received(e *hookglass.Event) string {
	base, _, _ := strings.Cut(e.URL, "?")
	if e.RawQuery != "" {
		base += "?" + e.RawQuery
	}
	return base
}

// below returns the URL relative to the address of a local machine: the captured path with the query of url.
func below(e *hookglass.Event, url string) string {
	path := e.Path
	if e.Type == hookglass.EventEmail {
		path = "/"
	}
	if _, query, _ := strings.Cut(url, "?"); query != "" {
		path += "?" + query
	}
	return path
}

// identify gives the copy a new delivery identity if the options ask for one.
func (o Order) identify(out provider.Outgoing, r *Request) (provider.Outgoing, error) {
	if o.Options.Identity != hookglass.IdentityRegenerate {
		return out, nil
	}
	out, changed, err := provider.Regenerate(out, provider.Detection{Provider: o.Event.Provider}, o.Configs, o.Identity)
	if err != nil {
		return out, err
	}
	if len(changed) == 0 {
		r.Warnings = append(r.Warnings, "The event has no delivery identity that could be changed safely, so it keeps its own.")
		return out, nil
	}
	switch _, inHeader := changed[0].InHeader(); {
	case inHeader:
		r.NewDeliveryID = o.Identity.UUID
		r.signedChanged = r.signedChanged || slices.ContainsFunc(changed, func(c provider.Change) bool {
			name, _ := c.InHeader()
			return signedIDs[strings.ToLower(name)]
		})
	default:
		r.signedChanged = true
		// Of several changed values, report the one that its provider uses as the identity.
		r.NewDeliveryID = changed[0].Value
		found := provider.Detect(&provider.Request{Method: out.Method, Headers: out.Headers, Body: out.Body, ReceivedAt: o.At})
		for _, id := range []string{found.DeliveryID, found.EventID} {
			if slices.ContainsFunc(changed, func(c provider.Change) bool { return c.Value == id }) {
				r.NewDeliveryID = id
				break
			}
		}
	}
	return out, nil
}

// signedIDs are the headers with a delivery id that the signature covers together with the body. Lower case.
var signedIDs = map[string]bool{"webhook-id": true, "svix-id": true, "twitch-eventsub-message-id": true, "paypal-transmission-id": true}

// shift moves the times of the copy. Those that belong to the signature are left alone here: they are made anew, kept
// or stripped together with it.
func (o Order) shift(out provider.Outgoing, r *Request) (provider.Outgoing, error) {
	if o.Shift.IsZero() {
		return out, nil
	}
	kept := provider.Strip(provider.Detection{Provider: o.Event.Provider}, out.Headers, o.Configs...)
	out, changes, err := timeshift.Apply(out, o.delta(), func(name string) bool { return !kept.Has(name) })
	r.TimeChanges = changes
	inBody := func(c hookglass.TimeChange) bool { return c.Header == "" }
	if coding.Of(out.Headers) != "" && len(out.Body) > 0 && !slices.ContainsFunc(changes, inBody) {
		r.Warnings = append(r.Warnings, "The body is compressed, so the times in it were not moved.")
	}
	return out, err
}

// Signable reports whether there is a config that can sign a delivery of the event again.
func Signable(e *hookglass.Event, configs []provider.Config) bool {
	_, err := Order{Event: e, Configs: configs}.signer()
	return e.Type == hookglass.EventWebhook && err == nil
}

// sign keeps, strips or remakes the signature, as the mode says.
func (o Order) sign(out provider.Outgoing, r *Request) (provider.Outgoing, error) {
	d := provider.Detection{Provider: o.Event.Provider}
	switch o.Options.Signature {
	case hookglass.SignatureStrip:
		out.Headers = provider.Strip(d, out.Headers, o.Configs...)
	case hookglass.SignatureResign:
		c, err := o.signer()
		if err != nil {
			return out, err
		}
		if !o.Local { // some providers sign the URL, as its receiver sees it
			out.URL = outbound.AsSent(out.URL)
		}
		if !o.Shift.IsZero() {
			return o.signMoved(out, c, r)
		}
		return provider.Sign(out, c, o.At)
	default:
		if o.Unwarned {
			break
		}
		kept := provider.Strip(d, out.Headers, o.Configs...)
		signed := slices.ContainsFunc(out.Headers, func(h hookglass.Header) bool { return !kept.Has(h.Name) && !o.Overrides.names(h.Name) })
		if len(r.TimeChanges) > 0 && (signed || provider.TimesSigned(d, out)) {
			r.Warnings = append(r.Warnings, "Times were moved and the captured signature was kept; a receiver that checks it will refuse it. Use signature_mode resign or strip.")
		} else if r.signedChanged && signed {
			r.Warnings = append(r.Warnings, "What is signed was changed and the captured signature was kept; a receiver that checks it will refuse it. Use signature_mode resign or strip.")
		} else if stale(out.Headers, kept, o.At) {
			r.Warnings = append(r.Warnings, "The captured signature carries a timestamp more than 5 minutes old; a receiver that checks it will refuse it. Use signature_mode resign or strip.")
		}
	}
	return out, nil
}

// signMoved signs at the time of capture, moved like all other times, and records the change of a header that holds the
// signature's time.
func (o Order) signMoved(out provider.Outgoing, c provider.Config, r *Request) (provider.Outgoing, error) {
	signed, err := provider.Sign(out, c, o.Event.ReceivedAt.Add(o.delta()))
	if err != nil {
		return out, err
	}
	for _, h := range out.Headers {
		if now := signed.Headers.Get(h.Name); now != h.Value && strings.Contains(strings.ToLower(h.Name), "timestamp") {
			r.TimeChanges = append(r.TimeChanges, hookglass.TimeChange{Header: h.Name, From: h.Value, To: now})
		}
	}
	return signed, nil
}

// signer returns the config to sign with: the detected provider's, else the one that verified the event, else a generic
// one.
func (o Order) signer() (c provider.Config, err error) {
	id := o.Event.Provider
	if info, known := provider.Known(id); known && !info.Signable {
		return c, hookglass.Invalid("signature_mode", "cannot be resign: deliveries of %s cannot be signed here", info.Name)
	}
	of := func(id string) bool {
		i := slices.IndexFunc(o.Configs, func(c provider.Config) bool { return c.Provider == id })
		if i >= 0 {
			c = o.Configs[i]
		}
		return i >= 0
	}
	if of(id) {
		return c, nil
	}
	if c, ok := provider.Verifying(provider.Received(o.Event), provider.Detection{Provider: id}, o.Configs); ok {
		return c, nil
	}
	if of(provider.GenericHMAC) {
		return c, nil
	}
	return c, hookglass.Invalid("signature_mode", "cannot be resign: the endpoint has no enabled signature config for %s", id)
}

// tolerance is how old a signature may be for Stripe, Slack, Standard Webhooks and most others.
const tolerance = 5 * time.Minute

// signedTimes are the headers with a signature's time that remain when the signature is stripped. Lower case.
var signedTimes = map[string]bool{"twitch-eventsub-message-timestamp": true, "linear-timestamp": true}

// stale reports whether the time of a captured signature is outside the usual tolerance, given what is kept of the
// headers where it is stripped.
func stale(h, kept hookglass.Headers, now time.Time) bool {
	if len(kept) == len(h) {
		return false // not signed
	}
	for _, f := range h {
		if kept.Has(f.Name) && !signedTimes[strings.ToLower(f.Name)] {
			continue
		}
		for part := range strings.FieldsFuncSeq(f.Value, func(r rune) bool { return r == ',' || r == ';' || r == ' ' }) {
			at, ok := signedTime(strings.TrimPrefix(strings.TrimPrefix(part, "t="), "ts="))
			if ok && now.Sub(at).Abs() > tolerance {
				return true
			}
		}
	}
	return false
}

// signedTime parses a time as signatures carry it: Unix seconds or milliseconds, or RFC 3339.
func signedTime(s string) (time.Time, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err == nil && len(s) == 10:
		return time.Unix(n, 0), true
	case err == nil && len(s) == 13:
		return time.UnixMilli(n), true
	}
	at, err := time.Parse(time.RFC3339, s)
	return at, err == nil
}

// proxyTrace reports whether a field is one in which proxies describe what is in front of them.
func proxyTrace(h hookglass.Header) bool {
	name := strings.ToLower(h.Name)
	return strings.HasPrefix(name, "x-forwarded-") || name == "forwarded" || name == "x-real-ip"
}

// apply applies the overrides to the copy. It refuses, by field, what the outbound client would drop or refuse.
func (v Overrides) apply(out *provider.Outgoing) error {
	var faults []hookglass.FieldError
	fault := func(field, message string) {
		faults = append(faults, hookglass.FieldError{Field: "overrides." + field, Message: message})
	}
	if v.Method != nil {
		if !slices.Contains(hookglass.Methods, *v.Method) {
			fault("method", "must be one of GET, POST, PUT, PATCH, DELETE, HEAD and OPTIONS")
		}
		out.Method = *v.Method
	}
	if v.Body != nil {
		out.Body = []byte(*v.Body)
	}
	if v.Query != nil {
		if !queryText(*v.Query) {
			fault("query", "must be the query string as it is sent: percent-encoded, without ? and #")
		}
		base, _, _ := strings.Cut(out.URL, "#")
		base, _, _ = strings.Cut(base, "?")
		if out.URL = base; *v.Query != "" {
			out.URL += "?" + *v.Query
		}
		if len(out.URL) > maxTargetURL {
			fault("query", "makes the target longer than 8 KiB")
		}
	}
	v.applyHeaders(out, fault)
	if len(faults) > 0 {
		return hookglass.InvalidFields(faults)
	}
	return nil
}

func (v Overrides) applyHeaders(out *provider.Outgoing, fault func(field, message string)) {
	names, faults := outbound.Settable(v.Headers, maxOverrides)
	for _, message := range faults {
		fault("headers", message)
	}
	for _, name := range names {
		out.Headers = set(out.Headers, name, v.Headers[name])
	}
}

// names reports whether a header is set or removed.
func (v Overrides) names(header string) bool {
	for name := range v.Headers {
		if strings.EqualFold(name, header) {
			return true
		}
	}
	return false
}

// set replaces a field in the place of the first one of that name, or adds it; nil removes. h is the caller's own.
func set(h hookglass.Headers, name string, value *string) hookglass.Headers {
	done := value == nil
	kept := h[:0:0]
	for _, f := range h {
		if strings.EqualFold(f.Name, name) {
			if done {
				continue
			}
			f.Value, done = *value, true
		}
		kept = append(kept, f)
	}
	if !done {
		kept = append(kept, hookglass.Header{Name: name, Value: *value})
	}
	return kept
}

func queryText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' })
}

// AppendPath appends the path and, if given, the query of an event to those of the target, both as received. Forward
// steps use it (spec: decisions, section 8). A # that a sender left as it is becomes %23: in the address it would begin
// a fragment, and nothing from there on would be sent.
func AppendPath(target, path, rawQuery string) string {
	target, _, _ = strings.Cut(target, "#")
	path, rawQuery = strings.ReplaceAll(path, "#", "%23"), strings.ReplaceAll(rawQuery, "#", "%23")
	base, query, _ := strings.Cut(target, "?")
	if path != "" && path != "/" {
		base = strings.TrimSuffix(base, "/") + "/" + strings.TrimPrefix(path, "/")
	}
	switch {
	case query == "":
		query = rawQuery
	case rawQuery != "":
		query += "&" + rawQuery
	}
	if query == "" {
		return base
	}
	return base + "?" + query
}
