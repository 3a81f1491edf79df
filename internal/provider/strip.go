package provider

import (
	"cmp"
	"slices"
	"strings"

	"hookglass"
)

// Strip returns the headers without the provider's signature headers (providers.md section 6). For an unknown sender it
// removes the signature headers of all providers, but never Authorization. configs name the headers of generic_hmac. h
// is not changed.
func Strip(d Detection, h hookglass.Headers, configs ...Config) hookglass.Headers {
	t := table()
	patterns := t.strip
	if s := t.byID[d.Provider]; s != nil {
		patterns = s.Strip
	}
	patterns = slices.Clone(patterns)
	for _, c := range configs {
		if c.Provider == GenericHMAC {
			patterns = append(patterns, cmp.Or(c.Options.Header, "X-Signature"))
			if c.Options.TimestampHeader != "" {
				patterns = append(patterns, c.Options.TimestampHeader)
			}
		}
	}
	kept := make(hookglass.Headers, 0, len(h))
	for _, field := range h {
		if !slices.ContainsFunc(patterns, func(p string) bool { return headerMatches(p, field.Name) }) {
			kept = append(kept, field)
		}
	}
	return kept
}

// setHeader returns the headers with exactly one field of that name: in the place and spelling of the first existing
// one, or at the end. h is not changed.
func setHeader(h hookglass.Headers, name, value string) hookglass.Headers {
	set := make(hookglass.Headers, 0, len(h)+1)
	done := false
	for _, field := range h {
		if strings.EqualFold(field.Name, name) {
			if done {
				continue
			}
			field.Value, done = value, true
		}
		set = append(set, field)
	}
	if !done {
		set = append(set, hookglass.Header{Name: name, Value: value})
	}
	return set
}
