package email

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Zone is a Resolver with given records, for tests and for trying authentication without a network.
type Zone struct {
	records map[string]map[string][]string // by lower-case name without the final dot, then by type
}

// maxAliases bounds the CNAME records that are followed from one name.
const maxAliases = 8

// ParseZone parses records in the style of a master file (RFC 1035, section 5.1): one per line, "name [ttl] [IN] type
// data", with full names; ";" begins a comment. Types are A, AAAA, MX, TXT, CNAME and PTR (whose name may be an
// address), and two for errors: SERVFAIL makes every query for the name fail, TIMEOUT makes it wait until the context
// ends.
func ParseZone(text []byte) (*Zone, error) {
	z := &Zone{records: map[string]map[string][]string{}}
	for i, l := range strings.Split(string(text), "\n") {
		words, err := zoneWords(l)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if len(words) == 0 {
			continue
		}
		name, rest := canonical(words[0]), words[1:]
		if addr, err := netip.ParseAddr(name); err == nil {
			name = addr.Unmap().String()
		}
		if len(rest) > 0 {
			if _, err := strconv.Atoi(rest[0]); err == nil {
				rest = rest[1:]
			}
		}
		if len(rest) > 0 && strings.EqualFold(rest[0], "IN") {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return nil, fmt.Errorf("line %d: %s has no type", i+1, name)
		}
		kind, data := strings.ToUpper(rest[0]), rest[1:]
		if err := z.add(name, kind, data); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return z, nil
}

func (z *Zone) add(name, kind string, data []string) error {
	value := strings.Join(data, "") // the strings of a TXT record are one
	switch kind {
	case "A", "AAAA":
		addr, err := netip.ParseAddr(value)
		if err != nil || addr.Is4() != (kind == "A") {
			return fmt.Errorf("%q is no address of type %s", value, kind)
		}
	case "MX":
		if len(data) != 2 {
			return fmt.Errorf("MX needs a preference and a host")
		}
		if _, err := strconv.ParseUint(data[0], 10, 16); err != nil {
			return fmt.Errorf("%q is no preference", data[0])
		}
		value = data[0] + " " + canonical(data[1])
	case "CNAME", "PTR":
		if value = canonical(value); value == "" {
			return fmt.Errorf("%s needs a name", kind)
		}
	case "TXT", "SERVFAIL", "TIMEOUT":
	default:
		return fmt.Errorf("type %q is not known", kind)
	}
	if z.records[name] == nil {
		z.records[name] = map[string][]string{}
	}
	z.records[name][kind] = append(z.records[name][kind], value)
	return nil
}

// zoneWords splits a line at space, outside of quotes.
func zoneWords(l string) (words []string, err error) {
	var b strings.Builder
	inWord, quoted := false, false
	for i := 0; i < len(l); i++ {
		c := l[i]
		switch {
		case quoted && c == '\\' && i+1 < len(l):
			i++
			b.WriteByte(l[i])
		case c == '"':
			quoted, inWord = !quoted, true
		case quoted:
			b.WriteByte(c)
		case c == ';':
			l = l[:i]
		case c == ' ' || c == '\t' || c == '\r':
			if inWord {
				words = append(words, b.String())
				b.Reset()
				inWord = false
			}
		default:
			b.WriteByte(c)
			inWord = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is not closed")
	}
	if inWord {
		words = append(words, b.String())
	}
	return words, nil
}

func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// lookup returns the records of the types at a name, through aliases.
func (z *Zone) lookup(ctx context.Context, name string, kinds ...string) ([]string, error) {
	name = canonical(name)
	asked := name
	for range maxAliases {
		at := z.records[name]
		if _, waits := at["TIMEOUT"]; waits {
			<-ctx.Done()
			return nil, &net.DNSError{Err: "timeout", Name: asked, IsTimeout: true, IsTemporary: true}
		}
		if _, fails := at["SERVFAIL"]; fails {
			return nil, &net.DNSError{Err: "server misbehaving", Name: asked, IsTemporary: true}
		}
		var found []string
		for _, kind := range kinds {
			found = append(found, at[kind]...)
		}
		if len(found) > 0 {
			return found, nil
		}
		alias := at["CNAME"]
		if len(alias) == 0 {
			return nil, &net.DNSError{Err: "no such host", Name: asked, IsNotFound: true}
		}
		name = alias[0]
	}
	return nil, &net.DNSError{Err: "too many aliases", Name: asked, IsTemporary: true}
}

// LookupTXT returns the TXT records of a name, the strings of each joined.
func (z *Zone) LookupTXT(ctx context.Context, name string) ([]string, error) {
	return z.lookup(ctx, name, "TXT")
}

// LookupMX returns the mail exchangers of a name.
func (z *Zone) LookupMX(ctx context.Context, name string) ([]*net.MX, error) {
	found, err := z.lookup(ctx, name, "MX")
	if err != nil {
		return nil, err
	}
	exchangers := make([]*net.MX, len(found))
	for i, record := range found {
		preference, host, _ := strings.Cut(record, " ")
		n, _ := strconv.ParseUint(preference, 10, 16) // checked when it was added
		exchangers[i] = &net.MX{Host: host + ".", Pref: uint16(n)}
	}
	return exchangers, nil
}

// LookupIPAddr returns the addresses of a host.
func (z *Zone) LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error) {
	found, err := z.lookup(ctx, host, "A", "AAAA")
	if err != nil {
		return nil, err
	}
	addresses := make([]net.IPAddr, len(found))
	for i, record := range found {
		addresses[i] = net.IPAddr{IP: net.ParseIP(record)}
	}
	return addresses, nil
}

// LookupAddr returns the names of an address.
func (z *Zone) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	if parsed, err := netip.ParseAddr(addr); err == nil {
		addr = parsed.Unmap().String()
	}
	found, err := z.lookup(ctx, addr, "PTR")
	if err != nil {
		return nil, err
	}
	names := make([]string, len(found))
	for i, name := range found {
		names[i] = name + "."
	}
	return names, nil
}
