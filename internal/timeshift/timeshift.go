// Package timeshift moves the times in a request by a fixed amount, so that an old capture looks fresh: in the headers,
// in a body that is JSON or a form, and in JSON within a string of either. It hides how times are recognised.
//
// A text in the format of a time (RFC 3339, or as in headers and mails) is a time wherever it occurs. A number is a
// time if it is in the range of this century's Unix times, in seconds or milliseconds, and the name of its field says
// so; ids and amounts of the same size are left alone. Signed content, the claims of a token with a signature, is not
// changed. All other bytes stay the same.
//
// It is pure and safe for concurrent use.
package timeshift

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/jsondoc"
	"hookglass/internal/provider"
)

// Bounds.
const (
	MaxChanges = 10_000
	maxBody    = 32 << 20
	maxNested  = 4               // levels of JSON within strings of JSON
	maxText    = 64              // the longest format of a time, in bytes
	MaxShift   = 100 * 365 * day // in either direction
)

const day = 24 * time.Hour

// Shift is how far times are moved.
type Shift struct {
	by  time.Duration
	now bool
}

// Parse parses a shift: "now", a signed duration (+3h, -90m, +2d, +1d12h), or a number of milliseconds. The fault is a
// sentence for a person.
func Parse(text string) (s Shift, fault string) {
	const wanted = `must be "now", a duration with its sign such as "+3h" or "-2d", or a number of milliseconds`
	if text == "now" {
		return Shift{now: true}, ""
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && text[0] != '+' {
		if n > MaxShift.Milliseconds() || n < -MaxShift.Milliseconds() {
			return s, "must be 100 years at most"
		}
		return Shift{by: time.Duration(n) * time.Millisecond}, ""
	}
	if len(text) < 2 || len(text) > 32 || text[0] != '+' && text[0] != '-' || text[1] == '+' || text[1] == '-' {
		return s, wanted
	}
	var whole time.Duration
	rest := text[1:]
	if days, after, found := strings.Cut(rest, "d"); found {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return s, wanted
		}
		whole, rest = time.Duration(n)*day, after
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || strings.ContainsAny(rest, "+-") {
			return s, wanted
		}
		whole += d
	}
	if whole > MaxShift || whole < 0 {
		return s, "must be 100 years at most"
	}
	if text[0] == '-' {
		whole = -whole
	}
	return Shift{by: whole}, ""
}

// IsZero reports whether nothing is moved.
func (s Shift) IsZero() bool { return s == Shift{} }

// Delta returns by how much to move the times of a request received then and sent now. With "now", the times keep their
// age relative to the request.
func (s Shift) Delta(received, now time.Time) time.Duration {
	if s.now {
		return now.Sub(received).Truncate(time.Millisecond)
	}
	return s.by
}

// Apply moves the times of a request. It leaves headers alone for which skip is true, such as signatures that are made
// again. It answers validation_failed if there are too many times.
func Apply(o provider.Outgoing, delta time.Duration, skip func(header string) bool) (provider.Outgoing, []hookglass.TimeChange, error) {
	m := mover{delta: delta}
	o.Headers = slices.Clone(o.Headers)
	for i, h := range o.Headers {
		if skip(h.Name) {
			continue
		}
		if to, ok := m.text(h.Value, h.Name); ok {
			m.changes = append(m.changes, hookglass.TimeChange{Header: h.Name, From: h.Value, To: to})
			o.Headers[i].Value = to
		}
	}
	// Try JSON first, whatever the header says: curl declares all that it posts to be a form.
	if out, ok := m.json(o.Body, func() string { return "" }, 0); ok {
		o.Body = out
	} else if hookglass.IsForm(o.Headers.Get("Content-Type")) {
		o.Body = m.form(o.Body)
	}
	if len(m.changes) > MaxChanges {
		return o, nil, hookglass.Invalid("time_shift", "finds more than 10,000 times in the request")
	}
	return o, m.changes, nil
}

type mover struct {
	delta   time.Duration
	changes []hookglass.TimeChange
}

