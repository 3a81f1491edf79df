package query

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"hookglass"
)

// fault says what is wrong with a term: where, as a byte offset, and what was expected there.
type fault struct {
	at       int
	expected string
}

func expected(at int, what string) *fault { return &fault{at, "expected " + what} }

// fields maps the names with which a term can begin to fields.
var fields = map[string]Field{
	"provider": Provider, "event": EventType, "event_type": EventType, "sig": Signature, "signature": Signature, "signature_status": Signature,
	"method": Method, "status": Status, "path": Path, "header": Header, "body": Body, "query": Parameter,
	"content_type": ContentType, "type": ContentType, "ip": IP, "tag": Tag, "note": Note, "from": From, "to": To, "subject": Subject,
	"has": Attachment, "attachment": Attachment,
	"after": Received, "before": Received, "size": Size, "is": Ignored, "delivery": Delivery, "tunnel": Tunnel, "id": ID,
}

// names lists the field names for errors.
const names = "provider, event, sig, method, status, path, header.<name>, body.<pointer>, query.<name>, content_type, type, ip, tag, note, " +
	"from, to, subject, attachment, has, after, before, size, is, delivery, tunnel and id"

// NoDelivery is the value of Delivery, and of Tunnel, for events without deliveries.
const NoDelivery = "none"

// nearField reports whether a name of at least four letters is one typing error away from a field's: a letter added,
// missing or replaced, or two adjacent ones swapped.
func nearField(name string) bool {
	if len(name) < 4 {
		return false
	}
	for field := range fields {
		if oneSlip(name, field) {
			return true
		}
	}
	return false
}

func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b) > len(a)+1 {
		return false
	}
	for a != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// compile compiles a term that starts at byte at: the field's name, the argument (from the dot on), and the value.
func (p *parser) compile(at int, name, arg string, v operand) (Term, *fault) {
	field, known := fields[name]
	if !known {
		return Term{}, expected(at, "a field or text: there is no field "+strconv.Quote(name)+", but "+names+"; quote text that has a colon")
	}
	t := Term{Field: field}
	switch field {
	case Header, Parameter, Body:
		t.Name = strings.TrimPrefix(arg, ".")
		if fault := checkArgument(&t, at+len(name)+1); fault != nil {
			return t, fault
		}
	default:
		if arg != "" {
			return t, expected(at+len(name), "a colon behind "+strconv.Quote(name))
		}
	}
	wrong := t.compare(name, v, p.now)
	return t, wrong
}

func checkArgument(t *Term, at int) *fault {
	switch {
	case t.Field == Body && !strings.HasPrefix(t.Name, "/"), t.Field == Body && !jsontext.Pointer(t.Name).IsValid():
		return expected(at, "a JSON Pointer, as in body./data/id:in_1")
	case t.Name == "" && t.Field == Header:
		return expected(at, "the name of a header, as in header.x-request-id:7")
	case t.Name == "":
		return expected(at, "the name of a query parameter, as in query.page:2")
	case t.Field == Header:
		t.Name = foldString(t.Name)
	}
	return nil
}

// compare sets what the field is compared with.
func (t *Term) compare(name string, v operand, now time.Time) *fault {
	switch t.Field {
	case Kind:
		return t.oneOf(v, string(hookglass.EventWebhook), string(hookglass.EventEmail))
	case Signature:
		return t.oneOf(v, string(hookglass.SignatureVerified), string(hookglass.SignatureFailed), string(hookglass.SignatureUnchecked))
	case Delivery:
		return t.oneOf(v, string(hookglass.ForwardFailed), string(hookglass.ForwardDelivered), string(hookglass.ForwardPending), string(hookglass.ForwardSkipped), NoDelivery)
	case Tunnel:
		return t.oneOf(v, string(hookglass.ForwardFailed), string(hookglass.ForwardDelivered), NoDelivery)
	case Method:
		return t.oneOf(v, append(slices.Clone(hookglass.Methods), "EMAIL")...)
	case Status:
		return t.status(v)
	case Received:
		return t.received(name, v, now)
	case Size:
		return t.size(v)
	case Ignored:
		if foldString(v.text) == "ignored" {
			return nil
		}
		t.Field = Kind
		if t.compare(name, v, now) != nil {
			return expected(v.at, "ignored, webhook or email")
		}
		return nil
	case ContentType:
		if name == "type" {
			kind := Term{Field: Kind}
			if kind.compare(name, v, now) == nil {
				*t = kind
				return nil
			}
		}
		t.contentType(v)
		return nil
	case Path:
		t.path(v)
		return nil
	case Attachment:
		if name == "attachment" {
			t.within(v)
		} else if foldString(v.text) != "attachment" {
			return expected(v.at, "attachment, as in has:attachment")
		}
		return nil
	case From, To, Subject, Note:
		t.within(v)
		return nil
	case ID:
		if id, err := hookglass.ParseEventID(v.text); err == nil {
			t.Pattern = literal(string(id))
			return nil
		}
	}
	t.Pattern = glob(v.parts...)
	return nil
}

