package provider

import (
	"math"

	"hookglass"
)

// Detect says who sent a request, by the precedence of providers.md section 1: headers of a provider's own, then the
// User-Agent, then the shape of the body, then generic kinds. Headers that several providers share never decide alone,
// relays never win, and generic_hmac is never detected. The body is read only when no header decides, or when the event
// type or an id stands in it.
func Detect(r *Request) Detection {
	in := &input{Request: r}
	t := table()
	d := Detection{Provider: hookglass.UnknownProvider, Relay: t.relay(r.Headers)}
	s := t.identify(in)
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
	d.Flavour = first(s.flavour, in)
	return d
}

// identify returns the sender of a request, nil when no rule names one.
func (t *senders) identify(in *input) *sender {
	best := rule{order: math.MaxInt}
	hinted := best
	var buf [64]byte
	for i := range in.Headers {
		name := lower(buf[:], in.Headers[i].Name)
		for _, r := range t.headers[string(name)] {
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
		return hinted.sender // several providers' own headers: the endpoint's setting breaks the tie
	case strength < byBody:
		return best.sender
	}
	if r, ok := t.byShape(in); ok {
		return r.sender
	}
	if s := t.byID[in.Hint]; s != nil {
		for _, when := range s.hints {
			if when.holds(in) {
				return s
			}
		}
	}
	return best.sender
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
		if in.isForm() {
			consider(t.forms)
		}
	case doc[0] == '[':
		consider(t.arrays)
	default:
		for i := range in.top.known {
			name := in.top.members[i].name
			consider(t.members[string(name[1:len(name)-1])])
		}
	}
	return best, best.sender != nil
}

// relay names the gateway that passed the request on, "" when none shows.
func (t *senders) relay(h hookglass.Headers) string {
	var buf [64]byte
	found := ""
	for i := range h {
		if id, ok := t.relays[string(lower(buf[:], h[i].Name))]; ok && (found == "" || id < found) {
			found = id
		}
	}
	return found
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
