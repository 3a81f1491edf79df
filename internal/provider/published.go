package provider

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
)

// Some senders sign with a private key and publish the public one at an address that the delivery names. Fetching it is
// not for this package: Verify says which key it needs, and is called again by whoever has it.

// KeyRef names a public key that a sender publishes. It is made by Verify alone, and its address is always below https
// and on a host that is the sender's own: what a request claims is never enough to have something fetched from
// elsewhere.
type KeyRef struct {
	URL string
	// Post is JSON that the key is asked for with, "" where the address alone does. It holds a credential of the
	// config, so it is not for logs.
	Post string
}

// String returns the address, without what it is asked with.
func (k KeyRef) String() string { return k.URL }

// KeyUnavailable is the reason of a verdict that awaits a published key.
const KeyUnavailable = "key_unavailable"

// maxKeyAnswer bounds what is read as a key; certificates have 2 to 4 KiB.
const maxKeyAnswer = 64 << 10

// Accepts reports whether an answer from the address of the key is one.
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

// key returns what is known at an address. When nothing is, the request is remembered as in need of it.
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
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	if block.Type == "CERTIFICATE" {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		return cert.PublicKey
	}
	return parsePKIX(block.Bytes)
}

// ownAddress returns the address if it is one that a key may be fetched from: https, one of the hosts, the usual port,
// and nothing but a path.
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

// jwk is an elliptic public key (RFC 7517), of which only P-256 is understood.
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

// readJWK reads a JWK, by itself or as the member "key" of an answer.
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

// verifyES256 checks a signature of JWS (RFC 7518 section 3.4): two numbers of 32 bytes.
func verifyES256(pub *ecdsa.PublicKey, sum, signature []byte) bool {
	if len(signature) != 64 {
		return false
	}
	return ecdsa.Verify(pub, sum, new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
}

// verifyRSA checks an RSA signature with a key that was published or configured.
func verifyRSA(pub crypto.PublicKey, id crypto.Hash, sum, signature []byte) bool {
	key, ok := pub.(*rsa.PublicKey)
	return ok && rsa.VerifyPKCS1v15(key, id, sum, signature) == nil
}