// json moves the times in JSON; ok is false if the text is not JSON. base says where it stands, and is asked only for
// what is changed: each element of a list stands under the list's name, however long that is.
func (m *mover) json(text []byte, base func() string, depth int) ([]byte, bool) {
	if len(text) == 0 || depth > maxNested {
		return nil, false
	}
	before := len(m.changes)
	out, err := jsondoc.Rewrite(text, jsondoc.Bounds{Bytes: maxBody, Depth: jsondoc.MaxDepth}, func(l jsondoc.Leaf) (string, bool) {
		if l.Name || len(m.changes) > MaxChanges {
			return "", false
		}
		pointer := func() string { return base() + l.Pointer() }
		if l.Kind == jsondoc.Number {
			to, ok := m.number(l.Text, l.Member())
			if ok {
				m.changes = append(m.changes, hookglass.TimeChange{Pointer: pointer(), From: l.Text, To: to})
			}
			return to, ok
		}
		return m.inText(l.Text, l.Member(), pointer, depth)
	})
	if err != nil {
		m.changes = m.changes[:before]
		return nil, false
	}
	return out, true
}

// inText moves a text that is a time, or the times in a text that is JSON or an unsigned token.
func (m *mover) inText(s, name string, pointer func() string, depth int) (string, bool) {
	if to, ok := m.text(s, name); ok {
		m.changes = append(m.changes, hookglass.TimeChange{Pointer: pointer(), From: s, To: to})
		return to, true
	}
	within := func() string { return pointer() + "!" }
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		out, ok := m.json([]byte(s), within, depth+1)
		return string(out), ok && string(out) != s
	}
	if strings.HasPrefix(s, "eyJ") && strings.HasSuffix(s, ".") && strings.Count(s, ".") == 2 {
		head, rest, _ := strings.Cut(s, ".")
		if claims, err := base64.RawURLEncoding.DecodeString(strings.TrimSuffix(rest, ".")); err == nil {
			if out, ok := m.json(claims, within, depth+1); ok {
				to := head + "." + base64.RawURLEncoding.EncodeToString(out) + "."
				return to, to != s
			}
		}
	}
	return "", false
}

