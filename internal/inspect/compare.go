package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/jsondoc"
)

// Bounds of a comparison: what a person reads, and what a diff may cost.
const (
	maxChanges  = 100       // of fields, headers, parameters and of a body, each
	maxSide     = 500       // bytes shown of one side
	maxPath     = 1_000     // bytes shown of a path, as of JSON: a field's name may be as long as a body
	maxDiffText = 128 << 10 // bytes of a text that is compared line by line
	maxDiffLine = 4_000     // lines of it
	maxDiffed   = 16 << 10  // bytes shown of the differing lines
)

// Compare tells how two events in the detail form differ: their fields, headers by name without case, query parameters,
// and bodies, decompressed: JSON by pointer, forms by parameter and the JSON in one by pointer, other text by line.
// What cannot be read so is compared as bytes.
func Compare(left, right *hookglass.Event) hookglass.Comparison {
	c := hookglass.Comparison{Left: left.ID, Right: right.ID}
	for _, f := range []struct{ name, left, right string }{
		{"type", string(left.Type), string(right.Type)},
		{"endpoint_id", string(left.EndpointID), string(right.EndpointID)},
		{"method", left.Method, right.Method},
		{"path", left.Path, right.Path},
		{"content_type", left.ContentType, right.ContentType},
		{"ip_address", left.IP, right.IP},
		{"status", number(left.Status), number(right.Status)},
		{"detected_provider", left.Provider, right.Provider},
		{"event_type", left.EventType, right.EventType},
		{"event_id", left.EventRef, right.EventRef},
		{"delivery_id", left.DeliveryID, right.DeliveryID},
		{"signature_status", string(left.SignatureStatus), string(right.SignatureStatus)},
		{"signature_reason", left.SignatureReason, right.SignatureReason},
		{"from", left.From, right.From},
		{"to", left.To, right.To},
		{"subject", left.Subject, right.Subject},
	} {
		if f.left != f.right {
			c.Fields = append(c.Fields, change(f.name, given(f.left), given(f.right)))
		}
	}
	l, r := payload(left), payload(right)
	c.Headers, c.MoreHeaders = compareLists(headerValues(l.Headers), headerValues(r.Headers))
	c.Query, c.MoreQuery = compareLists(parameterValues(left.RawQuery), parameterValues(right.RawQuery))
	if c.Body = (hookglass.BodyChanges{Form: "bytes", Identical: bytes.Equal(l.Body, r.Body), Left: int64(len(l.Body)), Right: int64(len(r.Body))}); !c.Body.Identical {
		plainLeft, decodedLeft := plain(l)
		plainRight, decodedRight := plain(r)
		c.Body.Decoded = decodedLeft || decodedRight
		compareBodies(&c.Body, hookglass.IsForm(left.ContentType) && hookglass.IsForm(right.ContentType), plainLeft, plainRight)
	}
	return c
}

// plain is the body of a payload as it is read, and whether it was compressed. What cannot be decompressed is as it
// came.
func plain(p *hookglass.Payload) ([]byte, bool) {
	of := coding.Of(p.Headers)
	if of == "" || len(p.Body) == 0 {
		return p.Body, false
	}
	body, err := coding.Decoded(p.Body, of, jsondoc.MaxBytes)
	if errors.Is(err, coding.ErrLonger) {
		for i := 0; i < utf8.UTFMax-1 && !utf8.RuneStart(body[len(body)-1]); i++ { // the bound may fall into a character
			body = body[:len(body)-1]
		}
		return body[:len(body)-1], true
	}
	if err != nil {
		return p.Body, false
	}
	return body, true
}

