package provider

import (
	"cmp"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
)

// Sign signs o as the config's provider would, with the first secret of c and the given time (providers.md section 6).
// Old signatures are replaced in place, with the header names as they were; a provider that signs the URL signs o.URL,
// which may gain a query parameter. It answers validation_failed for a provider that cannot be signed for, and for a
// config without a usable secret.
func Sign(o Outgoing, c Config, at time.Time) (Outgoing, error) {
	s := table().byID[c.Provider]
	if s == nil || !s.signable() {
		name := c.Provider
		if s != nil {
			name = s.Name
		}
		return o, hookglass.Invalid("signature_mode", "cannot be resign: deliveries of %s cannot be signed here", name)
	}
	j := newJudge(&c)
	secret := cmp.Or(c.Secrets...)
	if j == nil || secret == "" {
		return o, hookglass.Invalid("signature_mode", "cannot be resign: the signature config is not usable")
	}
	if s.seal != nil {
		err := s.seal(&o, secret)
		return o, err
	}
	for _, sc := range j.toSign(&o, secret) {
		if err := sc.sign(&o, secret, at); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (s *sender) signable() bool {
	if s.ID == GenericHMAC || s.seal != nil {
		return true
	}
	return len(s.Signatures) > 0 && !s.Unsigned && !publicKeyKind(s.Signatures[0].Kind)
}

// toSign returns the schemes to sign with: the preferred one always, an older one only if it was captured. If any of
// several schemes may count (GitLab's token and signature), those captured, or else the one that the secret fits. Of
// schemes that share a header, which has room for one signature, only the first.
func (j *judge) toSign(o *Outgoing, secret string) []*scheme {
	in := &input{Request: &Request{Method: o.Method, URL: o.URL, Headers: o.Headers, Body: o.Body}}
	var captured []*scheme
	for _, sc := range j.schemes {
		if sc.presented(in) && !slices.ContainsFunc(captured, sc.sharesHeader) {
			captured = append(captured, sc)
		}
	}
	switch {
	case j.ID == "github": // always the new signature, the old one if it was there
		if len(captured) == 1 && captured[0] == j.schemes[1] {
			return j.schemes
		}
	case j.Any && len(captured) == 0 && !strings.HasPrefix(secret, standardPrefix):
		return j.schemes[len(j.schemes)-1:]
	}
	if len(captured) > 0 {
		return captured
	}
	for _, sc := range j.schemes {
		if len(sc.Headers) > 0 && sc.NamesField == "" { // rather than in the body, which a signature changes
			return []*scheme{sc}
		}
	}
	return j.schemes[:1]
}

// sharesHeader reports whether another scheme uses the same header for its signature.
func (s *scheme) sharesHeader(other *scheme) bool {
	return len(s.Headers) > 0 && len(other.Headers) > 0 && strings.EqualFold(s.Headers[0], other.Headers[0])
}

// sign makes one signature and puts it into the headers.
func (s *scheme) sign(o *Outgoing, secret string, at time.Time) error {
	switch s.Kind {
	case "adyen":
		return s.signAdyen(o, secret)
	case "mailgun":
		return signMailgun(o, secret, at)
	case "netlify":
		s.place(o, signNetlify(o.Body, secret))
		return nil
	case "contentful":
		nameSigned(o)
	}
	stamp, ok := s.stampFor(o, at)
	if !ok {
		return hookglass.Invalid("signature_mode", "cannot be resign: the timestamp that is signed stands in the body and is missing")
	}
	if s.TimeHeader != "" {
		o.Headers = setHeader(o.Headers, s.TimeHeader, stamp)
	}
	var id string
	if s.IDHeader != "" {
		if id = o.Headers.Get(s.IDHeader); id == "" && s.uses("id") {
			sum := sha256.Sum256(append([]byte(stamp+"."), o.Body...))
			id = "msg_" + hex.EncodeToString(sum[:12])
			o.Headers = setHeader(o.Headers, s.IDHeader, id)
		}
	}
	text := secret
	if s.Kind != "token" {
		keys := deriveKeys(s.Key, secret)
		if len(keys) == 0 {
			return hookglass.Invalid("signature_mode", "cannot be resign: the configured secret cannot be used as a key")
		}
		in := &input{Request: &Request{Method: o.Method, URL: o.URL, Headers: o.Headers, Body: o.Body}}
		in.URL = requestedURL(in.URL)
		var sum [sha512.Size]byte
		fill := filling{in: in, parts: s.payloadsOf(o.Headers)[0], scheme: s, url: in.URL, time: stamp, id: id, secret: secret}
		if s.NamesField != "" {
			fill.names = s.namesIn(o.Headers.Get(s.Headers[0]))
		}
		text = s.Prefix + s.spelled(s.digest(sum[:0], keys[0], fill), o.Headers.Values(s.Headers[0]))
		if s.NamesField != "" {
			text = s.NamesField + "=" + fill.names + s.List + text
		}
		if s.TimeField != "" {
			text = s.TimeField + "=" + stamp + s.List + text
		}
	}
	s.place(o, text)
	return nil
}

// requestedURL returns a target as its receiver sees it: without the fragment, and with a slash for an empty path (RFC
// 9112, section 3.2.1).
func requestedURL(target string) string {
	target, _, _ = strings.Cut(target, "#")
	scheme, rest, ok := strings.Cut(target, "://")
	end := strings.IndexAny(rest, "/?")
	switch {
	case !ok || end >= 0 && rest[end] == '/':
		return target
	case end < 0:
		end = len(rest)
	}
	return scheme + "://" + rest[:end] + "/" + rest[end:]
}

// replaced returns the body with the spans at the given places, such as JSON strings, replaced by texts. The places are
// in order, and the text between them is unchanged.
func replaced(body []byte, places []field, texts []string) []byte {
	out := make([]byte, 0, len(body)+64)
	last := 0
	for i, p := range places {
		out = append(append(out, body[last:p.start]...), texts[i]...)
		last = p.end
	}
	return append(out, body[last:]...)
}

// unsignable refuses to sign a delivery that has no place for the signature, or that asks for one of an unknown kind.
func unsignable(why string) error {
	return hookglass.Invalid("signature_mode", "cannot be resign: %s", why)
}

// stampFor returns the time to sign, formatted as the scheme requires.
func (s *scheme) stampFor(o *Outgoing, at time.Time) (string, bool) {
	if s.timePath != nil {
		in := &input{Request: &Request{Headers: o.Headers, Body: o.Body}}
		stamp := in.at(s.timePath).text()
		return stamp, stamp != ""
	}
	switch s.TimeUnit {
	case "ms":
		return strconv.FormatInt(at.UnixMilli(), 10), true
	case "rfc3339":
		return at.UTC().Format(time.RFC3339Nano), true
	case "http":
		return at.UTC().Format(hookglass.HTTPDate), true
	}
	return strconv.FormatInt(at.Unix(), 10), true
}

// place puts a signature where the old ones were. If the names are spellings of one signature, all captured ones get
// it. Others of a family (other keys, an older secret) are removed, because only the signing secret is known.
func (s *scheme) place(o *Outgoing, text string) {
	if family := s.Headers[len(s.Headers)-1]; strings.HasSuffix(family, "*") {
		name := s.Headers[0]
		o.Headers = slices.DeleteFunc(setHeader(o.Headers, name, text), func(f hookglass.Header) bool {
			return headerMatches(family, f.Name) && !strings.EqualFold(f.Name, name)
		})
		return
	}
	placed := false
	for _, name := range s.Headers {
		if o.Headers.Has(name) {
			o.Headers, placed = setHeader(o.Headers, name, text), true
		}
	}
	if !placed {
		name := s.Headers[0]
		if s.first != nil {
			name = s.first(o.Headers)
		}
		o.Headers = setHeader(o.Headers, name, text)
	}
}
