package provider

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed table.json
var tableJSON []byte

// table is the parsed table.json, which is part of the program: any test finds a mistake in it.
var table = sync.OnceValue(func() *senders {
	t, err := parseTable(tableJSON)
	if err != nil {
		panic("internal/provider/table.json: " + err.Error())
	}
	return t
})

// row is a provider in table.json. README of the format: condition.go (match, hint), scheme.go (signatures).
type row struct {
	ID         string       `json:"id"`
	Name       string       `json:"name"`
	Match      []string     `json:"match"`           // any of these conjunctions identifies the provider
	Hint       []string     `json:"hint"`            // ... or of these, on an endpoint configured for it
	Event      []string     `json:"event"`           // the event type: the first template with a result
	Action     []string     `json:"action"`          // likewise: the action, if the event type does not include it
	EventID    []string     `json:"event_id"`        // likewise
	DeliveryID []string     `json:"delivery_id"`     // likewise
	SharedID   string       `json:"shared_id"`       // a header among delivery_id that different deliveries may have in common
	EventOnce  bool         `json:"event_id_unique"` // no two events have the same event_id, apart from attempts
	Flavours   [][2]string  `json:"flavours"`        // conjunction and name: variants of the provider, the first that holds
	Envelope   *envelope    `json:"envelope"`        // where deliveries of other senders are embedded
	Signatures []*scheme    `json:"signatures"`      // the first whose header is present counts, to prevent downgrades
	Any        bool         `json:"any"`             // ... any of them may count
	SecretForm [2]string    `json:"secret_form"`     // a pattern that all secrets of the sender match, and what it says of one
	Unsigned   bool         `json:"unsigned"`        // deliveries can be verified but not signed here
	Strip      []string     `json:"strip"`           // signature headers; a final * stands for anything
	Regenerate regeneration `json:"regenerate"`
}

// envelope describes where a body embeds a delivery of another sender.
type envelope struct {
	Pointer string      `json:"pointer"` // to a string that holds JSON
	Known   [][2]string `json:"known"`   // conjunction and name of senders that only occur embedded
	path    []string
	known   []named
}

// named is a conjunction with the name it stands for.
type named struct {
	when conjunction
	name string
}

// regeneration describes what a new delivery identity changes (providers.md section 5).
type regeneration struct {
	Headers []string `json:"headers"` // get the new UUID if present
	Present bool     `json:"present"` // when none is present, none is added
	Body    []string `json:"body"`    // pointers to fields that get the suffix if no header was changed or added; * is any element; "common": commonIDs
}

// sender is a row ready for use.
type sender struct {
	row
	hints                            []conjunction
	event, action, eventID, delivery []template
	flavours                         []named
	describe                         func(in *input, d *Detection)          // instead of the templates
	check                            func(in *input, secret string) reason  // instead of signatures
	seal                             func(o *Outgoing, secret string) error // signs, instead of signatures
	bodies                           [][]string
}

// rule is one conjunction of one sender in the order of precedence.
type rule struct {
	when   conjunction
	sender *sender
	order  int // strength × 10000 + position in the table
}

// Strengths; greater is weaker (providers.md section 1).
const (
	byOrdered = iota // headers of a provider whose headers others copy, in their settled order
	byHeader
	byAgent
	byBody
	byGeneric
)

// senders is the table indexed for detection.
type senders struct {
	all     []*sender
	byID    map[string]*sender
	headers map[string]*known // by lower-case name
	members map[string][]rule // rules on the body alone, by a member that must be present
	arrays  []rule            // rules on a body that is an array
	forms   []rule            // rules on a form
	strip   []string          // signature headers of all providers
	relays  []relay           // by the beginning of a header's lower-case name
}

// known is what the presence of a header implies.
type known struct {
	rules []rule // rules that need this header
	relay string // the gateway that sends it
}

// relay is a gateway that adds headers with a prefix to what it relays.
type relay struct{ prefix, id string }

