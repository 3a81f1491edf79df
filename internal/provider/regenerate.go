package provider

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hookglass"
)

// commonFields is the table's word for the identity fields of senders without known ones.
const commonFields = "common"

// commonIDs are the names of identity fields of unknown senders (providers.md section 5).
var commonIDs = []string{"id", "event_id", "eventId", "delivery_id", "deliveryId", "message_id", "messageId", "notification_id",
	"notificationId", "request_id", "requestId", "transaction_id", "transactionId", "idempotency_key", "idempotencyKey", "uuid", "guid"}

// maxSafeInteger is the greatest integer that every JSON reader keeps exactly (RFC 8259 section 6).
const maxSafeInteger = 1<<53 - 1

// NewIdentity returns random identity material.
func NewIdentity() Identity {
	var b [28]byte
	rand.Read(b[:])
	u := b[:16]
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80 // RFC 9562 section 5.4
	digits := (int(b[22])<<8 | int(b[23])) % 10000
	return Identity{
		UUID:   fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]),
		Suffix: "_rpl_" + hex.EncodeToString(b[16:22]),
		Digits: fmt.Sprintf("%04d", digits),
	}
}

// Change is a changed identity: its place, "header:<name>" or "body:<pointer>", and the new value, unescaped.
type Change struct{ Place, Value string }

// InHeader reports whether the change is in a header, and in which one.
func (c Change) InHeader() (name string, ok bool) { return strings.CutPrefix(c.Place, "header:") }

// Regenerate gives o a new delivery identity (providers.md section 5) and lists the changes in order. Senders with a
// delivery-id header get a new value there; for others the identity fields of the body get a suffix, edited in place,
// so that key order, white space, escapes and number formats survive. An empty list means that nothing can be changed
// safely. configs are those of the endpoint: a generic_hmac config with an id header makes that the delivery-id header
// of unknown senders. It answers validation_failed if the body is not one valid JSON text.
func Regenerate(o Outgoing, d Detection, configs []Config, id Identity) (Outgoing, []Change, error) {
	if !json.Valid(o.Body) {
		return o, nil, hookglass.Invalid("identity_mode", "regenerate requires a JSON body")
	}
	plan, bodies := regeneration{Body: []string{commonFields}}, [][]string(nil)
	if s := table().byID[d.Provider]; s != nil {
		plan, bodies = s.Regenerate, s.bodies
	} else {
		for _, c := range configs {
			if c.Provider == GenericHMAC && c.Options.IDHeader != "" {
				plan = regeneration{Headers: []string{c.Options.IDHeader}}
				break
			}
		}
	}
	var changed []Change
	if o.Headers, changed = plan.headers(o.Headers, id.UUID); len(changed) > 0 {
		return o, changed, nil
	}
	e := editor{text: o.Body, id: id}
	start := skipSpace(o.Body, 0)
	if slices.Contains(plan.Body, commonFields) {
		e.common(start)
	} else {
		e.listed(start, bodies)
	}
	o.Body, changed = e.apply()
	return o, changed, nil
}

// headers sets all present delivery-id headers to one new value, or adds the first.
func (r regeneration) headers(h hookglass.Headers, uuid string) (hookglass.Headers, []Change) {
	var changed []Change
	if len(r.Headers) == 0 {
		return h, nil
	}
	h = slices.Clone(h)
	for i := range h {
		if slices.ContainsFunc(r.Headers, func(name string) bool { return headerMatches(name, h[i].Name) }) {
			h[i].Value = uuid
			changed = append(changed, Change{"header:" + h[i].Name, uuid})
		}
	}
	if len(changed) == 0 && !r.Present {
		h = append(h, hookglass.Header{Name: r.Headers[0], Value: uuid})
		changed = append(changed, Change{"header:" + r.Headers[0], uuid})
	}
	return h, changed
}

// editor collects insertions into a JSON text that is known to be valid.
type editor struct {
	text    []byte
	id      Identity
	inserts []insertion
}

type insertion struct {
	at   int
	text string
	field
}

// field is an identity field found in one object.
type field struct {
	start, end int
	pointer    string
}

// common edits the common identity fields of the object at start, or of each object in the array at start.
func (e *editor) common(start int) {
	if e.text[start] == '[' {
		elements(e.text, start, func(n, at, end int) bool {
			e.commonOf(at, "/"+strconv.Itoa(n))
			return true
		})
		return
	}
	e.commonOf(start, "")
}

func (e *editor) commonOf(start int, pointer string) {
	var found []field
	members(e.text, start, func(m span) bool {
		for _, id := range commonIDs {
			if nameIs(e.text[m.name:m.nameEnd], id) {
				found = append(found, field{int(m.start), int(m.end), pointer + "/" + id})
			}
		}
		return true
	})
	e.edit(found)
}

// listed edits the fields that pointers name, with * for any element. Fields of one object are considered together.
func (e *editor) listed(start int, pointers [][]string) {
	byObject := map[string][]field{}
	var order []string
	for _, p := range pointers {
		e.find(start, p, "", func(object string, f field) {
			if _, seen := byObject[object]; !seen {
				order = append(order, object)
			}
			byObject[object] = append(byObject[object], f)
		})
	}
	for _, object := range order {
		e.edit(byObject[object])
	}
}

func (e *editor) find(start int, path []string, pointer string, emit func(object string, f field)) {
	step := func(at, end int, token string) {
		if len(path) == 1 {
			emit(pointer, field{at, end, pointer + "/" + token})
			return
		}
		e.find(at, path[1:], pointer+"/"+token, emit)
	}
	if path[0] == "*" {
		elements(e.text, start, func(n, at, end int) bool {
			step(at, end, strconv.Itoa(n))
			return true
		})
		return
	}
	members(e.text, start, func(m span) bool {
		if nameIs(e.text[m.name:m.nameEnd], path[0]) {
			step(int(m.start), int(m.end), path[0])
		}
		return true
	})
}

// edit appends the suffix to strings. Integers get digits if none of the fields is a string and the result is safe.
func (e *editor) edit(fields []field) {
	texts := 0
	for _, f := range fields {
		if v := e.text[f.start:f.end]; v[0] == '"' && len(v) > 2 {
			texts++
			e.inserts = append(e.inserts, insertion{f.end - 1, e.id.Suffix, f})
		}
	}
	if texts > 0 {
		return
	}
	for _, f := range fields {
		v := value(e.text[f.start:f.end])
		if !v.isInteger() || v[len(v)-1] == '0' && (len(v) == 1 || v[0] == '-' && len(v) == 2) {
			continue // a digit after a leading zero would not be JSON
		}
		n, err := strconv.ParseInt(string(v)+e.id.Digits, 10, 64)
		if err == nil && n <= maxSafeInteger && n >= -maxSafeInteger {
			e.inserts = append(e.inserts, insertion{f.end, e.id.Digits, f})
		}
	}
}

// apply returns the edited text and the changes, in the order of the text.
func (e *editor) apply() ([]byte, []Change) {
	if len(e.inserts) == 0 {
		return e.text, nil
	}
	slices.SortStableFunc(e.inserts, func(a, b insertion) int { return a.at - b.at })
	var out []byte
	var changed []Change
	last := 0
	for _, in := range e.inserts {
		out = append(out, e.text[last:in.at]...)
		out = append(out, in.text...)
		changed = append(changed, Change{"body:" + in.pointer, value(e.text[in.start:in.end]).text() + in.text})
		last = in.at
	}
	return append(out, e.text[last:]...), changed
}
