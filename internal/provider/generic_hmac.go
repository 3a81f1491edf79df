package provider

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"hookglass"
)

// genericScheme returns the scheme that a generic_hmac config describes (spec: decisions, section 13). It also
// understands lists as other senders use them: with a prefix, the list entries that have it count; an entry t= is the
// timestamp if the template needs one and no header is named; a word and "=" before the digest is tolerated, and either
// alphabet of base64.
func genericScheme(o hookglass.GenericOptions) (*scheme, error) {
	text := cmp.Or(o.PayloadTemplate, "{body}")
	s := &scheme{
		Headers: []string{cmp.Or(o.Header, "X-Signature")}, Hash: o.Algorithm, Encoding: o.Encoding, Prefix: o.Prefix, List: ",",
		Payload: []string{strings.ReplaceAll(text, "{timestamp}", "{time}")}, IDHeader: o.IDHeader, Key: o.SecretEncoding,
		TimeHeader: o.TimestampHeader, TimeUnit: o.TimestampUnit, lenient: o.Prefix == "", alphabet: true,
	}
	if strings.HasSuffix(o.Prefix, ",") {
		s.List = " " // v1,<base64>: the list of Standard Webhooks
	}
	if s.IDHeader == "" && strings.Contains(text, "{id}") {
		s.IDHeader = "webhook-id"
	}
	if s.TimeHeader == "" && strings.Contains(text, "{timestamp}") {
		s.TimeField = "t"
	}
	return s, s.prepare()
}

// spelled encodes a digest. Where either alphabet of base64 is taken, it is that of URLs, without padding, if one of
// the captured signatures is (Sanity).
func (s *scheme) spelled(digest []byte, captured []string) string {
	if !s.alphabet || s.Encoding != "base64" {
		return encodeDigest(digest, s.Encoding)
	}
	for _, header := range captured {
		for entry := range strings.SplitSeq(header, s.List) {
			text, ok := strings.CutPrefix(strings.TrimSpace(entry), s.Prefix)
			if _, std := decodeDigest(nil, text, "base64"); ok && !std {
				if old, err := base64.RawURLEncoding.DecodeString(text); err == nil && len(old) == len(digest) {
					return base64.RawURLEncoding.EncodeToString(digest)
				}
			}
		}
	}
	return encodeDigest(digest, s.Encoding)
}

// maxTolerance is a day, as the API's description says.
const maxTolerance = 86400

// ValidateOptions answers validation_failed for invalid settings of generic_hmac; fields are named below prefix.
func ValidateOptions(prefix string, o hookglass.GenericOptions) error {
	var wrong []hookglass.FieldError
	oneOf := func(field, got string, words ...string) {
		if got != "" && !slices.Contains(words, got) {
			wrong = append(wrong, hookglass.FieldError{Field: prefix + field, Message: "must be one of " + strings.Join(words, ", ")})
		}
	}
	oneOf("algorithm", o.Algorithm, "sha1", "sha256", "sha512")
	oneOf("encoding", o.Encoding, "hex", "base64")
	oneOf("timestamp_unit", o.TimestampUnit, "s", "ms")
	oneOf("secret_encoding", o.SecretEncoding, "utf8", "base64", "hex")
	for _, h := range []struct{ field, name string }{{"header", o.Header}, {"timestamp_header", o.TimestampHeader}, {"id_header", o.IDHeader}} {
		if strings.IndexFunc(h.name, notToken) >= 0 || len(h.name) > 200 {
			wrong = append(wrong, hookglass.FieldError{Field: prefix + h.field, Message: "must be the name of a header"})
		}
	}
	if utf8.RuneCountInString(o.Prefix) > 200 {
		wrong = append(wrong, hookglass.FieldError{Field: prefix + "prefix", Message: "must not be longer than 200 characters"})
	}
	if o.ToleranceSeconds < 0 || o.ToleranceSeconds > maxTolerance {
		wrong = append(wrong, hookglass.FieldError{Field: prefix + "tolerance_seconds", Message: "must be 0 to 86400"})
	}
	if t := o.PayloadTemplate; t != "" && (!strings.Contains(t, "{body}") || !validTemplate(t) || utf8.RuneCountInString(t) > 500) {
		wrong = append(wrong, hookglass.FieldError{Field: prefix + "payload_template", Message: "must hold {body}, may hold {timestamp} and {id}, and no other braces, and may have 500 characters at most"})
	}
	return hookglass.Refusal(wrong, nil)
}

// UsableSecret reports whether a secret yields a generic_hmac key. With one that does not, every request would fail.
func UsableSecret(o hookglass.GenericOptions, secret string) bool {
	return len(deriveKeys(o.SecretEncoding, secret)) > 0
}

func validTemplate(t string) bool {
	for _, source := range []string{"{body}", "{timestamp}", "{id}"} {
		t = strings.ReplaceAll(t, source, "")
	}
	return !strings.ContainsAny(t, "{}")
}

// notToken reports whether r may not occur in a header name (RFC 9110 section 5.6.2). The asterisk may, but no sender
// uses it, and here it would be a wildcard.
func notToken(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'+-.^_`|~", r))
}
