package release

import (
	"errors"
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"hookglass"
)

// Bounds of an address (RFC 5321, section 4.5.3.1).
const (
	maxAddress = 254
	maxLocal   = 64
	maxDomain  = 253
)

// Recipients says to whom mail may be released. The zero value allows nobody.
type Recipients struct {
	own     string // the domain of this installation's inboxes
	entries []string
	keys    map[string]bool // an address or "@domain", as key writes it
}

// ParseRecipients parses the operator's allowlist: addresses, and domains written as @example.com. own, the domain of
// the installation's inboxes, is never allowed: the mail would come back.
func ParseRecipients(entries []string, own string) (Recipients, error) {
	r := Recipients{own: key("x", own)[1:], keys: make(map[string]bool)}
	for _, entry := range entries {
		entry = strings.TrimSpace(entry)
		whole := entry
		if strings.HasPrefix(entry, "@") {
			whole = "x" + entry
		}
		local, domain, err := readAddress(whole)
		if err != nil {
			return r, fmt.Errorf("%q is neither an address such as dev@example.com nor a domain such as @example.com", entry)
		}
		k := key(local, domain)
		if r.isOwn(k) {
			return r, fmt.Errorf("%q is of this installation's own --mail-domain: what is released to it would come back", entry)
		}
		if whole != entry {
			k = k[1:]
		}
		if !r.keys[k] {
			r.keys[k], r.entries = true, append(r.entries, entry)
		}
	}
	return r, nil
}

// Entries are the allowed addresses and domains, as the operator wrote them.
func (r Recipients) Entries() []string { return r.entries }

// read validates the recipients of a release and returns each of them once, with its domain in ASCII. It answers
// validation_failed and, when all are well-formed but one is not allowed, recipient_not_allowed.
func (r Recipients) read(to []string) ([]string, error) {
	if len(to) == 0 || len(to) > hookglass.MaxReleaseRecipients {
		return nil, hookglass.Invalid("to", "must name 1 to %d addresses", hookglass.MaxReleaseRecipients)
	}
	var addresses, keys []string
	var faults, barred []hookglass.FieldError
	for i, text := range to {
		field := fmt.Sprintf("to.%d", i)
		local, domain, err := readAddress(text)
		if err != nil {
			faults = append(faults, hookglass.FieldError{Field: field, Message: err.Error()})
			continue
		}
		k := key(local, domain)
		switch _, of := cutLast(k); {
		case r.isOwn(k):
			barred = append(barred, hookglass.FieldError{Field: field, Message: fmt.Sprintf("%s is an address of this installation: the mail would come back", text)})
		case !r.keys[k] && !r.keys["@"+of]:
			barred = append(barred, hookglass.FieldError{Field: field, Message: fmt.Sprintf("%s is not among the addresses that the operator allows with --release-to", text)})
		}
		if !slices.Contains(keys, k) {
			keys, addresses = append(keys, k), append(addresses, local+"@"+domain)
		}
	}
	if len(faults) > 0 {
		return nil, hookglass.InvalidFields(faults)
	}
	if len(barred) > 0 {
		return nil, &hookglass.Error{Code: hookglass.CodeRecipientNotAllowed, Message: "Nothing was sent: " + barred[0].Message + ".", Details: barred}
	}
	return addresses, nil
}

// isOwn reports whether the address with this key belongs to the installation.
func (r Recipients) isOwn(key string) bool {
	_, domain := cutLast(key)
	return "@"+domain == r.own
}

// key normalises an address for comparison. Case is folded unless that turns a non-ASCII letter into an ASCII one: the
// Kelvin sign is not a k.
func key(local, domain string) string {
	folded := strings.Map(func(r rune) rune {
		if lower := unicode.ToLower(r); r < 0x80 || lower >= 0x80 {
			return lower
		}
		return r
	}, local)
	return folded + "@" + strings.ToLower(domain)
}

var domainPattern = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`)

// readAddress reads a bare address and returns its parts, the domain in ASCII (RFC 5891, section 4).
func readAddress(text string) (local, domain string, err error) {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar }) {
		return "", "", errors.New("holds a space, a control character or another character that no address may have")
	}
	if a, err := mail.ParseAddress(text); err != nil || a.Address != text { // a name, quotes or brackets are no part of one
		return "", "", errors.New("is not a mail address such as dev@example.com")
	}
	local, domain = cutLast(text)
	if !domainPattern.MatchString(domain) {
		if domain, err = idna.Lookup.ToASCII(domain); err != nil {
			return "", "", errors.New("is not a mail address: it has no domain that there can be")
		}
	}
	if !domainPattern.MatchString(domain) || len(domain) > maxDomain {
		return "", "", errors.New("is not a mail address: it has no domain that there can be")
	}
	if len(local) > maxLocal || len(local)+1+len(domain) > maxAddress {
		return "", "", errors.New("is longer than an address can be")
	}
	return local, domain, nil
}

// cutLast cuts an address at its last at sign.
func cutLast(address string) (local, domain string) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return address, ""
	}
	return address[:at], address[at+1:]
}
