package provider

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha512"
	"crypto/subtle"
	"fmt"
	"hash"
	"slices"
	"strings"

	"hookglass"
)

// Bounds of what is checked in a request that presents many signatures.
const (
	maxEntries  = 32 // in one header
	maxPresents = 16 // headers, and signatures of a public key
)

// scheme is one way to sign a delivery. The kinds are a closed set; everything else is a parameter.
//
//	hmac     HMAC with the shared secret (the default)     token    the secret itself is sent
//	digest   a plain hash, {secret} being in the payload    ed25519, ecdsa, rsa   the secret is the sender's public key
//	adyen, contentful, mailgun, netlify, paypal, plaid, sns   what only that provider does; see the file of that name
type scheme struct {
	Kind     string   `json:"kind"`
	Headers  []string `json:"headers"`  // with the signature; a final * is a wildcard
	Hash     string   `json:"hash"`     // sha256 (default), sha1, sha512
	Encoding string   `json:"encoding"` // hex (default), base64, any
	Prefix   string   `json:"prefix"`   // precedes the digest
	List     string   `json:"list"`     // the separator of a list; entries without the prefix are ignored
	Payload  []string `json:"payload"`  // what is signed, any of these: {body} (default) {escaped_body} {time} {id} {url} {base_url} {encoded_url} {decoded_url} {sorted_url} {ordered_url} {method} {secret} {params} {form:name} {names} {values}
	// VersionHeader selects the signed payload by the names in Versions; without the header any of them may be signed.
	VersionHeader string   `json:"version_header"`
	Versions      []string `json:"versions"`

	Key      string `json:"key"` // how the key is derived from the secret; see key.go
	IDHeader string `json:"id_header"`

	// NamesField is the list entry that names additional signed headers, separated by blanks. A value without this
	// entry belongs to another scheme.
	NamesField string `json:"names_field"`

	TimeHeader string `json:"time_header"`
	TimeField  string `json:"time_field"` // the list entry with the time
	TimeBody   string `json:"time_body"`  // a pointer into the body
	TimeUnit   string `json:"time_unit"`  // s (default), ms, rfc3339, http
	Tolerance  int64  `json:"tolerance"`  // seconds; 0: not checked
	PastOnly   bool   `json:"past_only"`  // a time in the future is accepted
	Fine       bool   `json:"fine"`       // the age of a time in seconds is counted in milliseconds

	exact    bool // blanks around entries are not trimmed
	lenient  bool // any word and "=" may stand before the digest (generic_hmac)
	alphabet bool // base64 may be of the URL alphabet, and without padding (generic_hmac)
	payloads [][]payloadPart
	timePath []string
	// first selects the header of Headers to sign in if a request has none of them; nil: the first.
	first func(hookglass.Headers) string
}

type payloadPart struct{ literal, source string }

// prepare checks and completes a scheme.
func (s *scheme) prepare() error {
	defaults := func(field *string, words ...string) error {
		if *field == "" {
			*field = words[0]
		}
		if slices.Contains(words, *field) {
			return nil
		}
		return fmt.Errorf("bad word %q in a signature", *field)
	}
	for _, err := range []error{
		defaults(&s.Kind, "hmac", "digest", "token", "ed25519", "ecdsa", "rsa", "adyen", "contentful", "mailgun", "netlify", "paypal", "plaid", "sns"),
		defaults(&s.Hash, "sha256", "sha1", "sha512"),
		defaults(&s.Encoding, "hex", "base64", "any"),
		defaults(&s.TimeUnit, "s", "ms", "rfc3339", "http"),
		defaults(&s.Key, keyUTF8, keyHex, keyBase64, keyStandard, keyStandardOrUTF8, keyPublic),
	} {
		if err != nil {
			return err
		}
	}
	if len(s.Payload) == 0 {
		s.Payload = []string{"{body}"}
	}
	s.payloads = s.payloads[:0]
	for _, text := range s.Payload {
		parts, err := parsePayload(text)
		if err != nil {
			return err
		}
		s.payloads = append(s.payloads, parts)
	}
	if s.TimeBody != "" {
		s.timePath = tokens(s.TimeBody)
	}
	return nil
}

func parsePayload(text string) ([]payloadPart, error) {
	var parts []payloadPart
	for text != "" {
		literal, rest, found := strings.Cut(text, "{")
		if literal != "" {
			parts = append(parts, payloadPart{literal: literal})
		}
		if !found {
			break
		}
		source, after, closed := strings.Cut(rest, "}")
		switch {
		case !closed:
			return nil, fmt.Errorf("bad payload near %q", rest)
		case source == "body", source == "escaped_body", source == "time", source == "id", source == "url", source == "base_url", source == "encoded_url",
			source == "decoded_url", source == "sorted_url", source == "ordered_url",
			source == "method", source == "secret", source == "params", source == "names", source == "values",
			strings.HasPrefix(source, "form:"):
		default:
			return nil, fmt.Errorf("unknown source {%s}", source)
		}
		parts = append(parts, payloadPart{source: source})
		text = after
	}
	return parts, nil
}

