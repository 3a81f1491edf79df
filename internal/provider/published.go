package provider

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/url"
	"strings"
)

// Some senders sign with a private key and publish the public key at a URL that the delivery names. This package does
// not fetch it: Verify returns which key it needs, and is called again once the caller has it.

// KeyRef names a public key that a sender publishes. Only Verify creates one, always with an https URL on a host of the
// sender: the content of a request must never make us fetch from elsewhere.
type KeyRef struct {
	URL string
	// Post is JSON to request the key with; "" means a plain GET. It contains a credential of the config and must not
	// be logged.
	Post string
}

// String returns the URL, without Post.
func (k KeyRef) String() string { return k.URL }

// KeyUnavailable is the reason of a verdict that needs a published key.
const KeyUnavailable = "key_unavailable"

// maxKeyAnswer bounds the size of a key; certificates have 2 to 4 KiB.
const maxKeyAnswer = 64 << 10

// Accepts reports whether an answer from the key's URL is a key.
func (k KeyRef) Accepts(answer []byte) bool {
	if len(answer) > maxKeyAnswer {
		return false
	}
	if k.Post != "" {
		_, ok := readJWK(answer)
		return ok
	}
	return parsePEM(answer) != nil
}

// key returns the published key if it is known. Otherwise it records that the request needs it.
func (in *input) key(ref KeyRef) []byte {
	if in.Keys != nil {
		if answer := in.Keys(ref); answer != nil {
			return answer
		}
	}
	if in.needs == nil {
		in.needs = &ref
	}
	return nil
}

// parsePEM reads a certificate or a public key; nil when there is none.
func parsePEM(text []byte) crypto.PublicKey {
	block := readPEM(text)
	if block == nil {
		return nil
	}
	return parsePKIX(block.Bytes)
}

// ownAddress returns a URL if a key may be fetched from it: https, one of the given hosts, the default port, and only a
// path.
func ownAddress(address string, own func(host, path string) bool) (string, bool) {
	if len(address) > 512 {
		return "", false
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Port() != "" || strings.HasSuffix(u.Host, ":") ||
		u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.RawPath != "" || u.Opaque != "" || strings.Contains(u.Path, "..") || !own(u.Host, u.Path) {
		return "", false
	}
	return "https://" + u.Host + u.Path, true
}

// isWord reports whether s is of letters, digits and dashes or underscores, of a length between the bounds.
func isWord(s string, least, most int) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// jwk is an elliptic-curve public key (RFC 7517); only P-256 is supported.
type jwk struct {
	Kty, Crv, Kid, X, Y string
	ExpiredAt           *int64 `json:"expired_at"` // Plaid's, seconds
}

func (k jwk) public() (*ecdsa.PublicKey, bool) {
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	y, err2 := base64.RawURLEncoding.DecodeString(k.Y)
	if k.Kty != "EC" || k.Crv != "P-256" || err != nil || err2 != nil || len(x) != 32 || len(y) != 32 {
		return nil, false
	}
	point := append(append([]byte{4}, x...), y...)
	pub, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	return pub, err == nil
}

// readJWK parses a JWK, either bare or as the member "key" of an answer.
func readJWK(text []byte) (jwk, bool) {
	var answer struct {
		Key *jwk
		jwk
	}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) || json.Unmarshal(text, &answer) != nil {
		return jwk{}, false
	}
	k := answer.jwk
	if answer.Key != nil {
		k = *answer.Key
	}
	_, ok := k.public()
	return k, ok
}

// verifyES256 verifies an ES256 signature (RFC 7518 section 3.4): two numbers of 32 bytes.
func verifyES256(pub *ecdsa.PublicKey, sum, signature []byte) bool {
	if len(signature) != 64 {
		return false
	}
	return ecdsa.Verify(pub, sum, new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
}

// verifyRSA verifies an RSA signature with a published or configured key.
func verifyRSA(pub crypto.PublicKey, id crypto.Hash, sum, signature []byte) bool {
	key, ok := pub.(*rsa.PublicKey)
	return ok && rsa.VerifyPKCS1v15(key, id, sum, signature) == nil
}
