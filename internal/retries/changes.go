package retries

import (
	"bytes"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/jsondoc"
)

// maxChanges bounds the listed changes of one attempt.
const maxChanges = 30

// changes lists the parts in which an attempt differs from the one before.
func changes(before, next *hookglass.Event) (all []hookglass.AttemptChange, more bool) {
	add := func(c hookglass.AttemptChange) {
		if len(all) == maxChanges {
			more = true
			return
		}
		all = append(all, c)
	}
	names := map[string]bool{}
	for _, h := range append(before.Headers[:len(before.Headers):len(before.Headers)], next.Headers...) {
		lower := strings.ToLower(h.Name)
		if names[lower] || lower == "content-length" { // it follows from the body
			continue
		}
		names[lower] = true
		was, is := strings.Join(before.Headers.Values(h.Name), ", "), strings.Join(next.Headers.Values(h.Name), ", ")
		kind := kindOf(before.Headers.Has(h.Name), next.Headers.Has(h.Name))
		if kind == "changed" && was == is {
			continue
		}
		add(hookglass.AttemptChange{Part: "header", Name: h.Name, Kind: kind, Role: roleOf(lower, was, is, before, next)})
	}
	if before.Path != next.Path {
		add(hookglass.AttemptChange{Part: "path", Kind: "changed"})
	}
	if before.RawQuery != next.RawQuery {
		add(hookglass.AttemptChange{Part: "query", Kind: "changed"})
	}
	if bytes.Equal(before.Body, next.Body) {
		return all, more
	}
	was, err := jsondoc.Parse(before.Body, jsondoc.Wide())
	is, err2 := jsondoc.Parse(next.Body, jsondoc.Wide())
	if err != nil || err2 != nil {
		add(hookglass.AttemptChange{Part: "body", Kind: "changed", Role: hookglass.RoleBody})
		return all, more
	}
	found, beyond := jsondoc.Diff(was, is, maxChanges)
	if len(found) == 0 { // the same value, formatted differently
		add(hookglass.AttemptChange{Part: "body", Kind: "changed", Role: hookglass.RoleBody})
	}
	for _, d := range found {
		add(hookglass.AttemptChange{Part: "body", Name: d.Path, Kind: kindOf(d.Left != nil, d.Right != nil), Role: hookglass.RoleBody})
	}
	return all, more || beyond
}

func kindOf(before, next bool) string {
	switch {
	case !before:
		return "added"
	case !next:
		return "removed"
	}
	return "changed"
}

// roleOf guesses the purpose of a changed header.
func roleOf(name, was, is string, before, next *hookglass.Event) hookglass.ChangeRole {
	switch {
	case isSignature(name):
		return hookglass.RoleSignature
	case strings.Contains(name, "timestamp"):
		return hookglass.RoleTimestamp
	case next.DeliveryID != "" && is == next.DeliveryID, before.DeliveryID != "" && was == before.DeliveryID, name == "webhook-id":
		return hookglass.RoleDelivery
	case next.EventRef != "" && is == next.EventRef:
		return hookglass.RoleEvent
	case isCounter(name, was, is):
		return hookglass.RoleCounter
	}
	return hookglass.RoleOther
}

func isSignature(name string) bool {
	return strings.Contains(name, "signature") || strings.Contains(name, "hmac")
}

// isCounter reports whether a header counts attempts: judging by its name, or because it grew by one.
func isCounter(name, was, is string) bool {
	for _, word := range []string{"retry", "attempt", "redeliver", "delivery-count"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	a, err := strconv.Atoi(was)
	b, err2 := strconv.Atoi(is)
	return err == nil && err2 == nil && b == a+1 && b < 1000
}

// renewals counts, for each role, in how many pairs of consecutive attempts it was present, and in how many it changed.
type renewals struct {
	there, changed map[hookglass.ChangeRole]int
	counter        string
}

func newRenewals() *renewals {
	return &renewals{map[hookglass.ChangeRole]int{}, map[hookglass.ChangeRole]int{}, ""}
}

// parts are the roles whose renewal is reported.
var parts = []hookglass.ChangeRole{hookglass.RoleSignature, hookglass.RoleTimestamp, hookglass.RoleDelivery, hookglass.RoleEvent, hookglass.RoleBody}

func (r *renewals) note(before, next *hookglass.Event, found []hookglass.AttemptChange) {
	r.pair(hookglass.RoleSignature, headersOf(before, isSignature), headersOf(next, isSignature))
	r.pair(hookglass.RoleTimestamp, timestampOf(before), timestampOf(next))
	r.pair(hookglass.RoleDelivery, deliveryOf(before), deliveryOf(next))
	r.pair(hookglass.RoleEvent, before.EventRef, next.EventRef)
	r.pair(hookglass.RoleBody, string(before.Body), string(next.Body))
	for _, c := range found {
		if c.Role == hookglass.RoleCounter && r.counter == "" {
			r.counter = c.Name
		}
	}
}

func (r *renewals) pair(role hookglass.ChangeRole, was, is string) {
	if was == "" && is == "" {
		return
	}
	r.there[role]++
	if was != is {
		r.changed[role]++
	}
}

func (r *renewals) result() (map[hookglass.ChangeRole]hookglass.Renewal, string) {
	all := make(map[hookglass.ChangeRole]hookglass.Renewal, len(parts))
	for _, role := range parts {
		switch there, changed := r.there[role], r.changed[role]; {
		case there == 0:
			all[role] = hookglass.RenewalAbsent
		case changed == 0:
			all[role] = hookglass.RenewalKept
		case changed == there:
			all[role] = hookglass.RenewalChanged
		default:
			all[role] = hookglass.RenewalSometimes
		}
	}
	return all, r.counter
}

// headersOf joins the values of the headers that wanted selects by their lower-case names.
func headersOf(e *hookglass.Event, wanted func(string) bool) string {
	var values []string
	for _, h := range e.Headers {
		if wanted(strings.ToLower(h.Name)) {
			values = append(values, h.Value)
		}
	}
	return strings.Join(values, "\n")
}

// timestampOf returns the time that a sender signed or sent: a header of that name, or the t of a signature such as
// Stripe's.
func timestampOf(e *hookglass.Event) string {
	if t := headersOf(e, func(name string) bool { return strings.Contains(name, "timestamp") }); t != "" {
		return t
	}
	for part := range strings.SplitSeq(headersOf(e, isSignature), ",") {
		if t, ok := strings.CutPrefix(strings.TrimSpace(part), "t="); ok {
			return t
		}
	}
	return ""
}

func deliveryOf(e *hookglass.Event) string {
	if e.DeliveryID != "" {
		return e.DeliveryID
	}
	return e.Headers.Get("Webhook-Id")
}
