package email

import (
	"context"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// spfRecords looks up records for the library that evaluates them, which finds a fault when it comes to it, and behind
// a term that matches none. RFC 7208, section 4.6, looks at the syntax of all of a record first.
type spfRecords struct{ *inquiry }

// faultySPF stands in the place of a record with a fault. Its first term is none.
const faultySPF = "v=spf1 ="

func (r spfRecords) LookupTXT(ctx context.Context, name string) ([]string, error) {
	records, err := r.inquiry.LookupTXT(ctx, name)
	for i, text := range records {
		if terms, is := spfTerms(text); is && !wellFormedSPF(terms) {
			records = slices.Clone(records)
			records[i] = faultySPF
		}
	}
	return records, err
}

// spfTerms are the terms of a text, if that is a record (section 4.5).
func spfTerms(text string) (terms []string, is bool) {
	terms = strings.Split(text, " ")
	return terms[1:], strings.EqualFold(terms[0], "v=spf1")
}

var (
	spfModifier = regexp.MustCompile(`(?s)^([a-zA-Z][a-zA-Z0-9._-]*)=(.*)$`)
	spfCIDR     = regexp.MustCompile(`(?s)^(.*?)(?:/(0|[1-9][0-9]?))?(?://(0|[1-9][0-9]{0,2}))?$`)
	spfMacro    = regexp.MustCompile(`^%(?:[%_-]|\{[slodiphvSLODIPHV](?:0*[1-9][0-9]*)?[rR]?[-.+,/_=]*\})`) // c, r and t are for explanations
	spfTopLabel = regexp.MustCompile(`^(?:[a-zA-Z0-9]*[a-zA-Z][a-zA-Z0-9]*|[a-zA-Z0-9]+-[a-zA-Z0-9-]*[a-zA-Z0-9])$`)
)

// wellFormedSPF reports whether terms follow the grammar of section 12, and the two modifiers of the RFC are there once
// at most (section 6).
func wellFormedSPF(terms []string) bool {
	seen := map[string]bool{}
	for _, term := range terms {
		if term == "" {
			continue
		}
		if m := spfModifier.FindStringSubmatch(term); m != nil {
			name := strings.ToLower(m[1])
			switch _, text := macroString(m[2]); {
			case name != "redirect" && name != "exp":
				if !text {
					return false
				}
			case seen[name] || !domainSpec(m[2]):
				return false
			default:
				seen[name] = true
			}
			continue
		}
		if !mechanism(strings.TrimLeft(term[:1], "+-?~") + term[1:]) {
			return false
		}
	}
	return true
}

func mechanism(term string) bool {
	name, value := term, ""
	if i := strings.IndexAny(term, ":/"); i >= 0 {
		name, value = term[:i], term[i:]
	}
	domain, given := strings.CutPrefix(value, ":")
	switch strings.ToLower(name) {
	case "all":
		return value == ""
	case "include", "exists":
		return given && domainSpec(domain)
	case "ptr":
		return value == "" || given && domainSpec(domain)
	case "a", "mx":
		m := spfCIDR.FindStringSubmatch(domain)
		four, six := m[2], m[3]
		return lengthIn(four, 32) && lengthIn(six, 128) && (given && domainSpec(m[1]) || !given && m[1] == "")
	case "ip4", "ip6":
		text, length, cut := strings.Cut(domain, "/")
		address, err := netip.ParseAddr(text)
		is4 := strings.EqualFold(name, "ip4")
		if !given || err != nil || address.Is4() != is4 || address.Zone() != "" {
			return false
		}
		return !cut || length != "" && lengthIn(length, address.BitLen()) && (length == "0" || length[0] != '0')
	}
	return false
}

// lengthIn reports whether the length of a prefix is in bounds; none is.
func lengthIn(length string, most int) bool {
	n, err := strconv.ParseUint(length, 10, 8)
	return length == "" || err == nil && n <= uint64(most)
}

// macroString reports whether s is one, and returns what stands behind its last macro.
func macroString(s string) (rest string, ok bool) {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '%':
			m := spfMacro.FindString(s[i:])
			if m == "" {
				return "", false
			}
			i += len(m)
			s, i = s[i:], 0
		case c <= ' ' || c >= 0x7f:
			return "", false
		default:
			i++
		}
	}
	return s, true
}

// domainSpec reports whether s names a domain: it ends in a macro, or in a dot and a label that is no number.
func domainSpec(s string) bool {
	rest, ok := macroString(s)
	if !ok || s == "" {
		return false
	}
	if rest == "" {
		return true
	}
	rest = strings.TrimSuffix(rest, ".")
	dot := strings.LastIndexByte(rest, '.')
	return dot >= 0 && spfTopLabel.MatchString(rest[dot+1:])
}
