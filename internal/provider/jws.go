package provider

import (
	"encoding/base64"
	"strings"
)

// jws is a signed token in its compact form (RFC 7515, section 7.1). Its header is only compared, never followed: each
// scheme has one algorithm.
type jws struct {
	signed         string // what the signature is over
	header, claims value
	signature      []byte
}

func readJWS(token string) (t jws, ok bool) {
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 {
		return t, false
	}
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return t, false
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return t, false
	}
	t = jws{signed: parts[0] + "." + parts[1], header: parseJSON(header), claims: parseJSON(claims)}
	t.signature, err = base64.RawURLEncoding.DecodeString(parts[2])
	return t, err == nil
}