// uses reports whether a payload of the scheme holds a source whose name ends in suffix.
func (s *scheme) uses(suffix string) bool {
	for _, parts := range s.payloads {
		for _, p := range parts {
			if strings.HasSuffix(p.source, suffix) {
				return true
			}
		}
	}
	return false
}

// presented reports whether a request carries this scheme's signature.
func (s *scheme) presented(in *input) bool {
	switch s.Kind {
	case "adyen", "mailgun", "sns":
		return s.presentedInBody(in)
	}
	for i := range in.Headers {
		if s.isHeader(in.Headers[i].Name) && (s.NamesField == "" || s.namesIn(in.Headers[i].Value) != "") {
			return true
		}
	}
	return false
}

// namesIn returns the additional signed headers that a value names, or "".
func (s *scheme) namesIn(value string) string {
	for entry := range strings.SplitSeq(value, s.List) {
		if names, ok := strings.CutPrefix(strings.TrimSpace(entry), s.NamesField+"="); ok {
			return strings.TrimSpace(names)
		}
	}
	return ""
}

func (s *scheme) isHeader(name string) bool {
	return slices.ContainsFunc(s.Headers, func(pattern string) bool { return headerMatches(pattern, name) })
}

// headerMatches compares names without case; a final * of the pattern is a wildcard.
func headerMatches(pattern, name string) bool {
	if p, wild := strings.CutSuffix(pattern, "*"); wild {
		return len(name) >= len(p) && strings.EqualFold(name[:len(p)], p)
	}
	return len(pattern) == len(name) && strings.EqualFold(pattern, name)
}

// claim is a presented signature, decoded.
type claim struct {
	digests [][]byte
	time    string // as written
	id      string
	names   string // of additional signed headers
}

// of returns the scheme of a secret: that of Standard Webhooks has another for public keys.
func (s *scheme) of(secret string) *scheme {
	if s.IDHeader != "" && strings.HasPrefix(secret, asymmetricPrefix) && (s.Key == keyStandard || s.Key == keyStandardOrUTF8) {
		public := *s
		public.Kind, public.Prefix, public.Key = "ed25519", "v1a,", keyPublic
		return &public
	}
	return s
}

// verify checks the signature of a request with one secret. tolerance is in seconds; negative: the time is not checked.
func (s *scheme) verify(in *input, secret string, tolerance, at int64) reason {
	switch s.Kind {
	case "adyen":
		return s.verifyAdyen(in, secret)
	case "mailgun":
		return s.verifyMailgun(in, secret)
	case "netlify":
		return s.verifyNetlify(in, secret)
	case "sns":
		return s.verifySNS(in, secret)
	}
	s = s.of(secret)
	worst, seen := missingSignature, 0
	var claims []claim // each of another payload, so that no payload is hashed once for each header that claims it
	for i := range in.Headers {
		if !s.isHeader(in.Headers[i].Name) {
			continue
		}
		if seen++; seen > maxPresents {
			break
		}
		header, got := in.Headers[i].Value, verified
		switch s.Kind {
		case "paypal":
			got = s.verifyPayPal(in, header, secret)
		case "plaid":
			got = s.verifyPlaid(in, header, secret, tolerance, at)
		case "token":
			if secret == "" || subtle.ConstantTimeCompare([]byte(header), []byte(secret)) != 1 {
				got = signatureMismatch
			}
		default:
			var c claim
			if c, got = s.parse(in, header); got != verified {
				break
			}
			if same := slices.IndexFunc(claims, c.alike); same >= 0 {
				claims[same].digests = append(claims[same].digests, c.digests...)
			} else {
				claims = append(claims, c)
			}
			continue
		}
		if got == verified {
			return verified
		}
		worst = max(worst, got)
	}
	for _, c := range claims {
		got := s.verifyClaim(in, c, secret, tolerance, at)
		if got == verified {
			return verified
		}
		worst = max(worst, got)
	}
	return worst
}

// alike reports whether two claims are about the same payload.
func (c claim) alike(other claim) bool {
	return c.time == other.time && c.id == other.id && c.names == other.names
}

func (s *scheme) verifyClaim(in *input, c claim, secret string, tolerance, at int64) reason {
	var stamp int64
	if c.time != "" {
		var ok bool
		if stamp, ok = readTime(c.time, s.TimeUnit); !ok {
			if s.TimeHeader == "" {
				return malformedSignature
			}
			return malformedTimestamp
		}
	}
	keys := deriveKeys(s.Key, secret)
	for _, key := range keys {
		if s.matches(in, c, key, secret) {
			if c.time != "" && tolerance > 0 && outside(stamp, at, tolerance, s.PastOnly, s.Fine || s.TimeUnit == "ms" || s.TimeUnit == "rfc3339") {
				return timestampOutOfTolerance
			}
			return verified
		}
	}
	if !s.usable(keys) {
		return unusableSecret
	}
	return signatureMismatch
}

// usable reports whether any signature could verify with one of the keys.
func (s *scheme) usable(keys [][]byte) bool {
	return slices.ContainsFunc(keys, func(key []byte) bool { return !publicKeyKind(s.Kind) || publicKey(s.Kind, key) != nil })
}