func parseTable(text []byte) (*senders, error) {
	var file struct {
		Ordered, Named, Generic []row
		Relays                  []struct {
			ID      string
			Headers []string
		}
	}
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, err
	}
	t := &senders{byID: map[string]*sender{}, headers: map[string]*known{}, members: map[string][]rule{}}
	for i, group := range [][]row{file.Ordered, file.Named, file.Generic} {
		strength := []int{byOrdered, byHeader, byGeneric}[i]
		for _, r := range group {
			if err := t.add(r, strength); err != nil {
				return nil, fmt.Errorf("%s: %w", r.ID, err)
			}
		}
	}
	for _, r := range file.Relays {
		for _, h := range r.Headers {
			if prefix, wild := strings.CutSuffix(strings.ToLower(h), "*"); wild {
				t.relays = append(t.relays, relay{prefix, r.ID})
			} else {
				t.header(prefix).relay = r.ID
			}
		}
	}
	slices.Sort(t.strip)
	t.strip = slices.DeleteFunc(slices.Compact(t.strip), func(h string) bool { return h == "authorization" })
	return t, nil
}

func (t *senders) add(r row, strength int) error {
	if r.ID == "" || r.Name == "" || t.byID[r.ID] != nil {
		return fmt.Errorf("id or name is missing, or the id is there twice")
	}
	s := &sender{row: r}
	t.byID[r.ID] = s
	t.all = append(t.all, s)
	for i, text := range r.Match {
		when, err := parseConjunction(text)
		if err != nil {
			return err
		}
		t.index(rule{when, s, len(t.all)*64 + i}, strength)
	}
	for _, text := range r.Hint {
		when, err := parseConjunction(text)
		if err != nil {
			return err
		}
		s.hints = append(s.hints, when)
	}
	for _, set := range []struct {
		from []string
		to   *[]template
	}{{r.Event, &s.event}, {r.Action, &s.action}, {r.EventID, &s.eventID}, {r.DeliveryID, &s.delivery}} {
		for _, text := range set.from {
			tmpl, err := parseTemplate(text)
			if err != nil {
				return err
			}
			*set.to = append(*set.to, tmpl)
		}
	}
	var err error
	if s.flavours, err = parseNamed(r.Flavours); err != nil {
		return err
	}
	if e := r.Envelope; e != nil {
		e.path = tokens(e.Pointer)
		if e.known, err = parseNamed(e.Known); err != nil {
			return err
		}
	}
	for _, b := range r.Regenerate.Body {
		if b != commonFields {
			s.bodies = append(s.bodies, tokens(b))
		}
	}
	for _, h := range r.Strip {
		t.strip = append(t.strip, strings.ToLower(h))
	}
	return firstClass(s)
}

func parseNamed(pairs [][2]string) ([]named, error) {
	var all []named
	for _, p := range pairs {
		when, err := parseConjunction(p[0])
		if err != nil {
			return nil, err
		}
		all = append(all, named{when, p[1]})
	}
	return all, nil
}

// firstNamed returns the name of the first conjunction that holds.
func firstNamed(all []named, in *input) string {
	for _, n := range all {
		if n.when.holds(in) {
			return n.name
		}
	}
	return ""
}

// index adds a rule to the index that detection uses: under a header of its own, otherwise under the User-Agent or
// Content-Type, otherwise under what its body must contain. That determines its strength.
func (t *senders) index(r rule, strength int) {
	var shared, own string
	for _, c := range r.when {
		switch name := strings.ToLower(c.header); {
		case name == "" || c.absent:
		case name == "user-agent" || name == "content-type":
			shared = name
		case own == "":
			own = name
		}
	}
	under := own
	if own == "" {
		under = shared
		if strength != byGeneric {
			strength = byAgent
		}
	}
	if under != "" {
		r.order += strength * 10000
		k := t.header(under)
		k.rules = append(k.rules, r)
		return
	}
	if strength != byGeneric {
		strength = byBody
	}
	r.order += strength * 10000
	switch c := r.when[0]; {
	case c.form != "":
		t.forms = append(t.forms, r)
	case isIndex(c.pointer[0]):
		t.arrays = append(t.arrays, r)
	default:
		t.members[c.pointer[0]] = append(t.members[c.pointer[0]], r)
	}
}

// header returns the entry of a header's lower-case name.
func (t *senders) header(name string) *known {
	k := t.headers[name]
	if k == nil {
		k = &known{}
		t.headers[name] = k
	}
	return k
}

func isIndex(token string) bool {
	_, ok := arrayIndex(token)
	return ok
}