func payload(e *hookglass.Event) *hookglass.Payload {
	if e.Payload == nil {
		return new(hookglass.Payload)
	}
	return e.Payload
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// given is nil for what is not there.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// change makes a change whose path and sides are text of a bounded length.
func change(path string, left, right *string) hookglass.Change {
	c := hookglass.Change{Path: brief(hookglass.Readable(path), maxPath)}
	for _, side := range []struct {
		from *string
		to   **string
	}{{left, &c.Left}, {right, &c.Right}} {
		if side.from == nil {
			continue
		}
		text := hookglass.Readable(*side.from)
		if len(text) > maxSide {
			text, c.Cut = hookglass.Beginning(text, maxSide), true
		}
		*side.to = &text
	}
	if c.Left != nil && c.Right != nil && *c.Left == *c.Right && !c.Cut {
		escapeBytes(c.Left, *left)
		escapeBytes(c.Right, *right)
	}
	return c
}

// escapeBytes shows bytes that are not UTF-8 as what they are: sides that differ in their encoding alone would be shown
// alike.
func escapeBytes(shown *string, came string) {
	if utf8.ValidString(came) {
		return
	}
	var b strings.Builder
	for i := range len(came) {
		if c := came[i]; c < utf8.RuneSelf {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	*shown = b.String()
}

// list is values by name, with names in their order.
type list struct {
	names  []string
	values map[string][]string
}

func (l *list) add(name, value string) {
	if l.values == nil {
		l.values = make(map[string][]string)
	}
	if _, known := l.values[name]; !known {
		l.names = append(l.names, name)
	}
	l.values[name] = append(l.values[name], value)
}

func headerValues(headers hookglass.Headers) (l list) {
	for _, h := range headers {
		l.add(strings.ToLower(h.Name), h.Value)
	}
	return l
}

func parameterValues(raw string) (l list) {
	for name, value := range hookglass.Pairs(raw) {
		l.add(name, value)
	}
	return l
}

// compareLists lists the names whose values differ, and reports whether there are more of them.
func compareLists(left, right list) (changes []hookglass.Change, more bool) {
	names := slices.Clone(left.names)
	for _, n := range right.names {
		if _, known := left.values[n]; !known {
			names = append(names, n)
		}
	}
	side := func(l list, name string) *string {
		values, there := l.values[name]
		if !there {
			return nil
		}
		return new(strings.Join(values, ", "))
	}
	for _, n := range names {
		if slices.Equal(left.values[n], right.values[n]) {
			continue
		}
		if len(changes) == maxChanges {
			return changes, true
		}
		changes = append(changes, change(n, side(left, n), side(right, n)))
	}
	return changes, false
}

func compareBodies(b *hookglass.BodyChanges, forms bool, left, right []byte) {
	l, errLeft := jsondoc.Parse(left, jsondoc.Wide())
	r, errRight := jsondoc.Parse(right, jsondoc.Wide())
	switch {
	case errLeft == nil && errRight == nil:
		b.Form = "json"
		differences, more := jsondoc.Diff(l, r, maxChanges)
		b.More = more
		for _, d := range differences {
			b.Changes = append(b.Changes, change(d.Path, spelled(d.Left), spelled(d.Right)))
		}
	case forms:
		b.Form = "form"
		b.Changes, b.More = compareForms(parameterValues(string(left)), parameterValues(string(right)))
	case utf8.Valid(left) && utf8.Valid(right):
		b.Form = "text"
		b.Text, b.More = diffLines(string(left), string(right))
	}
}

// compareForms is compareLists, but says where the JSON differs that a field holds on both sides: the path is then the
// name and the pointer within.
func compareForms(left, right list) (changes []hookglass.Change, more bool) {
	all, more := compareLists(left, right)
	for _, c := range all {
		l, okLeft := held(left.values[c.Path])
		r, okRight := held(right.values[c.Path])
		if !okLeft || !okRight || jsondoc.Same(l, r) { // the same may be spelled in another way
			changes = append(changes, c)
			continue
		}
		within, beyond := jsondoc.Diff(l, r, maxChanges)
		more = more || beyond
		for _, d := range within {
			changes = append(changes, change(c.Path+d.Path, spelled(d.Left), spelled(d.Right)))
		}
	}
	if len(changes) > maxChanges {
		changes, more = changes[:maxChanges], true
	}
	return changes, more
}

// held is the object or array that a field holds which is there once.
func held(values []string) (jsondoc.Value, bool) {
	if len(values) != 1 {
		return jsondoc.Value{}, false
	}
	v, err := jsondoc.Parse([]byte(values[0]), jsondoc.Wide())
	return v, err == nil && !v.Scalar()
}

// spelled is a value as compact JSON.
func spelled(v *jsondoc.Value) *string {
	if v == nil {
		return nil
	}
	return new(string(v.Bytes()))
}

// diffLines gives the differing lines in the unified form. A text that is too long is compared up to the bound.
func diffLines(left, right string) (text string, more bool) {
	left, cutLeft := beginning(left)
	right, cutRight := beginning(right)
	more = cutLeft || cutRight
	text = udiff.Unified("left", "right", left, right)
	if len(text) > maxDiffed {
		text, more = hookglass.Beginning(text, maxDiffed), true
	}
	return text, more
}

func beginning(s string) (string, bool) {
	begin := hookglass.Beginning(s, maxDiffText)
	lines := 0
	for i := range len(begin) {
		if begin[i] == '\n' {
			if lines++; lines == maxDiffLine {
				begin = begin[:i+1]
				break
			}
		}
	}
	return begin, len(begin) < len(s)
}
