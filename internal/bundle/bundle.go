// Package bundle makes files of captured events that can be given away. Personal data and secrets are replaced by
// substitutes of the same form, consistently throughout a bundle, and each delivery is signed again with a public
// secret, so that a receiver's verification still passes. It hides what is recognised, how a substitute is made, and
// the form of the file.
//
// A substitute is derived from the value by HMAC with a random key that is forgotten with the [Maker], so it cannot be
// reversed, and two bundles of one event do not match. A value that is recognised once is replaced everywhere, also
// where it is encoded; if a recognised value would remain, no bundle is made.
//
// It is pure except for the random key. A Maker is for one bundle and one goroutine.
package bundle

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/provider"
)

// Bounds of a bundle.
const (
	MaxEvents   = 100
	MaxBytes    = 8 << 20 // of all bodies together, decompressed: each byte is examined many times
	maxPointers = 100
	maxPointer  = 1 << 10 // bytes
)

// Options select what is replaced besides what is recognised, and what is not.
type Options struct {
	// Pointers name what is always replaced: a JSON Pointer into the body, in which * matches any name or index (/field
	// for a form), header:<name> or query:<name>.
	Pointers []string
	// Keep names what is never replaced: pointers of the same form, and kinds.
	Keep []string
	// Secrets are always replaced, even under Keep.
	Secrets []string
	// Addresses are like Secrets, but replaced by mail addresses.
	Addresses []string
}

// Source is an event that goes into a bundle.
type Source struct {
	Type       hookglass.EventType
	Request    provider.Outgoing // URL is only the path and the query
	Provider   string
	EventType  string
	Configs    []provider.Config // the endpoint's; only their schemes are used
	Verifier   string            // the provider of the config that verified the event; empty: none did
	ReceivedAt time.Time
}

// Replacement describes what was replaced, without the value.
type Replacement struct {
	Event int    // its number in the bundle, from 1
	Where string // as in Options.Pointers, with the substitutes of replaced member names; "body" or "path" within a text
	Kind  Kind
	Count int
}

// Made is a bundle with a report on its replacements.
type Made struct {
	Events   []Event
	Replaced []Replacement
}

// Maker makes one bundle.
type Maker struct {
	pointers, keep []place
	keepKinds      map[Kind]bool
	fakes          *fakes
	known          known
	words          map[string]bool // words of event types, which are not names of people

	ctx      context.Context // once it is done, texts stay as they are, and no bundle is made
	event    int
	mail     bool // the event is a mail
	collect  bool // first pass: only collect values
	inflated int  // bytes that were unpacked so far
	replaced []Replacement
	lines    map[line]int // of replaced
}

// line tells replacements apart.
type line struct {
	event int
	where string
	kind  Kind
}

// New answers validation_failed for invalid options.
func New(o Options) (*Maker, error) {
	var key [32]byte
	rand.Read(key[:])
	m := &Maker{keepKinds: map[Kind]bool{}, fakes: newFakes(key[:]), known: newKnown(), words: map[string]bool{}, lines: map[line]int{}}
	var faults []hookglass.FieldError
	for _, list := range []struct {
		field string
		texts []string
		to    *[]place
	}{{"pointers", o.Pointers, &m.pointers}, {"keep", o.Keep, &m.keep}} {
		if len(list.texts) > maxPointers {
			faults = append(faults, hookglass.FieldError{Field: list.field, Message: "may name 100 places at most"})
			continue
		}
		for _, text := range list.texts {
			if list.field == "keep" && slices.Contains(keepable, Kind(text)) {
				m.keepKinds[Kind(text)] = true
				continue
			}
			p, fault := parsePlace(text)
			if fault != "" {
				faults = append(faults, hookglass.FieldError{Field: list.field, Message: fault})
				break
			}
			*list.to = append(*list.to, p)
		}
	}
	if err := hookglass.InvalidFields(faults); err != nil {
		return nil, err
	}
	for _, s := range o.Secrets {
		m.known.forbid(s, Secret)
	}
	for _, s := range o.Addresses {
		m.known.forbid(s, Email)
	}
	return m, nil
}

// Make makes the bundle, which may take long, until ctx is done. It answers payload_too_large beyond the bounds, and
// conflict if a recognised value could not be replaced everywhere.
func (m *Maker) Make(ctx context.Context, sources []Source) (Made, error) {
	m.ctx = ctx
	if len(sources) > MaxEvents {
		return Made{}, hookglass.Errorf(hookglass.CodePayloadTooLarge, "A bundle may hold %d requests at most.", MaxEvents)
	}
	total := 0
	drafts := make([]draft, len(sources))
	for i, s := range sources {
		drafts[i] = open(s)
		if total += len(drafts[i].body); total > MaxBytes {
			return Made{}, hookglass.Errorf(hookglass.CodePayloadTooLarge, "The bodies of a bundle may have 8 MiB together.")
		}
		for _, word := range words(s.EventType + " " + s.Provider) {
			m.words[word] = true
		}
	}
	for _, m.collect = range []bool{true, false} { // two passes: values of the last event are replaced in the first, too
		for i, d := range drafts {
			m.event, m.mail = i+1, sources[i].Type == hookglass.EventEmail
			d = m.draft(d)
			if !m.collect {
				drafts[i] = d
			}
		}
	}
	made := Made{Replaced: m.replaced}
	for i, s := range sources {
		if ctx.Err() != nil {
			return Made{}, ctx.Err()
		}
		e := drafts[i].seal(s, i+1)
		if m.left(e) {
			return Made{}, hookglass.Errorf(hookglass.CodeConflict, "A value that was to be replaced would still be readable in request %d, so the bundle was not made; name where it stands in pointers.", i+1)
		}
		made.Events = append(made.Events, e)
	}
	return made, nil
}

// note records a replacement.
func (m *Maker) note(where string, kind Kind) {
	if m.collect {
		return
	}
	here := line{m.event, where, kind}
	if i, found := m.lines[here]; found {
		m.replaced[i].Count++
		return
	}
	m.lines[here] = len(m.replaced)
	m.replaced = append(m.replaced, Replacement{m.event, where, kind, 1})
}

// left reports whether a value that is known for sure remains in an event, plain or encoded.
func (m *Maker) left(e Event) bool {
	for _, text := range []string{e.Head, string(e.Body)} {
		if len(m.known.find(text, true)) > 0 || len(m.encoded(text, true)) > 0 || len(m.escaped(text, true)) > 0 {
			return true
		}
	}
	return false
}

// words returns the words of a text, in lower case.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') })
}
