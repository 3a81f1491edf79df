package listen

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Target is where events are sent: an address on this machine or near it, or a shell command that is run for each.
type Target struct {
	Scheme string // http or https
	Host   string // with the port, where it is not the scheme's own
	Path   string // percent-encoded; empty: none
	Query  string // without the question mark

	Command string // if set, all other fields are empty
}

// ParseTarget parses a port, a port with a path, host:port, host:port/path or a whole URL.
func ParseTarget(s string) (Target, error) {
	text := s
	number := text
	if end := strings.IndexAny(text, "/?#"); end >= 0 {
		number = text[:end]
	}
	if port, err := strconv.Atoi(number); err == nil {
		if port < 1 || port > 65535 {
			return Target{}, fmt.Errorf("%s is no port", number)
		}
		text = "localhost:" + text
	}
	if strings.HasPrefix(text, ":") {
		text = "localhost" + text
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return Target{}, fmt.Errorf("%q is neither a port nor an address such as http://localhost:3000/webhooks", s)
	case u.Scheme != "http" && u.Scheme != "https":
		return Target{}, fmt.Errorf("%q must begin with http or https", s)
	case u.User != nil:
		return Target{}, errors.New("a target holds no user and password; send them with --header 'Authorization: …'")
	case u.Fragment != "":
		return Target{}, fmt.Errorf("%q has a fragment, which is never sent", s)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return Target{}, fmt.Errorf("%q has no port between 1 and 65535", s)
		}
	}
	return Target{Scheme: u.Scheme, Host: u.Host, Path: u.EscapedPath(), Query: u.RawQuery}, nil
}

// String returns the address as a URL, or for a command what the server is told instead.
func (t Target) String() string {
	if t.Command != "" {
		return commandAddress
	}
	s := t.Scheme + "://" + t.Host + t.Path
	if t.Query != "" {
		s += "?" + t.Query
	}
	return s
}

// address returns the host and port to connect to.
func (t Target) address() string {
	u := url.URL{Host: t.Host}
	if u.Port() != "" {
		return t.Host
	}
	return strings.TrimSuffix(t.Host, ":") + ":" + map[string]string{"http": "80", "https": "443"}[t.Scheme]
}

// hostname returns the host without its port and without the brackets of an IPv6 address.
func (t Target) hostname() string {
	u := url.URL{Host: t.Host}
	return u.Hostname()
}

// thisMachine reports whether the host is a name that always means the machine itself (RFC 6761, section 6.3).
func (t Target) thisMachine() bool {
	name := strings.TrimSuffix(strings.ToLower(t.hostname()), ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// requestTarget appends an event's path and query to the target's own, as they were spelled. An event's path is "/"
// when nothing followed the endpoint; that adds nothing to a target with a path.
func (t Target) requestTarget(path, query string) string {
	base := t.Path
	switch {
	case path == "" || path == "/":
		if base == "" {
			base = "/"
		}
	case strings.HasPrefix(path, "/"):
		base = strings.TrimSuffix(base, "/") + path
	default:
		base = strings.TrimSuffix(base, "/") + "/" + path
	}
	switch {
	case t.Query != "" && query != "":
		query = t.Query + "&" + query
	case t.Query != "":
		query = t.Query
	}
	if query != "" {
		base += "?" + query
	}
	return fit(base)
}

// below returns the path and query that a server appended to the target's address; ok is false when the address is
// another.
func (t Target) below(address string) (requested string, ok bool) {
	base, own, _ := strings.Cut(t.String(), "?")
	path, query, _ := strings.Cut(address, "?")
	if path, ok = strings.CutPrefix(path, strings.TrimSuffix(base, "/")); !ok || path != "" && path[0] != '/' {
		return "", false
	}
	if own != "" {
		query = strings.TrimPrefix(strings.TrimPrefix(query, own), "&")
	}
	if requested = cmp.Or(path, "/"); query != "" {
		requested += "?" + query
	}
	return requested, true
}

// fit encodes the characters that would break a request line and so cannot have come in one. Everything else stays as
// its sender spelled it.
func fit(target string) string {
	if strings.IndexFunc(target, unfit) < 0 {
		return target
	}
	var b strings.Builder
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c == 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unfit(r rune) bool { return r <= ' ' || r == 0x7f }

// Route sends some events to a target of their own.
type Route struct {
	Events string // a pattern of event types
	Target Target
}

// ParseRoute parses EVENT=URL, where EVENT is a pattern such as invoice.* or stripe.invoice.*.
func ParseRoute(s string) (Route, error) {
	event, address, ok := strings.Cut(s, "=")
	if event = strings.TrimSpace(event); !ok || event == "" {
		return Route{}, fmt.Errorf("%q is not of the form EVENT=URL, for example invoice.*=http://localhost:3000/invoices", s)
	}
	t, err := ParseTarget(strings.TrimSpace(address))
	return Route{event, t}, err
}

// Matches reports whether a pattern matches an event of a provider. A * matches any text; the provider and a dot may
// precede the event's type, as in the names of samples.
func Matches(pattern, provider, event string) bool {
	return wildcard(pattern, event) || wildcard(pattern, provider+"."+event)
}

func wildcard(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) || len(text) < len(first)+len(last) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}
