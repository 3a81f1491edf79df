package provider

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Mailgun signs a timestamp and a token with the webhook signing key, and sends all three in the body: as /signature of a
// JSON event, or as fields of a form. The rest of the body is not signed.

func mailgunClaim(in *input) (stamp, token, signature string) {
	if in.isForm() {
		stamp, _ = formValue(in.params(), "timestamp")
		token, _ = formValue(in.params(), "token")
		signature, _ = formValue(in.params(), "signature")
		return stamp, token, signature
	}
	s := in.at([]string{"signature"})
	return s.child("timestamp").text(), s.child("token").text(), s.child("signature").text()
}

func (s *scheme) verifyMailgun(in *input, secret string) reason {
	stamp, token, signature := mailgunClaim(in)
	digest, ok := decodeDigest(nil, signature, "hex")
	switch {
	case signature == "":
		return missingSignature
	case stamp == "":
		return missingTimestamp
	case !ok:
		return malformedSignature
	case secret == "":
		return unusableSecret
	}
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(stamp + token))
	if !hmac.Equal(digest, h.Sum(nil)) {
		return signatureMismatch
	}
	return verified
}

// presentedInBody reports whether the body holds a signature of the schemes that keep it there.
func (s *scheme) presentedInBody(in *input) bool {
	if s.Kind == "mailgun" {
		_, _, signature := mailgunClaim(in)
		return signature != ""
	}
	found := false
	eachAdyenItem(in, func(_ value, signature string) bool {
		found = signature != ""
		return !found
	})
	return found
}