// parse reads what the sender presents.
func (s *scheme) parse(in *input, header string) (claim, reason) {
	var c claim
	if s.IDHeader != "" {
		if c.id = in.Headers.Get(s.IDHeader); c.id == "" && s.uses("id") {
			return c, missingID
		}
	}
	switch {
	case s.TimeHeader != "":
		if c.time = in.Headers.Get(s.TimeHeader); c.time == "" {
			return c, missingTimestamp
		}
	case s.timePath != nil:
		if c.time = in.at(s.timePath).text(); c.time == "" {
			return c, missingTimestamp
		}
	}
	if s.NamesField != "" {
		c.names = s.namesIn(header)
		switch n := len(strings.Fields(c.names)); {
		case n == 0:
			return c, noSupportedScheme
		case n > maxEntries:
			return c, malformedSignature
		}
	}
	malformed := s.readEntries(header, &c)
	switch {
	case s.TimeField != "" && s.TimeHeader == "" && c.time == "":
		return c, malformedSignature
	case len(c.digests) > 0:
		return c, verified
	case otherVersion(header, s.Prefix):
		return c, noSupportedScheme
	case malformed || s.List == "" || s.TimeField == "" && !strings.Contains(header, s.List):
		return c, malformedSignature
	}
	return c, noSupportedScheme
}

// readEntries parses the digests, and the time if it is among them. It reports whether an entry is malformed.
func (s *scheme) readEntries(header string, c *claim) (malformed bool) {
	rest := header
	for more := true; more && len(c.digests) < maxEntries; {
		entry := rest
		if more = false; s.List != "" {
			entry, rest, more = strings.Cut(rest, s.List)
		}
		if !s.exact {
			entry = strings.TrimSpace(entry)
		}
		if s.TimeField != "" {
			if t, ok := strings.CutPrefix(entry, s.TimeField+"="); ok {
				c.time = t
				continue
			}
		}
		text, ok := strings.CutPrefix(entry, s.Prefix)
		if !ok {
			malformed = malformed || s.List == ""
			continue
		}
		if digest, ok := s.readDigest(text); ok {
			c.digests = append(c.digests, digest)
		} else {
			malformed = true
		}
	}
	return malformed
}

// readDigest decodes the digest of an entry.
func (s *scheme) readDigest(text string) ([]byte, bool) {
	read := func(text string) ([]byte, bool) {
		digest, ok := decodeDigest(nil, text, s.Encoding)
		if !ok && text != "" && s.alphabet && s.Encoding == "base64" {
			digest, err := decodeBase64(text)
			return digest, err == nil
		}
		return digest, ok
	}
	digest, ok := read(text)
	if !ok && s.lenient {
		if _, after, cut := strings.Cut(text, "="); cut {
			return read(after)
		}
	}
	return digest, ok
}

// otherVersion reports whether a value is of another version of a versioned scheme: v1= when v0= is expected.
func otherVersion(header, prefix string) bool {
	return len(prefix) == 3 && prefix[0] == 'v' && prefix[2] == '=' &&
		len(header) > 3 && header[0] == 'v' && header[1] >= '0' && header[1] <= '9' && header[2] == '='
}

// matches reports whether one of the presented digests is correct for the key.
func (s *scheme) matches(in *input, c claim, key []byte, secret string) bool {
	if !s.uses("url") {
		return s.matchesURL(in, c, key, secret, "")
	}
	for _, u := range in.urls() {
		if s.matchesURL(in, c, key, secret, u) {
			return true
		}
	}
	return false
}

func (s *scheme) matchesURL(in *input, c claim, key []byte, secret, url string) bool {
	for _, parts := range s.payloadsOf(in.Headers) {
		fill := filling{in: in, parts: parts, scheme: s, url: url, time: c.time, id: c.id, names: c.names, secret: secret}
		if publicKeyKind(s.Kind) {
			var message bytes.Buffer
			fill.write(&message)
			for _, d := range c.digests[:min(len(c.digests), maxPresents)] { // each is checked against the whole payload
				if verifyPublic(s.Kind, s.Hash, key, message.Bytes(), d) {
					return true
				}
			}
			continue
		}
		var sum [sha512.Size]byte
		want := s.digest(sum[:0], key, fill)
		for _, d := range c.digests {
			if hmac.Equal(d, want) {
				return true
			}
		}
	}
	return false
}

// payloadsOf returns what may be signed in a request with these headers.
func (s *scheme) payloadsOf(h hookglass.Headers) [][]payloadPart {
	if s.VersionHeader != "" {
		if i := slices.Index(s.Versions, strings.ToLower(h.Get(s.VersionHeader))); i >= 0 && i < len(s.payloads) {
			return s.payloads[i : i+1]
		}
	}
	return s.payloads
}

// digest appends the symmetric signature of a payload.
func (s *scheme) digest(dst, key []byte, fill filling) []byte {
	var h hash.Hash
	if s.Kind == "digest" {
		h = newHash(s.Hash)()
	} else {
		h = hmac.New(newHash(s.Hash), key)
	}
	fill.write(h)
	return h.Sum(dst)
}