func (t *Term) oneOf(v operand, words ...string) *fault {
	for _, w := range words {
		if foldString(v.text) == foldString(w) {
			t.Pattern = literal(w)
			return nil
		}
	}
	return expected(v.at, strings.Join(words[:len(words)-1], ", ")+" or "+words[len(words)-1])
}

// within matches the value anywhere in the text, unless it has wildcards.
func (t *Term) within(v operand) {
	t.Pattern = glob(v.parts...)
	if !v.wild() {
		t.Pattern = glob("", v.text, "")
	}
}

// path matches a value that starts with a slash at the beginning, and any other anywhere.
func (t *Term) path(v operand) {
	t.within(v)
	if !v.wild() && strings.HasPrefix(v.text, "/") {
		t.Pattern = glob(v.text, "")
	}
}

// contentType matches a value with a slash or wildcards against the media type without its parameters, and any other
// anywhere.
func (t *Term) contentType(v operand) {
	if !v.wild() && !strings.Contains(v.text, "/") {
		t.within(v)
		return
	}
	parts := slices.Clone(v.parts)
	parts[len(parts)-1] += ";"
	t.Pattern = glob(append(parts, "")...)
}

// status parses a status such as 404 or a class such as 4xx.
func (t *Term) status(v operand) *fault {
	s := foldString(v.text)
	if class, ok := strings.CutSuffix(s, "xx"); ok && len(class) == 1 && '1' <= class[0] && class[0] <= '5' {
		t.Min = int64(class[0]-'0') * 100
		t.Max = t.Min + 99
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || len(s) != 3 || n < 100 || n > 599 {
		return expected(v.at, "a status as 404 or a class as 4xx")
	}
	t.Min, t.Max = int64(n), int64(n)
	return nil
}

// received parses a bound in time, which is excluded.
func (t *Term) received(name string, v operand, now time.Time) *fault {
	at, err := ParseTime(v.text, now)
	if err != nil {
		return expected(v.at, timeForms)
	}
	if *t = between(time.Time{}, at); name == "after" {
		*t = between(at, time.Time{})
	}
	return nil
}

// size parses a number of bytes with an optional comparison before it, and k, m or g for powers of 1,024 after it.
func (t *Term) size(v operand) *fault {
	number := strings.TrimLeft(v.text, "<>=")
	sign := v.text[:len(v.text)-len(number)]
	shift := 0
	if number != "" {
		if i := strings.IndexByte("kmg", lower(number[len(number)-1])); i >= 0 {
			shift = 10 * (i + 1)
			number = number[:len(number)-1]
		}
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || !slices.Contains([]string{"", "=", "<", "<=", ">", ">="}, sign) {
		return expected(v.at, "a size in bytes as 512, >10k or <=1m")
	}
	size := int64(n) << shift
	t.Min, t.Max = 0, math.MaxInt64
	switch sign {
	case ">":
		t.Min = size + 1
	case ">=":
		t.Min = size
	case "<":
		t.Max = size - 1
	case "<=":
		t.Max = size
	default:
		t.Min, t.Max = size, size
	}
	return nil
}
