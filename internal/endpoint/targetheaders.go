package endpoint

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hookglass"
	"hookglass/internal/outbound"
)

// Bounds of the headers of a forwarding target: how many, and the bytes of names and values together. They are read
// with each delivery, and many servers take no more than 8 KiB of a whole head.
const (
	maxTargetHeaders     = 20
	maxTargetHeaderBytes = 8 << 10
)

// TargetHeaders opens the headers that a target adds, by name. Use it only to send them.
func (s *Service) TargetHeaders(t hookglass.ForwardingTarget) (headers map[string]string, err error) {
	if t.Sealed == nil {
		return nil, nil
	}
	plain, err := s.sealer.Open(t.Sealed, headersOf(&t))
	if err != nil {
		return nil, fmt.Errorf("headers of forwarding target %d: %w", t.ID, err)
	}
	if json.Unmarshal(plain, &headers) != nil {
		return nil, fmt.Errorf("headers of forwarding target %d cannot be read", t.ID)
	}
	return headers, nil
}

// HoldsHeaders reports whether a target has exactly these headers. A redacted value counts as the stored one.
func (s *Service) HoldsHeaders(t hookglass.ForwardingTarget, headers map[string]string) (bool, error) {
	if len(headers) != len(t.HeaderNames) {
		return false, nil
	}
	there, err := s.TargetHeaders(t)
	if err != nil {
		return false, err
	}
	for name, value := range headers {
		old, found := there[name]
		value = fieldValue(value)
		if !found || value != hookglass.Redacted && subtle.ConstantTimeCompare([]byte(old), []byte(value)) == 0 {
			return false, nil
		}
	}
	return true, nil
}

// judgeHeaders lists what is wrong with headers for a target.
func judgeHeaders(headers map[string]string, fault func(field, format string, args ...any)) {
	set := make(map[string]*string, len(headers))
	for name, value := range headers {
		value = fieldValue(value)
		set[name] = &value
	}
	names, faults := outbound.Settable(set, maxTargetHeaders)
	for _, message := range faults {
		fault("headers", "%s", message)
	}
	for _, name := range names {
		if *set[name] == "" {
			fault("headers", "may not leave %s empty", name)
		}
	}
}

// setHeaders replaces the headers of a target. A redacted value keeps the value stored under that name, in any
// spelling.
func (s *Service) setHeaders(t *hookglass.ForwardingTarget, headers map[string]string) error {
	set := make(map[string]string, len(headers))
	var there map[string]string
	size := 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := fieldValue(headers[name])
		if value == hookglass.Redacted {
			if there == nil {
				var err error
				if there, err = s.TargetHeaders(*t); err != nil {
					return err
				}
			}
			old, found := valueOf(there, name)
			if !found {
				return hookglass.InvalidFields([]hookglass.FieldError{targetFault("headers", "gives "+name+" no value: "+hookglass.Redacted+" stands for the one there is, and there is none")})
			}
			value = old
		}
		set[name] = value
		size += len(name) + len(value)
	}
	if size > maxTargetHeaderBytes {
		return hookglass.InvalidFields([]hookglass.FieldError{targetFault("headers", fmt.Sprintf("may have %d bytes together at most", maxTargetHeaderBytes))})
	}
	if t.HeaderNames, t.Sealed = nil, nil; len(set) == 0 {
		return nil
	}
	plain, err := json.Marshal(set)
	if err != nil {
		return err
	}
	t.HeaderNames = slices.Sorted(maps.Keys(set))
	t.Sealed, err = s.sealer.Seal(plain, headersOf(t))
	return err
}

// valueOf returns the value of a header by its name in any spelling.
func valueOf(headers map[string]string, name string) (value string, found bool) {
	for other, value := range headers {
		if strings.EqualFold(other, name) {
			return value, true
		}
	}
	return "", false
}

// fieldValue trims the whitespace around a value, which is not part of it (RFC 9110, section 5.5).
func fieldValue(value string) string { return strings.Trim(value, " \t") }

// headersOf names the endpoint: the headers are sealed before the row has an id. Who could put them into the row of
// another target there could as well write another URL into their own.
func headersOf(t *hookglass.ForwardingTarget) string {
	return fmt.Sprintf("forwarding_targets:sealed:%d", t.EndpointNum)
}