// form moves the times in the fields of a form.
func (m *mover) form(body []byte) []byte {
	pairs := strings.Split(string(body), "&")
	for i, pair := range pairs {
		if len(m.changes) > MaxChanges {
			break // it will be refused
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		value, err2 := url.QueryUnescape(rawValue)
		if err != nil || err2 != nil {
			continue
		}
		field := name
		if open := strings.LastIndexByte(name, '['); open >= 0 && strings.HasSuffix(name, "]") {
			field = name[open+1 : len(name)-1]
		}
		pointer := func() string { return jsondoc.ShownPointer([]string{name}) }
		if to, ok := m.inText(value, field, pointer, 0); ok {
			pairs[i] = rawName + "=" + url.QueryEscape(to)
		}
	}
	return []byte(strings.Join(pairs, "&"))
}

// forms are the formats of times in headers and mails.
var forms = []string{
	"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC1123Z, "Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 -0700", "02 Jan 2006 15:04:05 -0700",
	time.RubyDate, time.RFC850, time.ANSIC,
}

// rfc3339 matches an RFC 3339 time with common variations: a space, no colon in the offset, no offset.
var rfc3339 = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)([Tt ])(\d\d:\d\d:\d\d)(?:([.,])(\d{1,9}))?( ?)([Zz]|UTC|[+-]\d\d:?\d\d)?$`)

// text moves a text in the format of a time, or a number whose field's name says that it is one.
func (m *mover) text(s, name string) (string, bool) {
	if len(s) < 10 || len(s) > maxText {
		return "", false
	}
	if f := rfc3339.FindStringSubmatch(s); f != nil {
		return m.instant(f)
	}
	if strings.Trim(s, "0123456789") == "" { // no fraction: a text with one is the id of a Slack message
		return m.number(s, name)
	}
	for _, form := range forms {
		if at, err := time.Parse(form, s); err == nil {
			// If formatting does not reproduce the text, it was misread, for example with an unknown zone abbreviation.
			if at.Format(form) == s && plausible(at) {
				return moved(s, at.Add(m.delta).Format(form))
			}
		}
	}
	return "", false
}

// instant moves a time that rfc3339 has matched.
func (m *mover) instant(f []string) (string, bool) {
	date, mark, clock, point, fraction, gap, zone := f[1], f[2], f[3], f[4], f[5], f[6], f[7]
	location := time.UTC
	if len(zone) >= 5 {
		hours, _ := strconv.Atoi(zone[1:3])
		minutes, _ := strconv.Atoi(zone[len(zone)-2:])
		offset := hours*3600 + minutes*60
		if zone[0] == '-' {
			offset = -offset
		}
		location = time.FixedZone("", offset)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04:05", date+" "+clock, location)
	if err != nil || !plausible(at) {
		return "", false
	}
	nanos, _ := strconv.Atoi((fraction + "000000000")[:9])
	at = at.Add(time.Duration(nanos) + m.delta)
	to := at.Format("2006-01-02") + mark + at.Format("15:04:05")
	if fraction != "" {
		to += point + fractionOf(at, len(fraction))
	}
	return moved(f[0], to+gap+zone)
}

func fractionOf(at time.Time, digits int) string {
	text := strconv.Itoa(1_000_000_000 + at.Nanosecond())
	return text[1 : 1+digits]
}

// The range of numbers that can be times: 2001-09-09 to 2096, where Unix seconds have ten digits.
const (
	firstSecond = 1_000_000_000
	lastSecond  = 4_000_000_000
)

func plausible(at time.Time) bool { return at.Year() >= 1990 && at.Unix() <= lastSecond }

// number moves a Unix time in seconds, possibly with a fraction, or in milliseconds, if its field's name is that of a
// time.
func (m *mover) number(s, name string) (string, bool) {
	if !timely(name) {
		return "", false
	}
	whole, fraction, hasFraction := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != whole || hasFraction && (fraction == "" || len(fraction) > 9 || strings.Trim(fraction, "0123456789") != "") {
		return "", false
	}
	switch {
	case n >= firstSecond && n <= lastSecond:
		nanos, _ := strconv.Atoi((fraction + "000000000")[:9])
		at := time.Unix(n, int64(nanos)).Add(m.delta)
		if !hasFraction {
			return moved(s, strconv.FormatInt(at.Unix(), 10))
		}
		sign := ""
		if epoch := time.Unix(0, 0); at.Before(epoch) { // the digits count away from zero, a time's nanoseconds always up
			sign, at = "-", epoch.Add(epoch.Sub(at))
		}
		return moved(s, sign+strconv.FormatInt(at.Unix(), 10)+"."+fractionOf(at, len(fraction)))
	case n >= firstSecond*1000 && n <= lastSecond*1000 && !hasFraction:
		return moved(s, strconv.FormatInt(n+m.delta.Milliseconds(), 10))
	}
	return "", false
}

func moved(from, to string) (string, bool) { return to, from != to }

// timeWords are the last words of names of times. Names are split at punctuation and capitals.
var timeWords = strings.Fields(`time timestamp date at ts created updated modified changed deleted completed started ended start end begin finish finished expires expiry
	expiration exp iat nbf now when on until since occurred canceled cancelled issued datetime epoch triggered anchor utc after before`)

// amountWords occur in names of quantities, whatever the other words are: amount_at_end is not a time.
var amountWords = strings.Fields(`amount amounts total subtotal price balance sum count number num qty quantity id ids size bytes value tax fee cost volume version index code key`)

// maxName bounds the length of examined names in bytes: every element of a list is examined under the list's name.
const maxName = 200

// timely reports whether the name of a field says that it holds a time.
func timely(name string) bool {
	if len(name) > maxName {
		return false
	}
	words := wordsOf(name)
	if len(words) == 0 || slices.ContainsFunc(words, func(word string) bool { return slices.Contains(amountWords, word) }) {
		return false
	}
	last := words[len(words)-1]
	if unit := last == "ms" || last == "millis" || last == "seconds"; unit && len(words) > 1 {
		last = words[len(words)-2] // created_ms is a time, duration_ms is not
	}
	if slices.Contains(timeWords, last) {
		return true
	}
	for _, ending := range []string{"timestamp", "time", "date"} { // written as one word: webhooktimestamp, eventtime
		if len(last) > len(ending) && strings.HasSuffix(last, ending) && last != "update" && last != "candidate" {
			return true
		}
	}
	return false
}

// wordsOf splits a name: createdAt and created_at give "created" and "at".
func wordsOf(name string) []string {
	var b strings.Builder
	for i, r := range name {
		upper := r >= 'A' && r <= 'Z'
		if upper && i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.FieldsFunc(strings.ToLower(b.String()), func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') })
}
