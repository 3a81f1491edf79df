package email

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/emersion/go-msgauth/dkim"

	"hookglass"
)

// Bounds of a DKIM check. A message that passed many servers carries three or four signatures of some thirty fields
// each.
const (
	maxSignatures   = 10
	maxSignedFields = 100
)

// checkDKIM verifies the signatures of a message. It refuses one whose header the verifier would parse differently from
// Parse, or whose signatures are made to be expensive.
func checkDKIM(q *inquiry, h block, raw []byte, damaged bool) DKIM {
	d := DKIM{Result: None}
	refused := ""
	for _, f := range h {
		if len(f.value) > maxValue {
			refused = "header_too_large"
		}
		if !strings.EqualFold(f.name, "DKIM-Signature") {
			continue
		}
		tags := parseTags(f.value)
		if len(d.Signatures) < maxSignatures {
			d.Signatures = append(d.Signatures, Signature{
				Result: PermError, Domain: tagText(tags["d"]), Selector: tagText(tags["s"]), Algorithm: tagText(tags["a"]),
			})
		}
		if strings.Count(tags["h"], ":") >= maxSignedFields {
			refused = "too_many_signed_fields"
		}
	}
	if damaged {
		refused = "malformed_header"
	}
	if len(d.Signatures) == 0 {
		d.Reason = "no_signature"
		return d
	}
	if refused != "" {
		return d.refuse(refused)
	}
	verified, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{LookupTXT: q.lookupTXT, MaxVerifications: maxSignatures})
	if err != nil && !errors.Is(err, dkim.ErrTooManySignatures) || len(verified) != len(d.Signatures) {
		return d.refuse("malformed_message") // such as one without an end of its header
	}
	for i, v := range verified {
		s := &d.Signatures[i]
		s.Result, s.Reason = dkimResult(v.Err)
		if s.Result == Pass && !speaksFor(q, s, v.Identifier) {
			s.Result, s.Reason = PermError, "identity_mismatch"
		}
	}
	d.Result = best(d.Signatures)
	if err != nil {
		d.Reason = "too_many_signatures"
	}
	return d
}

// refuse returns the outcome where no signature is verified, each for the same reason.
func (d DKIM) refuse(reason string) DKIM {
	d.Result, d.Reason = PermError, reason
	for i := range d.Signatures {
		d.Signatures[i].Reason = reason
	}
	return d
}

// speaksFor reports whether a signature's key may sign for an identity in a subdomain. The flag s of its record forbids
// that (RFC 6376, section 3.6.1), which the verifier does not check.
func speaksFor(q *inquiry, s *Signature, identity string) bool {
	if _, domain, _ := strings.Cut(identity, "@"); strings.EqualFold(domain, s.Domain) {
		return true
	}
	records, err := q.lookupTXT(s.Selector + "._domainkey." + s.Domain) // cached: the verifier has looked it up
	return err == nil && !slices.Contains(strings.Split(parseTags(strings.Join(records, ""))["t"], ":"), "s")
}

// best returns the outcome of all signatures: pass if any passes, and otherwise temporary if any may pass later.
func best(signatures []Signature) Result {
	for _, r := range []Result{Pass, TempError, Fail} {
		for _, s := range signatures {
			if s.Result == r {
				return r
			}
		}
	}
	return PermError
}

// dkimFailures classifies the verifier's errors by their texts, which is all that it gives. Its version is pinned, and
// a test covers each text.
var dkimFailures = []struct {
	text   string
	result Result
	reason string
}{
	{"body hash did not verify", Fail, "body_hash_mismatch"},
	{"signature did not verify", Fail, "signature_mismatch"},
	{"insecure body length", Fail, "body_length_tag"},
	{"signature has expired", Fail, "signature_expired"},
	{"no key for signature", PermError, "key_not_found"},
	{"no valid key found", PermError, "key_not_found"},
	{"multiple TXT records", PermError, "multiple_keys"},
	{"key revoked", PermError, "key_revoked"},
	{"key is too short", PermError, "key_too_short"},
	{"inappropriate service", PermError, "key_not_for_mail"},
	{"key", PermError, "key_invalid"},
	{"hash algorithm too weak", PermError, "weak_algorithm"},
	{"algorithm", PermError, "unsupported_algorithm"},
	{"From field not signed", PermError, "from_not_signed"},
	{"domain mismatch", PermError, "identity_mismatch"},
}

func dkimResult(err error) (Result, string) {
	switch {
	case err == nil:
		return Pass, ""
	case dkim.IsTempFail(err):
		return TempError, "dns_error"
	}
	for _, f := range dkimFailures {
		if strings.Contains(err.Error(), f.text) {
			return f.result, f.reason
		}
	}
	return PermError, "malformed_signature"
}

// tagText returns a tag's value for display.
func tagText(s string) string { return hookglass.Beginning(printable(guessUTF8(s)), 255) }
