package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// verifyNetlify verifies a compact JWS (RFC 7515) with HS256, whose claim sha256 is the digest of the body. The
// algorithm is fixed: the token's own header is only compared, never followed.
func (s *scheme) verifyNetlify(in *input, secret string) reason {
	token := ""
	for _, h := range s.Headers {
		token = in.Headers.Get(h)
	}
	if token == "" {
		return missingSignature
	}
	if secret == "" {
		return unusableSecret
	}
	signed, signature, ok := cutSignature(token)
	head, claims, ok2 := strings.Cut(signed, ".")
	digest, err := base64.RawURLEncoding.DecodeString(signature)
	header, err2 := base64.RawURLEncoding.DecodeString(head)
	body, err3 := base64.RawURLEncoding.DecodeString(claims)
	if !ok || !ok2 || err != nil || err2 != nil || err3 != nil {
		return malformedSignature
	}
	if parseJSON(header).child("alg").text() != "HS256" {
		return noSupportedScheme
	}
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(signed))
	if !hmac.Equal(digest, h.Sum(nil)) {
		return signatureMismatch
	}
	sum := sha256.Sum256(in.Body)
	claimed, _ := hex.DecodeString(parseJSON(body).child("sha256").text())
	if !hmac.Equal(claimed, sum[:]) {
		return bodyHashMismatch
	}
	return verified
}

// cutSignature divides a token into what is signed and the signature (RFC 7515, section 7.1).
func cutSignature(token string) (signed, signature string, found bool) {
	i := strings.LastIndexByte(token, '.')
	if i < 0 {
		return token, "", false
	}
	return token[:i], token[i+1:], true
}

// signNetlify makes the token that Netlify would send with a body.
func signNetlify(body []byte, secret string) string {
	sum := sha256.Sum256(body)
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"netlify","sha256":"`+hex.EncodeToString(sum[:])+`"}`))
	return signed + "." + base64.RawURLEncoding.EncodeToString(hmacSHA256(secret, signed))
}
