package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// verifyNetlify verifies a JWS with HS256, whose claim sha256 is the digest of the body.
func (s *scheme) verifyNetlify(in *input, secret string) reason {
	token := in.Headers.Get(s.Headers[0])
	if token == "" {
		return missingSignature
	}
	if secret == "" {
		return unusableSecret
	}
	t, ok := readJWS(token)
	if !ok {
		return malformedSignature
	}
	if t.header.child("alg").text() != "HS256" {
		return noSupportedScheme
	}
	if !hmac.Equal(t.signature, hmacSHA256(secret, t.signed)) {
		return signatureMismatch
	}
	sum := sha256.Sum256(in.Body)
	claimed, _ := hex.DecodeString(t.claims.child("sha256").text())
	if !hmac.Equal(claimed, sum[:]) {
		return bodyHashMismatch
	}
	return verified
}

// signNetlify makes the token that Netlify would send with a body.
func signNetlify(body []byte, secret string) string {
	sum := sha256.Sum256(body)
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"netlify","sha256":"`+hex.EncodeToString(sum[:])+`"}`))
	return signed + "." + base64.RawURLEncoding.EncodeToString(hmacSHA256(secret, signed))
}
