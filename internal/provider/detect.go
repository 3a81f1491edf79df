package provider

import (
	"math"

	"hookglass"
)

// Detect returns who sent a request, by the precedence of providers.md section 1: headers of a provider's own, then the
// User-Agent, then the shape of the body, then generic kinds. Headers that several providers share never decide alone,
// relays never win, and generic_hmac is never detected. The body is read only if no header decides, or if it holds the
// event type or an id.
func Detect(r *Request) Detection {
	in := &input{Request: r}
	t := table()
	s, relay := t.identify(in)
	d := Detection{Provider: hookglass.UnknownProvider, Relay: relay}
	if s == nil {
		return d
	}
	d.Provider = s.ID
	if s.describe != nil {
		s.describe(in, &d)
		return d
	}
	d.EventType = first(s.event, in)
	d.EventID = first(s.eventID, in)
	d.DeliveryID = first(s.delivery, in)
	d.Flavour = firstNamed(s.flavours, in)
	if s.Envelope != nil {
		d.Inner = t.enclosed(s.Envelope, in)
	}
	return d
}

// Action returns what happened to the subject of an event, if its provider says so apart from the event type: "opened"
// for GitHub's pull_request. It is not part of a [Detection], because it is in the body, which detection seldom reads.
func Action(r *Request, provider string) string {
	s := table().byID[provider]
	if s == nil || len(s.action) == 0 {
		return ""
	}
	return first(s.action, &input{Request: r})
}

// identify returns the sender of a request, or nil if no rule matches, and the gateway that relayed it, or "".
func (t *senders) identify(in *input) (*sender, string) {
	best := rule{order: math.MaxInt}
	hinted, relay := best, ""
	var buf [64]byte
	for i := range in.Headers {
		name := lower(buf[:], in.Headers[i].Name)
		for _, r := range t.relays {
			if len(name) > len(r.prefix) && string(name[:len(r.prefix)]) == r.prefix {
				relay = lesser(relay, r.id)
			}
		}
		known := t.headers[string(name)]
		if known == nil {
			continue
		}
		relay = lesser(relay, known.relay)
		for _, r := range known.rules {
			if r.order < best.order && r.when.holds(in) {
				best = r
			}
			if in.Hint != "" && r.sender.ID == in.Hint && r.order < hinted.order && r.when.holds(in) {
				hinted = r
			}
		}
	}
	switch strength := best.order / 10000; {
	case strength == byHeader && hinted.order/10000 == byHeader:
		return hinted.sender, relay // headers of several providers: the endpoint's setting breaks the tie
	case strength < byBody:
		return best.sender, relay
	}
	if r, ok := t.byShape(in); ok {
		return r.sender, relay
	}
	if s := t.byID[in.Hint]; s != nil {
		for _, when := range s.hints {
			if when.holds(in) {
				return s, relay
			}
		}
	}
	return best.sender, relay
}

// lesser returns the alphabetically first of two names that is not empty, so that the order of headers does not matter.
func lesser(a, b string) string {
	if a == "" || b != "" && b < a {
		return b
	}
	return a
}

// enclosed returns the sender of the delivery inside an envelope, or "".
func (t *senders) enclosed(e *envelope, in *input) string {
	text := in.at(e.path).text()
	if text == "" {
		return ""
	}
	inner := &input{Request: &Request{Body: []byte(text)}}
	if name := firstNamed(e.known, inner); name != "" {
		return name
	}
	if r, ok := t.byShape(inner); ok {
		return r.sender.ID
	}
	return ""
}

// byShape applies the rules on the body alone.
func (t *senders) byShape(in *input) (rule, bool) {
	best := rule{order: math.MaxInt}
	consider := func(rules []rule) {
		for _, r := range rules {
			if r.order < best.order && r.when.holds(in) {
				best = r
			}
		}
	}
	switch doc := in.doc(); {
	case len(doc) == 0:
		if in.isForm() || in.boundary() != "" {
			consider(t.forms)
		}
	case doc[0] == '[':
		consider(t.arrays)
	default:
		for _, m := range in.top.members[:in.top.known] {
			consider(t.members[string(doc[m.name+1:m.nameEnd-1])])
		}
	}
	return best, best.sender != nil
}

// lower returns name in lower case, in buf when it fits; longer names are no provider's.
func lower(buf []byte, name string) []byte {
	if len(name) > len(buf) {
		return nil
	}
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	return buf[:len(name)]
}
